"""The service on a real socket, for tests that talk to it as a client does."""

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from pydantic_core import from_json

from app.main import create_app, read_configuration
from app.server import server_config
from app.settings import Settings

__all__ = ["Event", "events_of", "running", "service", "serving"]


@dataclass(frozen=True)
class Event:
    """One server-sent event with JSON data."""

    name: str
    data: Any


@asynccontextmanager
async def running(server: uvicorn.Server) -> AsyncGenerator[str, None]:
    """Run a server in this event loop, on a free port; gives its base URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        try:
            await server.startup(sockets=[listener])
        except SystemExit:
            raise RuntimeError("the service did not start; the log says why") from None
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.config.timeout_graceful_shutdown = 1
            await server.shutdown(sockets=[listener])


@asynccontextmanager
async def serving(app: object, settings: Settings | None = None) -> AsyncGenerator[str, None]:
    """Serve any ASGI application as the service itself is served; gives its base URL."""
    async with running(uvicorn.Server(server_config(app, settings or Settings()))) as url:
        yield url


@asynccontextmanager
async def service(**environment: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Run the whole service as the given variables set it up; gives a client for it."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        configuration = read_configuration()
        app = create_app(configuration)
    finally:
        os.environ.clear()
        os.environ.update(before)
    async with (
        serving(app, configuration.settings) as url,
        httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client,
    ):
        yield client


def events_of(body: str) -> list[Event]:
    """The events of a finished stream, comments left out."""
    blocks = [block for block in body.split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [Event(each["event"], from_json(each["data"])) for each in fields]
