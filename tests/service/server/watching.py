"""What must be as before when all clients are gone."""

import asyncio
import gc
import logging
from collections import Counter

import httpx
import psutil
import pytest

from tests.service.observability.reading import figures_of
from tests.service.server.raw_client import RawClient
from tests.waiting import until

__all__ = [
    "assert_nothing_was_reported",
    "in_flight",
    "is_served",
    "living_objects",
    "open_files",
    "outcomes",
    "tasks_are_back",
]

_OURS = ("app.", "toolchat.", "uvicorn.", "aiohttp.")


async def in_flight(client: httpx.AsyncClient) -> int:
    """Questions that are being answered, as ``/metrics`` tells."""
    return int((await figures_of(client))["toolchat_questions_in_flight", ()])


def outcomes(caplog: pytest.LogCaptureFixture) -> Counter[str]:
    """How the requests so far ended, by the log's last line of each."""
    ended = [record for record in caplog.records if record.message == "request finished"]
    return Counter(str(vars(record)["outcome"]) for record in ended)


def assert_nothing_was_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a warning nor a traceback is in the log, but for what the start says of the limits that a test sets."""
    records = [record for record in caplog.records if record.name != "toolchat.service.composition.lifespan"]
    loud = [record for record in records if record.levelno >= logging.WARNING or record.exc_info]
    assert [(record.name, record.getMessage()) for record in loud] == []


async def tasks_are_back(before: int) -> None:
    """Wait until no more tasks run than before."""
    await until(lambda: len(asyncio.all_tasks()) <= before)


def is_served(client: RawClient) -> bool:
    """Whether this process, which is the service as well, holds the other end of a client's connection."""
    connections = psutil.Process().net_connections("tcp4")
    return any(each.raddr and each.raddr.port == client.port for each in connections)


def open_files() -> int:
    """File descriptors of this process, which is service, upstream and client at once."""
    return int(psutil.Process().num_fds())


def living_objects() -> Counter[str]:
    """Objects of the service and of its servers, by class, after a collection."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if str(kind.__module__).startswith(_OURS))
