"""All state stores, and pairs of them that share what they keep."""

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.players.postgresql_server import PostgresqlServer
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


@pytest.fixture(scope="session")
def postgresql() -> Generator[PostgresqlServer, None, None]:
    """A PostgreSQL that tests share, each with a schema of its own, and none stops."""
    with PostgresqlServer() as server:
        yield server


@asynccontextmanager
async def opened(kind: str, path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[StateStore, None]:
    """An empty store of a kind."""
    async with AsyncExitStack() as stack:
        if kind == "redis":
            server = await stack.enter_async_context(RedisServer())
            store: StateStore = RedisStateStore(server.url, deadline=PATIENCE)
        elif kind == "postgresql":
            store = postgresql_store(request.getfixturevalue("postgresql"), f"test_{secrets.token_hex(8)}")
        else:
            store = SqliteStateStore(IN_MEMORY if kind == "memory" else path)
        await store.start()
        stack.push_async_callback(store.aclose)
        yield store


def postgresql_store(server: PostgresqlServer, schema: str, *, url: str = "", deadline: float = PATIENCE) -> StateStore:
    """A store that has not been started; psycopg is imported here, as not every machine has it."""
    from toolchat.state.postgresql import PostgresqlStateStore

    return PostgresqlStateStore(url or server.url, schema=schema, deadline=deadline)


KINDS = ["memory", "file", *[pytest.param(each, marks=pytest.mark.slow) for each in ("redis", "postgresql")]]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[StateStore, None]:
    """Each of the implementations."""
    async with opened(request.param, tmp_path / "state.db", request) as store:
        yield store


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
