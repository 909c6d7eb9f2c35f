"""The store in PostgreSQL: several processes, its schema, permissions, and addresses."""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.players.postgresql_server import PostgresqlServer
from tests.state.conftest import postgresql_store
from tests.state.outages import every_operation, recovered, refused
from tests.waiting import PATIENCE, until
from toolchat.errors import ConfigurationError, SessionBusy
from toolchat.state.base import Lock, StateStore, Write
from toolchat.state.locks import Locks

pytestmark = pytest.mark.slow
OpenStore = Callable[..., Awaitable[Any]]
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def schema() -> str:
    """Of this test only."""
    return f"Test-{secrets.token_hex(8)}"


@pytest.fixture
async def open_store(postgresql: PostgresqlServer, schema: str) -> AsyncGenerator[OpenStore, None]:
    """Opens stores that share a schema, as several processes have one each."""
    async with AsyncExitStack() as stack:

        async def opened(name: str = schema, *, deadline: float = PATIENCE) -> StateStore:
            store = postgresql_store(postgresql, name, deadline=deadline)
            stack.push_async_callback(store.aclose)
            await store.start()
            return store

        yield opened


async def rows(store: Any, statement: str) -> list[Any]:
    """What a statement finds over one of the store's own connections."""
    found: list[Any] = await store._query("test", statement)
    return found


async def test_processes_that_start_at_once_create_the_tables_once(open_store: OpenStore) -> None:
    stores = await asyncio.gather(*(open_store() for _ in range(4)))
    assert [(each.available, each.failures) for each in stores] == [(True, 0)] * 4
    await stores[0].put("memory:a", b"x", ttl=30)
    assert [await each.get("memory:a") for each in stores] == [b"x"] * 4


async def test_schemas_keep_services_apart(open_store: OpenStore, schema: str) -> None:
    ours, theirs = await open_store(), await open_store(f"{schema}2")
    await ours.commit([Write("memory:a", b"x", 30, lists=("all",), line=b"1")])
    assert await ours.try_lock("memory:a", ttl=30)
    assert await theirs.try_lock("memory:a", ttl=30)
    assert (await theirs.get("memory:a"), await theirs.listed("all", limit=9)) == (None, [])


async def test_a_later_format_is_refused(open_store: OpenStore, schema: str, postgresql: PostgresqlServer) -> None:
    await open_store()
    body = "RETURNS int LANGUAGE sql AS 'SELECT 2'"
    postgresql.run(f'CREATE OR REPLACE FUNCTION "{schema}".format() {body}')
    told = f"the schema {schema} was created by a later version (format 2, this version knows 1): "
    with pytest.raises(ConfigurationError, match=f"^{re.escape(told)}"):
        await open_store()


async def test_what_expired_or_is_deleted_takes_its_log_and_lists_along(
    open_store: OpenStore, schema: str, postgresql: PostgresqlServer
) -> None:
    # In one sweep, however much it is.
    store = await open_store()
    store._watcher.cancel()
    for number in range(250):
        await store.commit([Write(f"memory:{number}", b"x", 3600, lists=("all",), line=b"1")])
    postgresql.run(f'UPDATE "{schema}".entries SET expires = 1')
    for number in range(3):
        await store.commit([Write(f"todo:{number}", b"x", 3600, lists=("all",), line=b"1")])
    await store.delete("todo:1", "todo:2")
    await store.probe()
    tables = ("entries", "log", "listed")
    assert [await rows(store, f"SELECT count(*) FROM OURS.{table}") for table in tables] == [[(1,)]] * 3
    assert [key for key, *_ in await store.listed("all", limit=9)] == ["todo:0"]


async def test_a_value_that_is_put_after_the_end_of_the_last_one_has_a_new_log(
    open_store: OpenStore, schema: str, postgresql: PostgresqlServer
) -> None:
    # Although what expired is not swept yet.
    store = await open_store()
    await store.commit([Write("memory:a", b"x", 3600, lists=("all",), line=b"1")])
    postgresql.run(f'UPDATE "{schema}".entries SET expires = 1')
    await store.put("memory:a", b"y", ttl=30)
    assert (await store.read_log("memory:a"), await store.listed("all", limit=9)) == ([], [])


