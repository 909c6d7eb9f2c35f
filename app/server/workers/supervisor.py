"""The parent process of several workers: starts and replaces them, and forwards signals to them."""

import gc
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable

from app.observability.logs import write_text
from app.server.workers.sockets import allow_sharing, open_shared_listener
from app.server.workers.worker import HEARTBEAT, Worker
from app.server.workers.worker_slots import WorkerSlot
from app.settings.service_settings import Settings

__all__ = ["Supervisor"]

_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})
_SIGNALS = _ENDING | {signal.SIGHUP, signal.SIGCHLD, HEARTBEAT}
_CHECK_INTERVAL = 1.0
_GRACE = 5.0
"""Seconds in addition to SHUTDOWN_TIMEOUT that a worker has to close its resources."""

_log = logging.getLogger(__name__)


class Supervisor:
    """Keeps the configured number of workers running.

    Signals are blocked and waited for, so that no code of this class can be interrupted by one.

    Args:
        listener: the socket of the first worker; the others listen on the same address.
        settings: the number of workers and their time limits.
        announce: called once all workers listen.
    """

    def __init__(self, listener: socket.socket, settings: Settings, announce: Callable[[], None]) -> None:
        allow_sharing(listener)
        self._address, self._family = listener.getsockname(), listener.family
        more = (open_shared_listener(self._address, self._family) for _ in range(settings.server_workers - 1))
        self._slots = [WorkerSlot(number, each) for number, each in enumerate((listener, *more))]
        self._timeout = settings.server_worker_timeout
        self._drain = settings.shutdown_timeout
        self._announce = announce
        self._announced = self._interrupted = False
        self._deadline = math.inf
        self._checked_at = time.monotonic()
        self._code = 0

    def run(self) -> Worker | int:
        """Supervise until a signal ends it; return the exit code, or in each forked process its :class:`Worker`.

        The first worker starts alone, so that an error at start is reported only once.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.collect()
        gc.freeze()  # a collection in a worker would write to every object, and so copy the shared memory
        self._slots[0].start_at = 0
        while not self._is_over():
            if worker := self._start_due_workers():
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                return worker
            if received := signal.sigtimedwait(_SIGNALS, self._seconds_to_wait()):
                self._handle_signal(received.si_signo, received.si_pid)
            self._reap()
            self._kill_stuck()
        if not (self._announced or self._interrupted or self._code):
            write_text("toolchat: stopped during startup")
        return 130 if self._interrupted else self._code

    @property
    def _is_ending(self) -> bool:
        return self._deadline < math.inf

    def _is_over(self) -> bool:
        return self._is_ending and not any(slot.pid for slot in self._slots)

    def _seconds_to_wait(self) -> float:
        return max(0.0, min(_CHECK_INTERVAL, *(slot.start_at - time.monotonic() for slot in self._slots)))

    def _start_due_workers(self) -> Worker | None:
        """Fork the workers that are due; return the worker in its own process."""
        for slot in self._slots:
            if slot.start_at <= time.monotonic() and not self._is_ending and (worker := self._start(slot)):
                return worker
        return None

    def _start(self, slot: WorkerSlot) -> Worker | None:
        slot.start_at, parent = math.inf, os.getpid()
        try:
            slot.listen(self._address, self._family)
            pid = os.fork()
        except OSError as error:
            self._replace(slot, os.strerror(error.errno or 0))
            return None
        if not pid:
            return self._worker(slot, parent)
        slot.record_start(pid)
        return None

    def _worker(self, slot: WorkerSlot, parent: int) -> Worker:
        others = {each.number: each.metrics_socket.getsockname() for each in self._slots if each is not slot}
        worker = Worker(slot.number, slot.listener, slot.metrics_socket, others, slot.replaced, parent, self._timeout)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # until it serves, the parent reports that it ended
        os.setpgid(0, 0)  # only the parent gets a terminal's Ctrl-C: a worker would take the forwarded one for a second
        worker.exit_with_parent()
        for each in self._slots:
            if each is not slot:
                each.close()
        return worker

    def _handle_signal(self, number: int, sender: int) -> None:
        if number == HEARTBEAT and (slot := self._slot_of(sender)):
            self._record_heartbeat(slot)
        elif number in _ENDING:
            self._end(number)
        elif number == signal.SIGHUP:
            self._signal_all(number)

    def _slot_of(self, pid: int) -> WorkerSlot | None:
        return next((each for each in self._slots if each.pid == pid), None)

    def _record_heartbeat(self, slot: WorkerSlot) -> None:
        slot.last_heartbeat = time.monotonic()
        slot.listens = True
        if not self._announced and slot.number == 0:
            for each in self._slots:
                each.start_at = math.inf if each.pid else 0
        if not self._announced and all(each.listens for each in self._slots):
            self._announced = True
            self._announce()

    def _end(self, number: int) -> None:
        """Stop all workers at the same time, so that each has the whole SHUTDOWN_TIMEOUT."""
        self._interrupted = self._interrupted or number == signal.SIGINT
        if not self._is_ending:
            self._deadline = time.monotonic() + self._drain + _GRACE
        self._signal_all(number)

    def _signal_all(self, number: int) -> None:
        for slot in self._slots:
            if slot.pid:
                os.kill(slot.pid, number)

    def _reap(self) -> None:
        """Collect the exit codes of workers that have exited."""
        while ended := _next_exit():
            pid, code = ended
            if slot := self._slot_of(pid):
                self._record_exit(slot, code)

    def _record_exit(self, slot: WorkerSlot, code: int) -> None:
        if self._announced and not self._is_ending:
            self._replace(slot, signal.Signals(-code).name if code < 0 else code)
            return
        slot.pid = 0
        slot.close()  # no worker would accept these connections
        if not self._is_ending:
            self._code = code if code > 0 else 1
            self._end(signal.SIGTERM)

    def _replace(self, slot: WorkerSlot, why: str | int) -> None:
        fields = {"worker": slot.number, "pid": slot.pid, "exit": why}
        pause = slot.record_exit(in_order=why == 0)
        _log.error("a worker ended and is replaced", extra={**fields, "pause": pause})

    def _kill_stuck(self) -> None:
        """Kill workers that send no heartbeat any more, or that have not exited in time."""
        now = time.monotonic()
        # After a suspension of this process, maybe of the whole machine, every heartbeat looks late.
        was_suspended = now - self._checked_at > 3 * _CHECK_INTERVAL
        self._checked_at = now
        for slot in self._slots:
            if was_suspended:
                slot.last_heartbeat = now
            is_stuck = slot.listens and not self._is_ending and now - slot.last_heartbeat > self._timeout
            if slot.pid and (is_stuck or now > self._deadline):
                _log.error("a worker does not answer and is killed", extra={"worker": slot.number, "pid": slot.pid})
                os.kill(slot.pid, signal.SIGKILL)
                slot.last_heartbeat = now


def _next_exit() -> tuple[int, int] | None:
    """Return the id and exit code of a process that has exited."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None
