"""Runs the service on a real socket, for tests that act as its client."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import httpx
import uvicorn
from pydantic_core import from_json

from tests.application import create_app, read_configuration
from tests.waiting import PATIENCE, until
from toolchat.service.composition.configuration import Configuration
from toolchat.service.server.runner import server_config
from toolchat.service.settings.service_settings import Settings, Tuning
from toolchat.service.tool_modules.discovery import ConfiguredModule, discover

_GRACE = 1.0
"""Seconds that requests still running at the end of a test have before they are cancelled."""


@dataclass(frozen=True)
class Event:
    """One server-sent event with JSON data."""

    name: str
    data: Any


@asynccontextmanager
async def running(server: uvicorn.Server) -> AsyncGenerator[str, None]:
    """Run a server in this event loop, on a free port; yields its base URL."""
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
    """Stop as uvicorn does, but at once: its own shutdown sleeps for at least a tenth of a second."""
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
    """Serve an ASGI application with the service's own server; yields its base URL."""
    async with running(uvicorn.Server(server_config(app, settings or Settings()))) as url:
        yield url


def configured(*parts: str | Tuning, **environment: str) -> Configuration:
    """The configuration with environment variables, the tool folders of more packages, and other constants."""
    with _environment(environment):
        return _configured(*parts)


def _configured(*parts: str | Tuning) -> Configuration:
    packages = [each for each in parts if isinstance(each, str)]
    (tuning,) = [each for each in parts if isinstance(each, Tuning)] or [Tuning()]
    configuration = read_configuration(serving=False, tuning=tuning)
    more = [ConfiguredModule.read(module) for package in packages for module in discover([package])]
    return replace(configuration, modules=(*configuration.modules, *more))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None, None, None]:
    """Set variables within the block; its end undoes also what else was set, such as by ``.env``."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@asynccontextmanager
async def service(*parts: str | Tuning, **environment: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Run the whole service with environment variables, the tool folders of more packages, and other constants.

    Yields a client for it.
    """
    async with AsyncExitStack() as stack:
        with _environment(environment):  # OpenTelemetry's packages read theirs when the service starts
            configuration = _configured(*parts)
            app = create_app(configuration)
            url = await stack.enter_async_context(serving(app, configuration.settings))
            await until(lambda: not app.state.service.tools.starting)
        yield await stack.enter_async_context(client_of(url))


def client_of(url: str) -> httpx.AsyncClient:
    """A client with a long timeout; it loads no certificates, which would take longer than most tests.

    It closes idle connections long before the service does, after 5 seconds, so that on a busy machine it never sends
    a request on a connection that the service is closing.
    """
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=1)
    return httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False, verify=False, limits=limits)


def events_of(body: str) -> list[Event]:
    """The events of a finished stream, without comments."""
    blocks = [block for block in body.split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [Event(each["event"], from_json(each["data"])) for each in fields]
