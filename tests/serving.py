"""The service on a real socket, for tests that talk to it as a client does."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import httpx
import uvicorn
from pydantic_core import from_json

from app.composition.configuration import read_configuration
from app.main import create_app
from app.server.runner import server_config
from app.settings.service_settings import Settings
from app.tools.discovery import ConfiguredModule, discover
from tests.waiting import PATIENCE

__all__ = ["Event", "client_of", "events_of", "running", "service", "serving"]

_GRACE = 1.0
"""Seconds after the end of a test that what it left running has before it is cancelled."""


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
            await _stop(server)


async def _stop(server: uvicorn.Server) -> None:
    """Stop as uvicorn does, but no later than can be: its own shutdown sleeps for a tenth of a second at least."""
    state = server.server_state
    for listening in server.servers:
        listening.close()
    for connection in list(state.connections):
        connection.shutdown()
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.001)
    for task in list(state.tasks):
        task.cancel()
    await server.lifespan.shutdown()


@asynccontextmanager
async def serving(app: object, settings: Settings | None = None) -> AsyncGenerator[str, None]:
    """Serve any ASGI application as the service itself is served; gives its base URL."""
    async with running(uvicorn.Server(server_config(app, settings or Settings()))) as url:
        yield url


@asynccontextmanager
async def service(*packages: str, **environment: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Run the whole service as the given variables set it up, with the tool folders of more packages.

    Gives a client for it.
    """
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        configuration = read_configuration()
        more = [ConfiguredModule.read(module) for package in packages for module in discover(package)]
        configuration = replace(configuration, modules=(*configuration.modules, *more))
        app = create_app(configuration)
    finally:
        os.environ.clear()
        os.environ.update(before)
    async with serving(app, configuration.settings) as url, client_of(url) as client:
        yield client


def client_of(url: str) -> httpx.AsyncClient:
    """A patient client for a base URL; it reads no certificates, which would cost more than most tests.

    It gives up its connections long before the service does, after 5 seconds, or a busy machine would have it ask on
    one that is being closed.
    """
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=1)
    return httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False, verify=False, limits=limits)


def events_of(body: str) -> list[Event]:
    """The events of a finished stream, comments left out."""
    blocks = [block for block in body.split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [Event(each["event"], from_json(each["data"])) for each in fields]
