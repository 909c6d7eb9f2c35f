"""What the stores on a server share: several processes, and a server that is slow, gone, full, or refuses."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from typing import Any

import pytest

from tests.players.postgresql_server import PostgresqlServer
from tests.players.redis_server import RedisServer
from tests.state.conftest import postgresql_store
from tests.state.outages import AWAY, BACK, every_operation, reasons, recovered, refused, reported
from tests.waiting import PATIENCE, until
from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.state.base import Lock, StateStore, Write
from toolchat.state.locks import Locks
from toolchat.state.redis import RedisStateStore


@dataclass
class Shared:
    """A server that several stores share, as several processes do."""

    kind: str
    server: Any
    stack: AsyncExitStack
    name: str = field(default_factory=lambda: f"Test-{secrets.token_hex(8)}")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}" + (", database postgres" if self.kind == "postgresql" else "")

    def store(self, name: str = "", deadline: float = PATIENCE) -> Any:
        """One that has not been started."""
        if self.kind == "postgresql":
            return postgresql_store(self.server, name or self.name, deadline=deadline)
        return RedisStateStore(self.server.url, prefix=f"{name or self.name}:", deadline=deadline)

    async def open(self, name: str = "", deadline: float = PATIENCE) -> Any:
        store = self.store(name, deadline)
        self.stack.push_async_callback(store.aclose)
        await store.start()
        return store

    async def do(self, what: str, *words: Any) -> None:
        """Start, freeze, thaw or kill the server, or run a command as its administrator."""
        done = getattr(self.server, what)(*words)
        if isawaitable(done):
            await done


@pytest.fixture(scope="module")
def stopped() -> Generator[PostgresqlServer, None, None]:
    """A PostgreSQL that the tests of this file stop and start."""
    with PostgresqlServer("max_connections=50") as server:
        yield server


@pytest.fixture(params=["redis", pytest.param("postgresql", marks=pytest.mark.slow)])
async def shared(request: pytest.FixtureRequest) -> AsyncGenerator[Shared, None]:
    async with AsyncExitStack() as stack:
        if request.param == "redis":
            server: object = await stack.enter_async_context(RedisServer())
        else:
            server = request.getfixturevalue("stopped")
        yield Shared(request.param, server, stack)


async def test_a_frozen_server_costs_its_deadline_once(shared: Shared) -> None:
    # Those in flight are refused together, the later ones without waiting, and all work again after the thaw.
    store = await shared.open(deadline=0.5)
    operations = every_operation(store)
    await asyncio.gather(*(operation() for operation in operations), return_exceptions=True)
    await shared.do("freeze")
    async with asyncio.timeout(PATIENCE):  # half a second for each would be more
        for _ in range(150):
            await refused(operations)
    assert not store.available
    assert store.failures >= 150 * len(operations)
    assert store.cause == f"no answer in time: {shared.address}"
    await shared.do("thaw")
    await recovered(store)


async def test_a_server_that_freezes_is_noticed_without_any_operation(shared: Shared) -> None:
    store = await shared.open(deadline=0.5)
    await shared.do("freeze")
    await until(lambda: not store.available)
    assert store.failures == 0
    await shared.do("thaw")


async def test_a_crash_is_noticed_once_and_the_return_is_detected(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    # Gone twice within a minute: one warning, which says where it was looked for, and one line that it is back.
    caplog.set_level(logging.INFO, "toolchat")
    store = await shared.open()
    for _ in range(2):
        await shared.do("kill")
        await refused(every_operation(store))
        await shared.do("start")
        await recovered(store)
    assert [record.getMessage() for record in caplog.records] == [AWAY, BACK]
    assert vars(caplog.records[0])["server"] == shared.address


async def test_a_server_that_starts_later_is_used(shared: Shared, caplog: pytest.LogCaptureFixture) -> None:
    # The start succeeds without it, and says so in ``available``.
    await shared.do("kill")
    store = await shared.open()
    assert not store.available
    assert reasons(caplog) == ["connection refused"]
    await refused(every_operation(store))
    await shared.do("start")
    await recovered(store)


OVERFLOW = (
    "CREATE FUNCTION overflow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE disk_full; END';"
    'CREATE TRIGGER overflow BEFORE INSERT ON "{name}".entries EXECUTE FUNCTION overflow()'
)
DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle'"
WRITABLE = "SET default_transaction_read_only = off"
Faults = list[tuple[str, list[list[str]], list[list[str]]]]
# The reason, what spoils the server, and what heals it.
REDIS: Faults = [
    ("OOM", [["CONFIG", "SET", "maxmemory", "1"]], [["CONFIG", "SET", "maxmemory", "0"]]),
    ("READONLY", [["REPLICAOF", "127.0.0.1", "1"]], [["REPLICAOF", "NO", "ONE"]]),
]
POSTGRESQL: Faults = [
    (f"{reason}", [[spoil], [DISCONNECT]], [[WRITABLE, heal]])
    for reason, spoil, heal in [
        (
            "read-only",
            "ALTER ROLE admin SET default_transaction_read_only = on",
            "ALTER ROLE admin RESET default_transaction_read_only",
        ),
        (
            "default_transaction_isolation is not read committed",
            "ALTER ROLE admin SET default_transaction_isolation = 'serializable'",
            "ALTER ROLE admin RESET default_transaction_isolation",
        ),
        ("UndefinedTable", 'ALTER TABLE "{name}".log RENAME TO aside', 'ALTER TABLE "{name}".aside RENAME TO log'),
        ("disk full", OVERFLOW, "DROP FUNCTION overflow() CASCADE"),
    ]
]


@pytest.mark.parametrize(
    ("shared", "reason", "spoil", "heal"),
    [
        *(("redis", *each) for each in REDIS),
        *(pytest.param("postgresql", *each, marks=pytest.mark.slow) for each in POSTGRESQL),
    ],
    indirect=["shared"],
)
async def test_a_server_that_refuses_writes_is_unavailable_until_it_accepts_them(
    shared: Shared, reason: str, spoil: list[list[str]], heal: list[list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    # The probe finds it, which does what a turn does; one that only reads would call the server available.
    store = await shared.open()
    for each in spoil:
        await shared.do("run", *(word.replace("{name}", shared.name) for word in each))
    await until(lambda: not store.available and (reported(caplog, reason) or store.cause.startswith(reason)))
    for _ in range(3):
        await refused(every_operation(store))
        with pytest.raises(StoreUnavailable):
            await store.probe()
    for each in heal:
        await shared.do("run", *(word.replace("{name}", shared.name) for word in each))
    await recovered(store)
    assert store.cause == ""


async def test_prefixes_or_schemas_keep_services_apart(shared: Shared) -> None:
    ours, theirs = await shared.open(), await shared.open(f"{shared.name}2")
    await ours.commit([Write("memory:a", b"x", 30, lists=("all",), line=b"1")])
    assert await ours.try_lock("memory:a", ttl=30)
    assert await theirs.try_lock("memory:a", ttl=30)
    assert (await theirs.get("memory:a"), await theirs.listed("all", limit=9)) == (None, [])


async def connections(shared: Shared, store: Any) -> int:
    return int(await shared.server.connections()) if shared.kind == "redis" else len(store._idle)


async def test_a_thousand_operations_share_few_connections(shared: Shared) -> None:
    store = await shared.open()
    await asyncio.gather(*(store.put(f"memory:{number}", b"x", ttl=30) for number in range(1000)))
    assert (store.available, store.failures) == (True, 0)
    assert 1 < await connections(shared, store) <= (65 if shared.kind == "redis" else 8)


async def test_cancelled_operations_leave_connections_and_locks(shared: Shared) -> None:
    # Clients leave at different moments; afterwards every lock can be taken, and no answer goes to another question.
    store = await shared.open()
    await store.put("memory:b", b"b", ttl=30)
    for round_ in range(4):
        tasks = [asyncio.ensure_future(store.try_lock(f"memory:{number}", ttl=30)) for number in range(100)]
        for _ in range(round_ * 3):
            await asyncio.sleep(0)
        for number, task in enumerate(tasks):
            task.cancel()
            if number % 20 == 0:
                await asyncio.sleep(0.0005 * round_)
        for lock in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(lock, Lock):  # granted before
                await store.unlock(lock)
        assert [await store.get("memory:b") for _ in range(10)] == [b"b"] * 10
    for number in range(100):
        await until(partial(store.try_lock, f"memory:{number}", ttl=30))
    assert (store.available, store.failures) == (True, 0)
    assert await connections(shared, store) <= 65


async def test_processes_never_hold_one_lock_at_once(shared: Shared) -> None:
    # Fifty requests of one session at three processes: one at a time, in order within each; none is lost silently.
    inside = 0
    visitors: list[tuple[int, int]] = []

    async def visit(locks: Locks, process: int, number: int) -> None:
        nonlocal inside
        async with locks.hold("memory:a"):
            inside += 1
            assert inside == 1
            visitors.append((process, number))
            await asyncio.sleep(0.002)
            inside -= 1

    locks = [Locks(await shared.open()) for _ in range(3)]
    visits = [visit(locks[number % 3], number % 3, number) for number in range(50)]
    results = await asyncio.gather(*visits, return_exceptions=True)
    assert all(result is None or isinstance(result, SessionBusy) for result in results)
    assert len(visitors) == results.count(None) >= 25
    for process in range(3):
        order = [number for where, number in visitors if where == process]
        assert order == sorted(order)
    assert [len(each) for each in locks] == [0, 0, 0]


async def test_a_counter_that_processes_increase_at_once_loses_nothing(shared: Shared) -> None:
    stores = [await shared.open() for _ in range(3)]

    def increased(values: Any, _: float) -> list[bytes]:
        return [str(int(each or 0) + 1).encode() for each in values]

    both = ["memory:a", "memory:b"]
    keys = [both, both[::-1]]  # in either order, which must not deadlock
    await asyncio.gather(*(stores[n % 3].update(keys[n % 2], increased, ttl=30) for n in range(60)))
    assert [await stores[0].get(key) for key in both] == [b"60", b"60"]
    assert [each.failures for each in stores] == [0, 0, 0]


async def test_closing_closes_every_connection(shared: Shared) -> None:
    # Operations that still run come to their end first; later ones are refused.
    store = shared.store()
    await store.start()
    running = [asyncio.ensure_future(store.put(f"memory:{number}", b"x", ttl=30)) for number in range(100)]
    await asyncio.sleep(0)
    await store.aclose()
    assert (await asyncio.gather(*running, return_exceptions=True))[0] is None

    async def has_no_connections() -> bool:
        return await connections(shared, store) == 0

    await until(has_no_connections)
    await refused(every_operation(store))


@pytest.mark.parametrize(
    ("kind", "options", "warning"),
    [
        ("redis", ["--save", "", "--appendonly", "no"], "a restart loses everything"),
        ("redis", ["--save", "3600 1", "--appendonly", "no"], "a crash loses all changes since the last one"),
        ("redis", ["--appendonly", "yes"], ""),
        ("redis", ["--rename-command", "CONFIG", ""], ""),  # as managed servers do
        *(
            pytest.param("postgresql", *each, marks=pytest.mark.slow)
            for each in (
                (["fsync=off"], "a crash of its machine may destroy the database"),
                (["fsync=on", "synchronous_commit=off"], "a crash loses the last changes"),
                (["fsync=on"], ""),
            )
        ),
    ],
)
async def test_a_server_that_loses_data_in_a_crash_is_warned_about(
    kind: str, options: list[str], warning: str, tmp_path: Any
) -> None:
    async with AsyncExitStack() as stack:
        if kind == "redis":
            server: Any = await stack.enter_async_context(RedisServer(options=[*options, "--dir", str(tmp_path)]))
        else:
            server = stack.enter_context(PostgresqlServer(*options))
        warned = await (await Shared(kind, server, stack).open()).durability_warning()
    assert warned.partition("so ")[2].partition(":")[0] == warning


@pytest.mark.parametrize(
    "url",
    ["http://h", "redis://:12/canary@h", "redis://h:canary:x", "redis://h?canary=1", "redis://h?protocol=9",
     "rediss://h?ssl_cert_reqs=canary", "postgresql://me:12/canary@h/db", "postgresql://me:canary?x@h/db",
     "postgresql://h:canary/db", "postgresql://h/db?canary=1"],
)  # fmt: skip
def test_an_unusable_url_is_refused_at_once_without_being_repeated(url: str) -> None:
    opened: Callable[[str], StateStore] = RedisStateStore
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
        from toolchat.state.postgresql import PostgresqlStateStore as opened
    with pytest.raises(ValueError, match=r"^the URL of (Redis|PostgreSQL) cannot be used$"):
        opened(url)