async def test_a_lock_from_before_the_clock_was_set_back_is_free(
    open_store: OpenStore, schema: str, postgresql: PostgresqlServer
) -> None:
    store = await open_store()
    await store.put("memory:a", b"x", ttl=30)
    assert await store.try_lock("memory:a", ttl=4)
    postgresql.run(f'UPDATE "{schema}".entries SET expires = expires + 86400')
    lock = await store.try_lock("memory:a", ttl=4)
    assert lock is not None
    assert lock.value == b"x"  # what is only read is as old as it is


async def test_a_sweep_is_one_process_at_a_time(open_store: OpenStore, postgresql: PostgresqlServer) -> None:
    import psycopg

    from toolchat.state.postgresql import _SWEEP

    store = await open_store()
    store._watcher.cancel()  # it would sweep itself
    await store.put("memory:a", b"x", ttl=0.001)
    with psycopg.connect(postgresql.url) as other:
        other.execute(f"""SELECT pg_advisory_lock(hashtextextended('"{store._schema}".sweep', 0))""".encode())
        assert await store._query("sweep", _SWEEP, 100) == []
    await until(lambda: store._query("sweep", _SWEEP, 100))


async def test_nothing_of_it_depends_on_a_session(open_store: OpenStore) -> None:
    # A pooler of transactions gives each statement to another session.
    store = await open_store()
    lock = await store.try_lock("memory:a", ttl=30)
    await store.put("memory:a", b"x", ttl=30, lock=lock, unlock=True)
    left = {
        "prepared statements": "SELECT name FROM pg_prepared_statements",
        "locks": "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        "channels": "SELECT pg_listening_channels()",
        "settings": "SELECT name FROM pg_settings WHERE source = 'session'",
    }
    assert {name: await rows(store, each) for name, each in left.items()} == {name: [] for name in left}
    for _ in range(16):
        await rows(store, "DISCARD ALL")
        assert await store.get("memory:a") == b"x"


@pytest.mark.parametrize("has_tables", [True, False], ids=["tables", "schema"])
async def test_the_documented_permissions_suffice(
    has_tables: bool, postgresql: PostgresqlServer, open_store: OpenStore
) -> None:
    # With a schema that it owns it creates the tables; with tables of another user it only reads and writes them.
    documented = (ROOT / "docs" / "state.md").read_text(encoding="utf-8")
    [owner, user] = re.findall(r"^psql (.+)$", documented, re.MULTILINE)
    name = f"toolchat_{secrets.token_hex(4)}"
    if has_tables:
        await open_store(name)
        postgresql.run(f"CREATE ROLE {name} LOGIN PASSWORD 'SECRET'")
    postgresql.run(
        *[each.replace("toolchat", name) for each in re.findall('-c "(.+?)"', user if has_tables else owner)]
    )
    from toolchat.state.postgresql import PostgresqlStateStore

    store = PostgresqlStateStore(postgresql.url_for(f"{name}:SECRET"), schema=name, deadline=PATIENCE)
    await store.start()
    assert (store.available, store.cause) == (True, "")
    await asyncio.gather(*(operation() for operation in every_operation(store)), return_exceptions=True)
    await recovered(store)
    assert store.failures == 0
    await store.aclose()


async def test_fifty_requests_for_one_lock_over_three_processes_come_one_by_one(open_store: OpenStore) -> None:
    inside = 0
    visitors: list[int] = []

    async def visit(locks: Locks, number: int) -> None:
        nonlocal inside
        async with locks.hold("memory:a"):
            inside += 1
            assert inside == 1
            visitors.append(number)
            await asyncio.sleep(0.002)
            inside -= 1

    locks = [Locks(await open_store()) for _ in range(3)]
    results = await asyncio.gather(*(visit(locks[n % 3], n) for n in range(50)), return_exceptions=True)
    assert all(result is None or isinstance(result, SessionBusy) for result in results)
    assert len(visitors) == results.count(None) >= 25


