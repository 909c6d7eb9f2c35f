"""Several processes on one port, and what can be asked of them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from tests.command_line import Process, started
from tests.players.redis_server import RedisServer
from tests.service.observability.reading import Figures, figures_of
from tests.service.server.paced_model import PacedModel
from tests.service.server.raw_client import RawClient
from tests.serving import client_of
from tests.waiting import until

__all__ = [
    "ANSWER",
    "MANY",
    "Service",
    "all_answer",
    "asked",
    "has_ended",
    "set_up",
    "staying",
    "streams_at_all",
    "workers",
]

ANSWER = "begunfinished"
MANY = 40
"""Connections of which by all likelihood every worker has some."""


@dataclass(frozen=True)
class Service:
    """The parent of several workers."""

    process: Process
    url: str

    @property
    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def connections(self) -> list[int]:
        """How many connections each worker holds."""
        return [_connections(each, self.port) for each in self.workers]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def figures(self) -> Figures:
        """As one of them reports, whichever is asked: each time by a new connection."""
        async with client_of(self.url) as client:
            return await figures_of(client)

    async def total(self, name: str) -> float:
        """The samples of a name, added up."""
        return sum(value for (sample, _), value in (await self.figures()).items() if sample == name)


def _connections(worker: psutil.Process, port: int) -> int:
    try:
        found = worker.net_connections("tcp4")
    except psutil.Error:  # it has ended
        return 0
    return sum(each.laddr.port == port and each.status == psutil.CONN_ESTABLISHED for each in found)


@asynccontextmanager
async def workers(count: int, folder: Path, **variables: str) -> AsyncGenerator[Service, None]:
    """Start a service, and wait for all its workers: it prints its address once the first one serves."""
    with started("--workers", str(count), cwd=folder, **variables) as (process, url):
        service = Service(process, url)
        await until(partial(all_answer, service, count))
        yield service


def set_up(redis: RedisServer, model: PacedModel) -> dict[str, str]:
    return {"REDIS_URL": redis.url, "OPENAI_BASE_URL": model.base_url, "LOG_LEVEL": "ERROR"}


async def asked(url: str) -> str:
    """Ask on a connection of its own; the answer."""
    async with client_of(url) as client:
        return (await client.get("/chat", params={"userInput": "hello"})).text


@asynccontextmanager
async def streams_at_all(service: Service, model: PacedModel) -> AsyncGenerator[list[asyncio.Task[bytes]], None]:
    """Streams that have begun, some at each worker; gives who reads them to their end, once the gate is open."""
    model.gate.clear()
    async with staying(service.url, MANY) as clients:
        for each in clients:
            await each.ask("/time/chat")
            await each.read_until(b"event: delta")
        assert sum(service.connections()) == MANY
        assert min(service.connections()) > 0
        try:
            yield [asyncio.create_task(each.read_until(b"event: done")) for each in clients]
        finally:
            model.gate.set()


def has_ended(process: psutil.Process) -> bool:
    """Whether or not somebody has taken note of it, which is not the parent any more."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@asynccontextmanager
async def staying(url: str, count: int) -> AsyncGenerator[list[RawClient], None]:
    """Connections that are opened one after another, each once the one before was answered.

    Of a burst, the worker that wakes first accepts most.
    """
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            clients.append(await stack.enter_async_context(RawClient(url)))
            await clients[-1].ask("/health/live", "application/json")
            await clients[-1].read_until(b"ok")
            clients[-1].received.clear()
        yield clients


async def all_answer(service: Service, count: int) -> bool:
    """Whether so many workers share the connections that are opened now."""
    try:
        async with staying(service.url, MANY):
            return len(service.workers) == count and min(service.connections()) > 0
    except (ConnectionError, EOFError):
        return False
