"""The parent of several workers: it starts and replaces them, passes signals on, and answers nothing itself."""

import gc
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable

from app.observability.logs import write_text
from app.server.workers.sockets import beside, shared
from app.server.workers.worker import ALIVE, Worker
from app.server.workers.worker_slots import Place
from app.settings.service_settings import Settings

__all__ = ["Supervisor"]

_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})
_HEARD = _ENDING | {signal.SIGHUP, signal.SIGCHLD, ALIVE}
_LOOK_EVERY = 1.0
_GRACE = 5.0
"""Seconds beyond the time for running answers that a worker has to close what it opened."""

_log = logging.getLogger(__name__)


class Supervisor:
    """Keeps so many workers at work.

    Signals are waited for and never interrupt, so that nothing here has to reckon with them.

    Args:
        listener: where all listen.
        settings: how many workers, how long one may show no life, and how long running answers may take at the end.
        announce: called once, when all listen.
    """

    def __init__(self, listener: socket.socket, settings: Settings, announce: Callable[[], None]) -> None:
        shared(listener)
        self._address, self._family = listener.getsockname(), listener.family
        more = (beside(self._address, self._family) for _ in range(settings.server_workers - 1))
        self._places = [Place(number, each) for number, each in enumerate((listener, *more))]
        self._timeout = settings.server_worker_timeout
        self._drain = settings.shutdown_timeout
        self._announce = announce
        self._announced = self._interrupted = False
        self._deadline = math.inf
        self._looked = time.monotonic()
        self._code = 0

    def run(self) -> Worker | int:
        """Work until a signal comes; returns in each process: in a worker what it is, in the parent the exit code.

        The first worker starts alone, so that what keeps it from starting is told once.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.collect()
        gc.freeze()  # a collection in a worker would write to every object, and so copy the memory that all share
        self._places[0].due = 0
        while not self._is_over():
            if worker := self._start_those_due():
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                return worker
            if heard := signal.sigtimedwait(_HEARD, self._patience()):
                self._hear(heard.si_signo, heard.si_pid)
            self._bury()
            self._look_after()
        if not (self._announced or self._interrupted or self._code):
            write_text("toolchat: stopped during startup")
        return 130 if self._interrupted else self._code

    @property
    def _is_ending(self) -> bool:
        return self._deadline < math.inf

    def _is_over(self) -> bool:
        return self._is_ending and not any(place.pid for place in self._places)

    def _patience(self) -> float:
        return max(0.0, min(_LOOK_EVERY, *(place.due - time.monotonic() for place in self._places)))

    def _start_those_due(self) -> Worker | None:
        """Fork workers into the places that wait for one; gives each to itself."""
        for place in self._places:
            if place.due <= time.monotonic() and not self._is_ending and (worker := self._start(place)):
                return worker
        return None

    def _start(self, place: Place) -> Worker | None:
        place.due, parent = math.inf, os.getpid()
        try:
            place.listen(self._address, self._family)
            pid = os.fork()
        except OSError as error:
            self._replace(place, os.strerror(error.errno or 0))
            return None
        if not pid:
            return self._worker(place, parent)
        place.take(pid)
        return None

    def _worker(self, place: Place, parent: int) -> Worker:
        others = {each.number: each.exchange.getsockname() for each in self._places if each is not place}
        worker = Worker(place.number, place.listener, place.exchange, others, place.replaced, parent, self._timeout)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # before it serves, its end is for the parent to tell
        os.setpgid(0, 0)  # a terminal's Ctrl-C is for the parent to pass on: the second one that comes does not wait
        worker.end_with_parent()
        for each in self._places:
            if each is not place:
                each.close()
        return worker

    def _hear(self, number: int, sender: int) -> None:
        if number == ALIVE and (place := self._place_of(sender)):
            self._note_life(place)
        elif number in _ENDING:
            self._end(number)
        elif number == signal.SIGHUP:
            self._tell_all(number)

    def _place_of(self, pid: int) -> Place | None:
        return next((each for each in self._places if each.pid == pid), None)

    def _note_life(self, place: Place) -> None:
        place.heard = time.monotonic()
        place.listens = True
        if not self._announced and place.number == 0:
            for each in self._places:
                each.due = math.inf if each.pid else 0
        if not self._announced and all(each.listens for each in self._places):
            self._announced = True
            self._announce()

    def _end(self, number: int) -> None:
        """Have all workers end in order, together: each has the whole time for its running answers."""
        self._interrupted = self._interrupted or number == signal.SIGINT
        if not self._is_ending:
            self._deadline = time.monotonic() + self._drain + _GRACE
        self._tell_all(number)

    def _tell_all(self, number: int) -> None:
        for place in self._places:
            if place.pid:
                os.kill(place.pid, number)

    def _bury(self) -> None:
        """Take note of those who have ended."""
        while ended := _next_ended():
            pid, code = ended
            if place := self._place_of(pid):
                self._note_end(place, code)

    def _note_end(self, place: Place, code: int) -> None:
        if self._announced and not self._is_ending:
            self._replace(place, signal.Signals(-code).name if code < 0 else code)
            return
        place.pid = 0
        place.close()  # nobody would answer there any more
        if not self._is_ending:
            self._code = code if code > 0 else 1
            self._end(signal.SIGTERM)

    def _replace(self, place: Place, why: str | int) -> None:
        told = {"worker": place.number, "pid": place.pid, "exit": why}
        pause = place.leave(in_order=why == 0)
        _log.error("a worker ended and is replaced", extra={**told, "pause": pause})

    def _look_after(self) -> None:
        """Kill workers that show no life any more, or that have not ended in time."""
        now = time.monotonic()
        stopped = now - self._looked > 3 * _LOOK_EVERY  # this process itself, and all others maybe with it
        self._looked = now
        for place in self._places:
            if stopped:
                place.heard = now
            is_stuck = place.listens and not self._is_ending and now - place.heard > self._timeout
            if place.pid and (is_stuck or now > self._deadline):
                _log.error("a worker does not answer and is killed", extra={"worker": place.number, "pid": place.pid})
                os.kill(place.pid, signal.SIGKILL)
                place.heard = now


def _next_ended() -> tuple[int, int] | None:
    """A process that has ended, and its exit code."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None
