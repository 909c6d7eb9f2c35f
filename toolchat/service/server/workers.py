"""Worker processes on one port, supervised by gunicorn; ``docs/decisions/workers.md`` explains the choice."""

import math
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Callable

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker as GunicornWorker

from toolchat.service.observability import metrics
from toolchat.service.observability.multiprocess import forget_worker
from toolchat.service.server.process_memory import keep_for_good
from toolchat.service.settings.service_settings import Settings

_GRACE = 5
"""Seconds in addition to SHUTDOWN_TIMEOUT that a worker has to close its resources."""
_STEADY = 10.0
"""A worker that lives this many seconds counts as healthy: its exit is not one of a series of failures."""
_LONGEST_PAUSE = 30.0
_MEMORY = "/dev/shm"  # noqa: S108 - for heartbeats: the rest of the file system may be read-only
_IGNORED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGABRT)
"""gunicorn sends a stuck worker SIGABRT before SIGKILL; it could write a core dump with the keys in it."""

_BLOCKED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that wait while a worker is forked: it would put them into its copy of the parent's queue, and go on."""


class Worker(GunicornWorker):  # type: ignore[misc] # gunicorn has no types
    """A worker process."""

    started_at = 0.0
    ended_as_asked: mmap.mmap
    """One byte, shared with the parent, which gunicorn does not tell the exit code: 1 after an orderly end."""
    is_first = False
    """Whether the others start only once this one serves, so that an error at start is reported only once."""

    def init_signals(self) -> None:
        """Reset the parent's signal handlers, and accept signals again; the server installs its own handlers."""
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_IGN if each in _IGNORED else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)

    def run(self) -> None:
        """Serve until a signal ends it; a worker that cannot start ends the whole service only if it is the first."""
        try:
            self.wsgi(self)
        except SystemExit as failed:
            raise SystemExit(failed.code if self.is_first else 1) from None
        self.ended_as_asked[0] = 1

    def report_start(self) -> None:
        """Make the parent start the other workers."""
        if self.is_first:
            os.kill(self.ppid, signal.SIGTTIN)

    async def report_life(self) -> None:
        """Send a heartbeat, or stop as on SIGTERM if the parent is dead."""
        self.notify()
        if os.getppid() != self.ppid:
            signal.raise_signal(signal.SIGTERM)


class _Application(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings, serve: Callable[[Worker], None]) -> None:
        self._settings = settings
        super().__init__()
        self.callable = serve

    def load_config(self) -> None:
        options = {
            "workers": self._settings.server_workers,
            "worker_class": Worker,
            "worker_tmp_dir": _MEMORY if os.access(_MEMORY, os.W_OK) else None,
            "timeout": math.ceil(self._settings.server_worker_timeout),
            "graceful_timeout": math.ceil(self._settings.shutdown_timeout) + _GRACE,
            "pre_fork": Supervisor.prepare,
            "post_fork": Supervisor.detach,
            "child_exit": Supervisor.record_exit,
            "control_socket_disable": True,
            "errorlog": None,  # its lines go to the service's log
            "loglevel": "warning",
        }
        for name, value in options.items():
            self.cfg.set(name, value)


class Supervisor(Arbiter):  # type: ignore[misc]
    """gunicorn's parent process, with a listener for each worker, and pauses between repeated failures.

    Args:
        listener: the socket of the first worker; the others listen on the same address.
        settings: the number of workers and their time limits.
        announce: called once all workers are started and the first one serves.
        on_stop: called before the workers are stopped.
    """

    def __init__(
        self,
        listener: socket.socket,
        settings: Settings,
        serve: Callable[[Worker], None],
        announce: Callable[[], None],
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(_Application(settings, serve))
        self.log.error_log.propagate = True
        self._announce, self._on_stop = announce, on_stop
        self._failures, self._resume_at, self._interrupted = 0, 0.0, False
        self._address, self._family = listener.getsockname(), listener.family
        is_ipv6 = listener.family == socket.AF_INET6
        self._is_dual_stack = is_ipv6 and not listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
        self.LISTENERS = [listener]
        if sys.platform == "linux":  # other systems do not distribute connections over several listeners
            # Set after it was bound, so that a port on which another service listens is still refused.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.num_workers: int = 1  # see handle_ttin

    def run(self) -> int:
        """Run the workers; return the exit code, in the parent as well as in each worker."""
        keep_for_good()
        try:
            super().run()
        except SystemExit as ended:
            return 130 if self._interrupted else int(ended.code or 0)
        return 0

    def spawn_worker(self) -> None:
        """Start a worker, which accepts signals as soon as it has handlers of its own."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            super().spawn_worker()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)

    def prepare(self, worker: Worker) -> None:
        """Give a new worker a listener that no other uses; the parent keeps it open when the worker is replaced."""
        worker.started_at, worker.ended_as_asked = time.monotonic(), mmap.mmap(-1, 1)
        worker.is_first = self.num_workers < self.cfg.workers
        used = [each.sockets[0] for each in self.WORKERS.values()]
        if len(self.LISTENERS) == len(used) and sys.platform == "linux":
            more = socket.create_server(
                self._address, family=self._family, backlog=2048, reuse_port=True, dualstack_ipv6=self._is_dual_stack
            )
            self.LISTENERS.append(more)
        worker.sockets = [each for each in self.LISTENERS if each not in used][:1] or self.LISTENERS

    def detach(self, worker: Worker) -> None:
        """Detach a new worker from the others, and from the terminal, whose Ctrl-C the parent forwards."""
        os.setpgid(0, 0)
        for each in self.LISTENERS:
            if each not in worker.sockets:
                each.close()
        worker.notify()  # the time limit applies to its start as well

    def record_exit(self, worker: Worker) -> None:
        """Delay the next start after repeated failures; until then, connections go to the other workers."""
        forget_worker(worker.pid)
        metrics.WORKER_REPLACEMENTS.inc()
        is_healthy = worker.ended_as_asked[0] or time.monotonic() - worker.started_at >= _STEADY
        self._failures = 0 if is_healthy else self._failures + 1
        if self._failures < 2 or not self.LISTENERS:  # gunicorn closes them all in order to stop
            return
        pause = min(_LONGEST_PAUSE, 2.0 ** (self._failures - 2))
        self._resume_at = time.monotonic() + pause
        if len(self.LISTENERS) > 1:
            self.LISTENERS.remove(worker.sockets[0])
            worker.sockets[0].close()
        self.log.error("workers fail repeatedly", extra={"pause": pause})

    def manage_workers(self) -> None:
        """Start missing workers, unless the last ones failed."""
        if time.monotonic() >= self._resume_at:
            super().manage_workers()

    def handle_ttin(self) -> None:
        """Start the other workers: the first one sends this signal once it serves."""
        if self.num_workers < self.cfg.workers:
            self.num_workers = self.cfg.workers
            self.manage_workers()
            self._announce()

    def stop(self, graceful: bool = True) -> None:
        """Stop the workers; report it first."""
        self._on_stop()
        super().stop(graceful)

    def handle_hup(self) -> None:
        """Make all workers reload the key file, instead of replacing them."""
        self.kill_workers(signal.SIGHUP)

    def handle_usr2(self) -> None:
        """Ignore the signal, on which gunicorn would start a second service beside this one."""

    def handle_int(self) -> None:
        """Stop as on SIGTERM."""
        self._interrupted = True
        raise StopIteration
