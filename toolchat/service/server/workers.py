"""Worker processes on one port, supervised by gunicorn; ``docs/decisions/workers.md`` explains the choice."""

import math
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker as GunicornWorker

from toolchat.service.observability import metrics
from toolchat.service.observability.logs import configure_logging
from toolchat.service.observability.multiprocess import forget_worker
from toolchat.service.server.runner import CLOSING_SECONDS, Server, server_config
from toolchat.service.settings.service_settings import Settings

_MEMORY = "/dev/shm"  # noqa: S108


class Worker(GunicornWorker):  # type: ignore[misc] # gunicorn has no types
    """A worker process."""

    def init_signals(self) -> None:
        """Reset the parent's signal handlers; the server installs its own."""
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGABRT, self.handle_abort)  # no core dump, which could contain the keys

    def run(self) -> None:
        """Serve until a signal; if the first worker cannot start, gunicorn ends the service, any other is replaced."""
        self.notify()  # the time limit applies to the start as well
        try:
            self.wsgi(self)
        except SystemExit:
            if self.age == 1:
                raise
            time.sleep(1)
            raise SystemExit(1) from None

    async def report_life(self) -> None:
        """Send a heartbeat, or stop as on SIGTERM if the parent is dead."""
        self.notify()
        if os.getppid() != self.ppid:
            signal.raise_signal(signal.SIGTERM)


class _Application(BaseApplication):  # type: ignore[misc]
    def __init__(self, serve: Callable[[Worker], None], options: dict[str, Any]) -> None:
        self._options = options
        super().__init__()
        self.callable = serve

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)


class _Parent(Arbiter):  # type: ignore[misc]
    def handle_hup(self) -> None:
        """Let each worker reload the key file; gunicorn would replace them all."""
        self.kill_workers(signal.SIGHUP)


def run_workers(app: FastAPI, listener: socket.socket, settings: Settings, announce: Callable[[], None]) -> int:
    """Run the workers; return the exit code, in the parent as well as in each worker."""

    def serve(worker: Worker) -> None:
        configure_logging(settings.log_level)
        config = server_config(app, settings)
        config.callback_notify, config.timeout_notify = worker.report_life, 0
        Server(config, app, lambda: None).run(sockets=[each.sock for each in worker.sockets])

    def when_ready(parent: Arbiter) -> None:
        parent.log.error_log.propagate = True
        announce()

    options = {
        "bind": f"fd://{listener.detach()}",  # gunicorn closes it
        "backlog": 2048,
        "workers": settings.server_workers,
        "worker_class": Worker,
        # For heartbeats: the rest of the file system may be read-only.
        "worker_tmp_dir": _MEMORY if os.access(_MEMORY, os.W_OK) else None,
        "timeout": math.ceil(settings.server_worker_timeout),
        "graceful_timeout": math.ceil(settings.shutdown_timeout) + CLOSING_SECONDS + 5,
        "when_ready": when_ready,
        "child_exit": _record_exit,
        "control_socket_disable": True,
        "errorlog": None,  # its lines go to the service's log
        "loglevel": "warning",
    }
    try:
        _Parent(_Application(serve, options)).run()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _record_exit(_: Arbiter, worker: Worker) -> None:
    forget_worker(worker.pid)
    metrics.WORKER_REPLACEMENTS.inc()
