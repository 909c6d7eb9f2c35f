"""Serving over HTTP: sockets, signals, and uvicorn's settings."""

import errno
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

import app.server.deferred_imports  # noqa: F401 - before FastAPI

# isort: split
import uvicorn
from fastapi import FastAPI

from app.access.runtime import Access, generated_key_notice
from app.api.service import Admission, ServiceState
from app.composition.configuration import read_configuration
from app.main import create_app
from app.observability.logs import configure_logging, write_text
from app.server.connection_limit import ConnectionLimit, allow_open_files
from app.server.process_memory import collect_seldom, give_back_memory
from app.server.protocol import ProblemProtocol
from app.settings.service_settings import Settings
from toolchat.errors import ConfigurationError
from toolchat.tool_calling.threads import stop_threads

if TYPE_CHECKING:
    from app.server.workers import Worker

__all__ = ["demo", "serve", "server_config"]

_log = logging.getLogger(__name__)

_TICKS_OF_MEMORY = 50
"""uvicorn's ticks, a tenth of a second each, between two times that memory is given back; it takes 0.3 ms mostly."""
_ALL_MEMORY_EVERY = 60.0
"""Seconds until, where nothing runs, all objects are looked at: it takes longer the more conversations are kept."""


def server_config(app: object, settings: Settings) -> uvicorn.Config:
    """Set uvicorn up: no access log (it would hold the questions), no banner, a bounded shutdown."""
    # It warns of what clients send; that is told in words of ours, and is no reason to look into the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    limit = ConnectionLimit()
    protocol = partial(
        ProblemProtocol,
        read_timeout=settings.server_read_timeout,
        write_timeout=settings.server_write_timeout,
        limit=limit,
    )
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=protocol,  # type: ignore[arg-type] # uvicorn only calls it, once for each connection
        log_config=None,
        access_log=False,
        backlog=limit.backlog,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        root_path=settings.server_root_path,
        timeout_keep_alive=settings.server_idle_timeout,  # type: ignore[arg-type] # it only becomes a timer
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )


def serve(notice: str = "") -> int:
    """Serve until a signal comes.

    Args:
        notice: lines to tell before those that say where the service listens.

    Raises:
        ConfigurationError: the service cannot start as it is set up, or its address is taken.
    """
    configuration = read_configuration()
    settings = configuration.settings
    configure_logging(settings.log_level, thread=settings.server_workers == 1)
    allow_open_files()
    app = create_app(configuration)
    with _listen(settings) as listener:
        banner = notice + _banner(listener, configuration.chat_model.provider, app.state.access.claim_generated_key())
        _read_again_on_hangup(app.state.access)
        worker = _one_of_several(listener, settings, banner) if settings.server_workers > 1 else None
        if isinstance(worker, int):
            return worker
        server = _Server(server_config(app, settings), app, banner, worker)
        server.run(sockets=[worker.listener if worker else listener])
    code = server.code
    if not stop_threads(1):
        logging.shutdown()
        os._exit(code)
    return code


def _one_of_several(listener: socket.socket, settings: Settings, banner: str) -> "Worker | int":
    """Fork workers; see :meth:`app.server.workers.Supervisor.run`."""
    if sys.platform != "linux":
        raise ConfigurationError("SERVER_WORKERS: more than one needs Linux")
    from app.server.workers import Supervisor

    worker = Supervisor(listener, settings, announce=partial(write_text, banner)).run()
    if not isinstance(worker, int):
        configure_logging(settings.log_level)
    return worker


class _Server(uvicorn.Server):
    """uvicorn's server, which says where it listens once it does, and listens until the last question is answered.

    uvicorn would refuse connections as soon as it is told to stop; here probes are told that the service is not ready
    any more, and clients that they should come back, while the questions that run are answered.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, banner: str, worker: "Worker | None" = None) -> None:
        super().__init__(config)
        self._app = app
        self._banner = banner
        self._worker = worker
        self._drain_deadline: float | None = None
        self._all_memory_at = time.monotonic()

    @property
    def code(self) -> int:
        """The exit code: to have been interrupted by hand is told, to have been stopped in order is no failure."""
        interrupted = signal.SIGINT in self._captured_signals
        return 130 if interrupted else 0 if self.started else 2

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Hear of the end from now on; unlike uvicorn's own, this neither raises signals again nor lets later ones in.

        A further interrupt would break off what is closed in order.
        """
        for name in ("SIGINT", "SIGTERM", "SIGQUIT", "SIGBREAK"):
            if number := getattr(signal, name, None):
                signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no more questions."""
        super().handle_exit(sig, frame)
        if self._admission is not None:
            self._admission.draining = True

    async def on_tick(self, counter: int) -> bool:
        """Say whether to stop, which is when nothing runs any more or its time is over."""
        if counter % _TICKS_OF_MEMORY == 0:
            self._give_back_memory()
        return await super().on_tick(counter) and self._is_drained()

    def _give_back_memory(self) -> None:
        now = time.monotonic()
        is_all = not self._running and now >= self._all_memory_at
        give_back_memory(2 if is_all else 1)
        if is_all:
            self._all_memory_at = now + _ALL_MEMORY_EVERY

    def _is_drained(self) -> bool:
        now, limit, running = time.monotonic(), self.config.timeout_graceful_shutdown or 0, self._running
        if self._drain_deadline is None:
            self._drain_deadline = now + limit
            _log.info("draining", extra={"questions_in_flight": running})
        if running and now < self._drain_deadline and not self.force_exit:
            return False
        self.config.timeout_graceful_shutdown = max(0, math.ceil(self._drain_deadline - now))
        return True

    @property
    def _running(self) -> int:
        return self._admission.in_flight if self._admission else 0

    @property
    def _admission(self) -> Admission | None:
        service = getattr(self._app.state, "service", None)
        return service.admission if isinstance(service, ServiceState) else None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            collect_seldom()
            if self._worker is None:
                write_text(self._banner)
            else:
                await self._worker.join(self._app)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what the service opened even where answers are broken off, which uvicorn then leaves out."""
        if self._worker is not None:
            self._worker.stop_listening()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def _read_again_on_hangup(access: Access) -> None:
    """Let SIGHUP have read again what can be: the key file."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: access.reload())


def _banner(listener: socket.socket, provider: str, made_key: str) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    banner = f"toolchat on {url} - chat model: {provider}\n  the page: {url}/playground\n  Swagger UI: {url}/docs"
    if not made_key:
        return banner
    # One cannot browse to "any address".
    near = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)
    page = f"http://{near}:{port}/playground/#key={made_key}"
    return f"{banner}\n{generated_key_notice(made_key)}\n  the page, with this key: {page}"


def demo() -> int:
    """Serve with a sandbox beside it that plays the tools' upstreams.

    Raises:
        ConfigurationError: as :func:`serve`.
    """
    from app.sandbox import running_sandbox

    with running_sandbox() as url:
        os.environ["SANDBOX_URL"] = url
        os.environ["SERVER_WORKERS"] = "1"  # what invents the answers is a thread of this process
        return serve(f"sandbox on {url}: weather and translations are invented, and say so\n")


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.server_host, settings.server_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        wrong_host = error.errno is None or error.errno < 0 or error.errno == errno.EADDRNOTAVAIL
        variable = "SERVER_HOST" if wrong_host else "SERVER_PORT"
        reason = "no address of this machine" if wrong_host else os.strerror(error.errno or 0)
        raise ConfigurationError(f"{variable}: cannot listen on {host}:{port}: {reason}") from None
