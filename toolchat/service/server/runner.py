"""Serving over HTTP: the listening socket, signals, draining, memory, uvicorn's settings, and reports to systemd."""

import errno
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from toolchat.errors import ConfigurationError
from toolchat.service.access.runtime import Access, generated_key_notice
from toolchat.service.api.service import Admission, ServiceState
from toolchat.service.observability.logs import configure_logging, write_text
from toolchat.service.server.client_limits import ConnectionLimit, SlowClientWatch, check_open_files
from toolchat.service.server.http_protocol import ProblemProtocol
from toolchat.service.server.process_memory import keep_for_good, resume_collections, trim_heap
from toolchat.service.settings.service_settings import Settings

_log = logging.getLogger(__name__)

_TICKS_BETWEEN_TRIMS, _TICKS_BETWEEN_FULL_TRIMS = 50, 600
"""Of 0.1 s each. A trim mostly takes 0.3 ms, a full one longer, the more conversations are stored."""


def server_config(app: object, settings: Settings) -> uvicorn.Config:
    """Configure uvicorn: no access log (it would contain the questions), no banner, a bounded shutdown."""
    # uvicorn warns about invalid requests; the protocol answers and logs them itself, at a lower level.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    limit = ConnectionLimit()
    protocol = partial(
        ProblemProtocol,
        limit=limit,
        watch=SlowClientWatch(settings.server_client_timeout, settings.server_client_timeout),
    )
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=protocol,  # type: ignore[arg-type] # uvicorn only calls it, once per connection
        log_config=None,
        access_log=False,
        backlog=limit.backlog,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        root_path=settings.server_root_path,
        timeout_keep_alive=settings.server_idle_timeout,  # type: ignore[arg-type] # uvicorn only passes it to a timer
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )


def serve(app: FastAPI, settings: Settings, *, provider: str, notice: str = "", hint: str = "") -> int:
    """Serve until a signal stops the server; return the exit code."""
    check_open_files()
    notify = systemd_notifier()
    on_stop = partial(notify, "STOPPING=1")
    with _listen(settings) as listener:
        banner = notice + _banner(listener, provider, app.state.access.claim_generated_key()) + hint

        def announce() -> None:
            write_text(banner)
            notify("READY=1")

        if settings.server_workers > 1:
            return _serve_by_workers(app, listener, settings, announce, on_stop)
        _reload_on_sighup(app.state.access)
        server = _Server(server_config(app, settings), app, announce, on_stop)
        server.run(sockets=[listener])
        return server.code


def _serve_by_workers(
    app: FastAPI,
    listener: socket.socket,
    settings: Settings,
    announce: Callable[[], None],
    on_stop: Callable[[], None],
) -> int:
    if not hasattr(os, "fork"):
        raise ConfigurationError("SERVER_WORKERS: more than one needs a system with fork, such as Linux or macOS")
    from toolchat.service.server.workers import Supervisor, Worker

    def serve_in_worker(worker: Worker) -> None:
        configure_logging(settings.log_level)
        _reload_on_sighup(app.state.access)
        config = server_config(app, settings)
        config.callback_notify, config.timeout_notify = worker.report_life, 0
        _Server(config, app, worker.report_start).run(sockets=worker.sockets)

    return Supervisor(listener, settings, serve_in_worker, announce, on_stop).run()


class _Server(uvicorn.Server):
    """uvicorn's server with a banner and draining: it keeps listening until the last chat request is answered.

    uvicorn would refuse connections as soon as it is asked to stop. While draining, readiness probes fail and new chat
    requests get 503 with Retry-After, so that a load balancer can move its traffic.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        on_start: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        protocol = cast("Callable[..., ProblemProtocol]", config.http)
        config.http = partial(protocol, is_stopping=lambda: self.should_exit)  # type: ignore[assignment]
        self._app = app
        self._on_start, self._on_stop = on_start, on_stop
        self._interrupted = False
        self._drain_deadline: float | None = None

    @property
    def code(self) -> int:
        """The exit code: 130 after Ctrl-C, 0 after another signal, 2 if the service could not start."""
        return 130 if self._interrupted else 0 if self.started else 2

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle the signals that stop the server.

        Unlike uvicorn's, this neither restores the handlers nor raises the signals again afterwards: a further Ctrl-C
        would interrupt the cleanup.
        """
        for name in ("SIGINT", "SIGTERM", "SIGQUIT", "SIGBREAK"):
            if number := getattr(signal, name, None):
                signal.signal(number, self.handle_exit)
        for name in ("SIGUSR1", "SIGUSR2"):  # log rotation sends them to every service; they would end the process
            if number := getattr(signal, name, None):
                signal.signal(number, signal.SIG_IGN)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop to accept chat requests; a second SIGINT or SIGQUIT cancels those that are running."""
        if self.should_exit and sig != signal.SIGTERM:
            self.force_exit = True
        self._interrupted = self._interrupted or sig == signal.SIGINT
        super().handle_exit(sig, frame)
        if self._admission is not None:
            self._admission.draining = True

    async def on_tick(self, counter: int) -> bool:
        """Trim the heap from time to time; return whether the server should stop."""
        if counter % _TICKS_BETWEEN_TRIMS == 0:
            trim_heap(2 if counter % _TICKS_BETWEEN_FULL_TRIMS == 0 and not self._running else 1)
        return await super().on_tick(counter) and self._is_drained()

    def _is_drained(self) -> bool:
        now, limit, running = time.monotonic(), self.config.timeout_graceful_shutdown or 0, self._running
        if self._drain_deadline is None:
            self._drain_deadline = now + limit
            _log.info("draining", extra={"questions_in_flight": running})
            self._on_stop()
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
        """Start to serve, and report it."""
        await super().startup(sockets)
        if self.started:
            keep_for_good()
            resume_collections()
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Run the lifespan's shutdown even if requests were cut off; uvicorn skips it then."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def _reload_on_sighup(access: Access) -> None:
    """Reload the key file on SIGHUP."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: access.reload())


def _banner(listener: socket.socket, provider: str, generated_key: str) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    banner = f"toolchat on {url} - chat model: {provider}\n  playground: {url}/playground\n  Swagger UI: {url}/docs"
    if not generated_key:
        return banner
    # A browser cannot open the wildcard address.
    reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)
    page = f"http://{reachable}:{port}/playground/#key={generated_key}"
    return f"{banner}\n{generated_key_notice(generated_key)}\n  playground with this key: {page}"


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.server_host, settings.server_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()  # it means every address of the machine
    try:
        return socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=both)
    except OSError as error:
        wrong_host = error.errno is None or error.errno < 0 or error.errno == errno.EADDRNOTAVAIL
        variable = "SERVER_HOST" if wrong_host else "SERVER_PORT"
        reason = "not an address of this machine" if wrong_host else os.strerror(error.errno or 0)
        raise ConfigurationError(f"{variable}: cannot listen on {host}:{port}: {reason}") from None


def systemd_notifier() -> Callable[[str], None]:
    """Return a function that sends a state such as ``READY=1``; it does nothing without systemd.

    The variable is removed: gunicorn would otherwise report that it is ready before a worker serves.
    """
    address = os.environ.pop("NOTIFY_SOCKET", "")

    def notify(state: str) -> None:
        if not address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError as error:
            _log.warning("systemd could not be notified", extra={"state": state, "reason": str(error)})

    return notify
