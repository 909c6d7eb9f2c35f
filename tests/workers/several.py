"""Several processes on one port, and what can be asked of them."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.command_line import Process, started
from tests.observability.reading import Figures, figures_of
from tests.players.redis_server import RedisServer
from tests.server.paced_model import PacedModel
from tests.server.raw_client import connected
from tests.serving import client_of

__all__ = [
    "ANSWER",
    "MANY",
    "Service",
    "all_are_heard",
    "all_have_answered",
    "asked",
    "has_ended",
    "set_up",
    "stopped",
    "streams_at_all",
    "workers",
]

ANSWER = "begunfinished"
MANY = 40
"""Connections of which by all likelihood every worker has some."""
REPLACEMENTS = "toolchat_worker_replacements_total"


@dataclass(frozen=True)
class Service:
    """The parent of several workers."""

    process: Process
    url: str

    @property
    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    async def figures(self) -> Figures:
        """As one of them tells, whichever is asked: each time by a new connection."""
        async with client_of(self.url) as client:
            return await figures_of(client)

    async def by_worker(self, name: str) -> dict[str, float]:
        """The samples of a name, added up for each worker."""
        found: defaultdict[str, float] = defaultdict(float)
        for (sample, labels), value in (await self.figures()).items():
            if sample == name:
                found[dict(labels)["worker"]] += value
        return dict(found)

    async def replaced(self) -> float:
        return sum((await self.by_worker(REPLACEMENTS)).values())


@contextmanager
def workers(count: int, folder: Path, **variables: str) -> Generator[Service, None, None]:
    with started("--workers", str(count), cwd=folder, **variables) as (process, url):
        yield Service(process, url)


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
    async with connected(service.url, MANY) as clients:
        for each in clients:
            await each.ask("/time/chat")
            await each.read_until(b"event: delta")
        running = await service.by_worker("toolchat_questions_in_flight")
        assert sum(running.values()) == MANY
        assert min(running.values()) > 0
        yield [asyncio.create_task(each.read_until(b"event: done")) for each in clients]


@contextmanager
def stopped(service: Service) -> Generator[None, None, None]:
    """Have the parent do nothing for a while."""
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def has_ended(process: psutil.Process) -> bool:
    """Whether or not somebody has taken note of it, which is not the parent any more."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def all_are_heard(service: Service, count: int) -> bool:
    try:
        return len(await service.by_worker(REPLACEMENTS)) == count
    except httpx.TransportError:  # asked was the one that ends
        return False


async def all_have_answered(service: Service, count: int) -> bool:
    answered = await service.by_worker("toolchat_questions_total")
    return len(answered) == count and min(answered.values()) > 0
