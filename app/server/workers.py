"""Worker processes on one port, supervised by gunicorn; ``docs/decisions/workers.md`` explains the choice."""

import gc
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker as GunicornWorker

from app.settings.service_settings import Settings

__all__ = ["Worker", "supervise"]

_GRACE = 5
"""Seconds in addition to SHUTDOWN_TIMEOUT that a worker has to close its resources."""
_STEADY = 10.0
"""A worker that lives this many seconds counts as healthy: its exit is not one of a series of failures."""
_LONGEST_PAUSE = 30.0
_MEMORY_FILES = "/dev/shm"  # noqa: S108 - gunicorn's heartbeats; the rest of the file system may be read-only

_log = logging.getLogger(__name__)


class Worker(GunicornWorker):
    """A worker process."""

    is_first = False
    """Whether the others start only once this one serves, so that an error at start is reported only once."""
    started_at = 0.0

    def init_signals(self) -> None:
        """Reset the parent's signal handlers; the server installs its own."""
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, lambda *_: self.app.reload())
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGABRT, signal.SIG_IGN)  # SIGKILL follows; a core dump would contain the keys

    def run(self) -> None:
        """Serve until a signal ends it; a worker that cannot start ends the whole service only if it is the first."""
        try:
            self.wsgi(self)
        except SystemExit as failed:
            raise SystemExit(failed.code if self.is_first else 1) from None

    def report_start(self) -> None:
        """Make the parent start the other workers."""
        if self.is_first:
            os.kill(self.ppid, signal.SIGTTIN)

    async def report_life(self) -> None:
        """Send a heartbeat, or stop as on SIGTERM if the parent is dead."""
        self.notify()
        if os.getppid() != self.ppid:
            signal.raise_signal(signal.SIGTERM)


class _Application(BaseApplication):  # type: ignore[misc] # gunicorn has no types
    """The service as gunicorn sees it.

    Args:
        settings: the number of workers and their time limits.
        serve: serves in a worker.
        reload: reloads the key file.
    """

    def __init__(self, settings: Settings, serve: Callable[[Worker], None], reload: Callable[[], object]) -> None:
        self._settings, self._serve, self.reload = settings, serve, reload
        super().__init__()

    def load(self) -> Callable[[Worker], None]:
        """Return what a worker runs."""
        return self._serve

    def load_config(self) -> None:
        """Configure gunicorn; its log lines go to the service's log."""
        options = {
            "workers": self._settings.server_workers,
            "worker_class": Worker,
            "worker_tmp_dir": _MEMORY_FILES if os.access(_MEMORY_FILES, os.W_OK) else None,
            "timeout": math.ceil(self._settings.server_worker_timeout),
            "graceful_timeout": math.ceil(self._settings.shutdown_timeout) + _GRACE,
            "pre_fork": Supervisor.prepare,
            "post_fork": Supervisor.enter,
            "child_exit": Supervisor.record_exit,
            "control_socket_disable": True,
            "errorlog": None,
            "loglevel": "warning",
        }
        for name, value in options.items():
            self.cfg.set(name, value)


class Supervisor(Arbiter):  # type: ignore[misc]
    """gunicorn's parent process, with a listener per worker and pauses between repeated failures."""

    def __init__(self, application: _Application, listener: socket.socket) -> None:
        super().__init__(application)
        logging.getLogger("gunicorn.error").propagate = True
        self.interrupted = False
        self._address, self._family = listener.getsockname(), listener.family
        self._failures, self._resume_at = 0, 0.0
        self.LISTENERS = [listener]
        if sys.platform == "linux":  # other systems do not distribute connections over listeners
            # Set after binding, so that a port on which another service listens is still refused.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self.LISTENERS += [self._open_listener() for _ in range(self.num_workers - 1)]
        self.num_workers = 1

    def _open_listener(self) -> socket.socket:
        return socket.create_server(self._address, family=self._family, backlog=2048, reuse_port=True)

    def prepare(self, worker: Worker) -> None:
        """Give a new worker a listener that no other uses; the parent keeps it open when the worker is replaced."""
        worker.is_first = self.num_workers < self.cfg.workers
        worker.started_at = time.monotonic()
        used = [each.sockets[0] for each in self.WORKERS.values()]
        free = [each for each in self.LISTENERS if each not in used]
        if not free and sys.platform == "linux":
            free = [self._open_listener()]
            self.LISTENERS += free
        worker.sockets = (free or self.LISTENERS)[:1]

    def enter(self, worker: Worker) -> None:
        """Detach a new worker from the others and from the terminal, whose Ctrl-C the parent forwards."""
        os.setpgid(0, 0)
        for each in self.LISTENERS:
            if each not in worker.sockets:
                each.close()
        worker.notify()  # the time limit applies to its start as well

    def record_exit(self, worker: Worker) -> None:
        """Delay the next start after repeated failures; meanwhile connections go to the other workers."""
        self._failures = 0 if time.monotonic() - worker.started_at >= _STEADY else self._failures + 1
        if self._failures < 2 or not self.LISTENERS:
            return
        pause = min(_LONGEST_PAUSE, 2.0 ** (self._failures - 2))
        _log.error("workers fail repeatedly", extra={"pause": pause})
        self._resume_at = time.monotonic() + pause
        if len(self.LISTENERS) > 1:
            self.LISTENERS.remove(worker.sockets[0])
            worker.sockets[0].close()

    def manage_workers(self) -> None:
        """Start missing workers, unless the last ones failed."""
        if time.monotonic() >= self._resume_at:
            super().manage_workers()

    def handle_ttin(self) -> None:
        """Start the other workers: the first one serves."""
        self.num_workers = self.cfg.workers
        self.manage_workers()

    def handle_hup(self) -> None:
        """Make all workers reload the key file, instead of replacing them."""
        self.kill_workers(signal.SIGHUP)

    def handle_int(self) -> None:
        """Stop as on SIGTERM."""
        self.interrupted = True
        raise StopIteration


def supervise(
    listener: socket.socket, settings: Settings, serve: Callable[[Worker], None], reload: Callable[[], object]
) -> int:
    """Run the configured number of workers; return the exit code, in the parent as well as in each worker.

    Args:
        listener: the socket of the first worker; the others listen on the same address.
        settings: the number of workers and their time limits.
        serve: serves in a worker.
        reload: reloads the key file in a worker.
    """
    supervisor = Supervisor(_Application(settings, serve, reload), listener)
    gc.collect()
    gc.freeze()  # a collection in a worker would write to every object, and so copy the shared memory
    try:
        supervisor.run()
    except SystemExit as ended:
        return 130 if supervisor.interrupted else int(ended.code or 0)
    return 0
