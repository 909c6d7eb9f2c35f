"""Both state stores, and pairs of them that share what they keep."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.players.redis_server import RedisServer
from tests.waiting import PATIENCE
from toolchat.state.base import StateStore
from toolchat.state.redis import RedisStateStore
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import IN_MEMORY

OpenStore = Callable[..., Awaitable[RedisStateStore]]
"""Opens a store; its operations may take long unless a ``deadline`` is given."""


@pytest.fixture
async def server() -> AsyncGenerator[RedisServer, None]:
    """An empty Redis."""
    async with RedisServer() as server:
        yield server


@pytest.fixture
async def open_store(server: RedisServer) -> AsyncGenerator[OpenStore, None]:
    """Opens stores that share the server, as several processes have one each."""
    async with AsyncExitStack() as stack:

        async def opened(deadline: float = PATIENCE) -> RedisStateStore:
            store = RedisStateStore(server.url, deadline=deadline)
            stack.push_async_callback(store.aclose)
            await store.start()
            return store

        yield opened


@pytest.fixture(params=["memory", "file", pytest.param("redis", marks=pytest.mark.slow)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[StateStore, None]:
    """Each of the implementations."""
    if request.param != "redis":
        store: StateStore = SqliteStateStore(IN_MEMORY if request.param == "memory" else tmp_path / "state.db")
        await store.start()
        yield store
        await store.aclose()
        return
    async with RedisServer() as server:
        store = RedisStateStore(server.url, deadline=PATIENCE)
        await store.start()
        yield store
        await store.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file in a directory that is not there yet."""
    return tmp_path / "data" / "state.db"


@pytest.fixture
async def store_in_file(path: Path) -> AsyncGenerator[SqliteStateStore, None]:
    """A store in the file."""
    store = SqliteStateStore(path)
    await store.start()
    yield store
    await store.aclose()


async def content(path: Path, key: str) -> bytes | None:
    """What a process that starts now finds."""
    store = SqliteStateStore(path)
    await store.start()
    try:
        return await store.get(key)
    finally:
        await store.aclose()
