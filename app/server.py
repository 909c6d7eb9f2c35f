"""Serving over HTTP: sockets, signals, and uvicorn's settings."""

import os
import signal
import socket
import sys

import uvicorn
from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.problems import PROBLEM_MEDIA_TYPE, problem
from app.errors import ConfigurationError, InvalidRequest
from app.logs import configure_logging
from app.main import create_app, read_configuration
from app.settings import Settings

__all__ = ["demo", "serve", "server_config"]


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with a problem document where the request cannot even be parsed."""

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP request, and hang up."""
        body = to_json(problem(InvalidRequest(f"{msg.rstrip('.')} (or a URL of more than 64 KiB)"), ""))
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def server_config(app: object, settings: Settings) -> uvicorn.Config:
    """Set uvicorn up: no access log (it would hold the questions), no banner, a bounded shutdown."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=_Protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )


def serve() -> int:
    """Serve until a signal comes.

    Raises:
        ConfigurationError: the service cannot start as it is set up, or its address is taken.
    """
    configuration = read_configuration()
    settings = configuration.settings
    configure_logging(settings.log_level)
    app = create_app(configuration)
    with _listen(settings) as listener:
        host, port = listener.getsockname()[:2]
        model = configuration.chat_model.provider
        shown = f"[{host}]" if ":" in host else host
        print(f"toolchat on http://{shown}:{port} - chat model: {model} - try /docs", file=sys.stderr)  # noqa: T201
        server = uvicorn.Server(server_config(app, settings))
        # uvicorn raises the signal again once it has shut down in order; that end is no failure.
        signal.signal(signal.SIGTERM, server.handle_exit)
        server.run(sockets=[listener])
        return 0 if server.started else 2


def demo() -> int:
    """Serve with a sandbox beside it that plays the tools' upstreams.

    Raises:
        ConfigurationError: as :func:`serve`.
    """
    from app.sandbox import running_sandbox

    with running_sandbox() as url:
        os.environ["SANDBOX_URL"] = url
        print(f"sandbox on {url}: weather and translations are invented, and say so", file=sys.stderr)  # noqa: T201
        return serve()


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.server_host else socket.AF_INET
    try:
        return socket.create_server((settings.server_host, settings.server_port), family=family, backlog=2048)
    except OSError as error:
        place = f"{settings.server_host}:{settings.server_port}"
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such address"
        raise ConfigurationError(f"SERVER_PORT: cannot listen on {place}: {reason}") from None
