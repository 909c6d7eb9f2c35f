"""Serving over HTTP: the listening socket, signals, draining, and uvicorn's settings."""

import asyncio
import errno
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from toolchat.errors import ConfigurationError
from toolchat.service.access.runtime import generated_key_notice
from toolchat.service.api.service import Admission, ServiceState
from toolchat.service.observability.logs import write_text
from toolchat.service.process import keep_objects
from toolchat.service.server.client_limits import ClientLimits
from toolchat.service.server.http_protocol import LimitedProtocol
from toolchat.service.settings.base import reload_secrets
from toolchat.service.settings.service_settings import Settings

CLOSING_SECONDS = 5
"""After the last question: time for the connections to receive the rest."""


def server_config(app: object, settings: Settings) -> uvicorn.Config:
    """Configure uvicorn: no access log (it would contain the questions), no banner, a bounded shutdown."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns about each request that it cannot parse
    limits = ClientLimits(settings.server_client_timeout)
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=type("Protocol", (LimitedProtocol,), {"limits": limits}),
        ws="none",
        log_config=None,
        access_log=False,
        backlog=limits.backlog,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        root_path=settings.server_root_path,
        timeout_keep_alive=settings.server_idle_timeout,  # type: ignore[arg-type] # uvicorn only passes it to a timer
        timeout_graceful_shutdown=CLOSING_SECONDS,
    )


def serve(app: FastAPI, settings: Settings, *, provider: str, notice: str = "") -> int:
    """Serve until a signal stops the server; return the exit code."""
    with _listen(settings) as listener:
        banner = notice + _banner(listener, provider, app.state.access.claim_generated_key())
        if settings.server_workers == 1:
            server = Server(server_config(app, settings), app, lambda: _announce(banner))
            server.run(sockets=[listener])
            return 130 if server.interrupted else 0
        if not hasattr(os, "fork"):
            raise ConfigurationError("SERVER_WORKERS: more than one needs a system with fork, such as Linux or macOS")
        from toolchat.service.server.workers import run_workers

        return run_workers(app, listener, settings, lambda: write_text(banner))


class Server(uvicorn.Server):
    """uvicorn's server with draining: it goes on listening until the last chat request is answered.

    uvicorn would refuse connections as soon as it is asked to stop. While draining, readiness probes fail and new chat
    requests get 503 with Retry-After, so that a load balancer can move its traffic.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._app, self._on_start = app, on_start
        self._drain_until = 0.0
        self.interrupted = False
        """Whether Ctrl-C has stopped it."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve, handle two more signals, and report it."""
        if hasattr(signal, "SIGQUIT"):
            signal.signal(signal.SIGQUIT, self.handle_exit)
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        await super().startup(sockets)
        keep_objects()
        self._on_start()

    def _reload(self) -> None:
        self._app.state.access.reload()
        reload_secrets()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Accept no more chat requests; a second Ctrl-C cancels those that are running."""
        limit = self._app.state.service.settings.shutdown_timeout if self._admission else 0
        if not self.should_exit:
            self.should_exit, self._drain_until = True, time.monotonic() + limit
        elif sig == signal.SIGINT:
            self._drain_until = 0
        self.interrupted = self.interrupted or sig == signal.SIGINT
        self.config.http_protocol_class.limits.is_draining = True  # type: ignore[attr-defined]
        if self._admission is not None:
            self._admission.draining = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server should stop: not before the questions that run have ended, or had their time."""
        should_stop = await super().on_tick(counter)
        if should_stop and self._admission and self._admission.in_flight:
            if time.monotonic() < self._drain_until:
                return False
            for task in self.server_state.tasks:
                task.cancel()
        return should_stop

    @property
    def _admission(self) -> Admission | None:
        service = getattr(self._app.state, "service", None)
        return service.admission if isinstance(service, ServiceState) else None


def _announce(banner: str) -> None:
    write_text(banner)
    if "NOTIFY_SOCKET" in os.environ:  # systemd, so gunicorn can be imported
        from gunicorn.systemd import sd_notify

        sd_notify("READY=1", logging.getLogger(__name__))


def _banner(listener: socket.socket, provider: str, generated_key: str) -> str:
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    banner = f"toolchat on {url} - chat model: {provider}\n  playground: {url}/playground\n  Swagger UI: {url}/docs"
    if not generated_key:
        return banner
    page = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")  # which a browser can open
    notice = generated_key_notice(generated_key)
    return f"{banner}\n{notice}\n  playground with this key: {page}/playground/#key={generated_key}"


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