async def test_a_counter_that_processes_increase_at_once_loses_nothing(open_store: OpenStore) -> None:
    stores = [await open_store() for _ in range(3)]

    def increased(values: Any, _: float) -> list[bytes]:
        return [str(int(each or 0) + 1).encode() for each in values]

    both = ["memory:a", "memory:b"]
    keys = [both, both[::-1]]  # in either order, which must not deadlock
    await asyncio.gather(*(stores[n % 3].update(keys[n % 2], increased, ttl=30) for n in range(60)))
    assert [await stores[0].get(key) for key in both] == [b"60", b"60"]
    assert [each.failures for each in stores] == [0, 0, 0]


async def test_a_thousand_operations_share_few_connections(open_store: OpenStore, schema: str) -> None:
    store = await open_store()
    await asyncio.gather(*(store.put(f"memory:{number}", b"x", ttl=30) for number in range(1000)))
    assert (store.available, store.failures) == (True, 0)
    assert 1 < len(store._idle) <= 8


async def test_cancelled_operations_leave_connections_and_locks(open_store: OpenStore) -> None:
    # Clients leave at different moments; afterwards every lock can be taken, and no answer goes to another question.
    store = await open_store()
    await store.put("memory:b", b"b", ttl=30)
    for round_ in range(4):
        tasks = [asyncio.ensure_future(store.try_lock(f"memory:{number}", ttl=30)) for number in range(40)]
        await asyncio.sleep(0.001 * round_)
        for task in tasks:
            task.cancel()
        for lock in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(lock, Lock):  # granted before
                await store.unlock(lock)
        assert [await store.get("memory:b") for _ in range(10)] == [b"b"] * 10
    for number in range(40):
        await until(partial(store.try_lock, f"memory:{number}", ttl=30))
    assert store.available


async def test_closing_closes_every_connection(schema: str, postgresql: PostgresqlServer) -> None:
    # Operations that still run come to their end first; later ones are refused.
    store: Any = postgresql_store(postgresql, schema)
    await store.start()
    running = [asyncio.ensure_future(store.put(f"memory:{number}", b"x", ttl=30)) for number in range(100)]
    await asyncio.sleep(0)
    await store.aclose()
    assert (await asyncio.gather(*running, return_exceptions=True))[0] is None
    assert not store._idle
    await refused(every_operation(store))


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "postgresql://me:12/canary@h/db",
        "postgresql://me:canary?x@h/db",
        "postgresql://h:canary/db",
        "postgresql://h/db?canary=1",
    ],
)
def test_an_unusable_url_is_refused_without_being_repeated(url: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    from toolchat.state.postgresql import PostgresqlStateStore

    with pytest.raises(ValueError, match=r"^the URL of PostgreSQL cannot be used$"):
        PostgresqlStateStore(url)


@pytest.mark.parametrize("schema", ["", "1", 'a"b', "a.b", "ü", "x" * 64])
def test_an_unusable_schema_is_refused(schema: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    from toolchat.state.postgresql import PostgresqlStateStore

    with pytest.raises(ValueError, match=r"^the name of a schema has up to 63 letters, digits, - and _$"):
        PostgresqlStateStore("postgresql://h/db", schema=schema)


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"fsync": "off"}, "a crash of its machine may destroy the database"),
        ({"fsync": "on", "synchronous_commit": "off"}, "a crash loses the last changes"),
        ({"fsync": "on"}, ""),
    ],
)
async def test_a_server_that_loses_data_in_a_crash_is_warned_about(options: dict[str, str], warning: str) -> None:
    with PostgresqlServer(*[f"{name}={value}" for name, value in options.items()]) as server:
        store = postgresql_store(server, "toolchat")
        warned = await store.durability_warning()
        await store.aclose()
    assert warned.partition("so ")[2].partition(":")[0] == warning
