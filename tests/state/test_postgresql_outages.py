"""PostgreSQL when it is slow, gone, full, read-only, or refuses."""

import asyncio
import logging
import secrets
import traceback
from collections.abc import AsyncGenerator, Generator

import pytest

from tests.players.postgresql_server import PostgresqlServer
from tests.ports import silent_port
from tests.state.conftest import postgresql_store
from tests.state.outages import AWAY, BACK, every_operation, reasons, recovered, refused
from tests.waiting import PATIENCE, until
from toolchat.errors import StoreUnavailable
from toolchat.state.base import StateStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Generator[PostgresqlServer, None, None]:
    """One that the tests of this file stop and start."""
    with PostgresqlServer("max_connections=30") as server:
        yield server


@pytest.fixture
async def store(server: PostgresqlServer) -> AsyncGenerator[StateStore, None]:
    store = postgresql_store(server, "toolchat")
    await store.start()
    yield store
    await store.aclose()


async def test_a_frozen_server_costs_its_deadline_once(server: PostgresqlServer) -> None:
    # Those in flight are refused together, the later ones without waiting, and all work again after the thaw.
    store = postgresql_store(server, "toolchat", deadline=0.5)
    await store.start()
    operations = every_operation(store)
    await asyncio.gather(*(operation() for operation in operations), return_exceptions=True)
    server.freeze()
    async with asyncio.timeout(PATIENCE):  # half a second for each would be more
        for _ in range(150):
            await refused(operations)
    assert not store.available
    assert store.cause == f"no answer in time: 127.0.0.1:{server.port}, database postgres"
    server.thaw()
    await recovered(store)
    await store.aclose()


async def test_a_crash_is_noticed_once_and_the_return_is_detected(
    server: PostgresqlServer, store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    # Gone twice within a minute: one warning, which says where it was looked for, and one line that it is back.
    caplog.set_level(logging.INFO, "toolchat")
    await store.put("memory:before", b"x", ttl=3600)
    for _ in range(2):
        server.kill()
        await refused(every_operation(store))
        server.start()
        await recovered(store)
    assert [record.getMessage() for record in caplog.records] == [AWAY, BACK]
    assert vars(caplog.records[0])["server"] == f"127.0.0.1:{server.port}, database postgres"
    assert await store.get("memory:before") == b"x"


async def test_a_server_that_starts_later_is_used(server: PostgresqlServer, caplog: pytest.LogCaptureFixture) -> None:
    # The start succeeds without it, and the tables are created when it is there.
    server.kill()
    store = postgresql_store(server, "later")
    await store.start()
    try:
        assert reasons(caplog) == ["connection refused"]
        await refused(every_operation(store))
        server.start()
        await recovered(store)
    finally:
        await store.aclose()


@pytest.mark.parametrize(
    ("spoil", "heal", "reason"),
    [
        (
            "ALTER ROLE admin SET default_transaction_read_only = on",
            "ALTER ROLE admin RESET default_transaction_read_only",
            "read-only",
        ),
        (
            "ALTER ROLE admin SET default_transaction_isolation = 'serializable'",
            "ALTER ROLE admin RESET default_transaction_isolation",
            "default_transaction_isolation is not read committed",
        ),
        ("ALTER TABLE toolchat.log RENAME TO aside", "ALTER TABLE toolchat.aside RENAME TO log", "UndefinedTable"),
        (
            "CREATE FUNCTION overflow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE disk_full; END';"
            "CREATE TRIGGER overflow BEFORE INSERT ON toolchat.entries EXECUTE FUNCTION overflow()",
            "DROP FUNCTION overflow() CASCADE",
            "disk full",
        ),
    ],
    ids=["read-only", "isolation", "table", "full"],
)
async def test_a_server_that_refuses_writes_is_unavailable_until_it_accepts_them(
    server: PostgresqlServer,
    store: StateStore,
    caplog: pytest.LogCaptureFixture,
    spoil: str,
    heal: str,
    reason: str,
) -> None:
    # The probe finds it, which does what a turn does; one that only reads would call the server available.
    server.run(spoil)
    server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle'"
    )
    await until(lambda: not store.available and store.cause.startswith(reason))
    await refused(every_operation(store))
    server.run("SET default_transaction_read_only = off", heal)
    await recovered(store)
    assert store.cause == ""


async def test_a_dropped_schema_is_created_again(server: PostgresqlServer, store: StateStore) -> None:
    server.run("DROP SCHEMA toolchat CASCADE")
    await refused([lambda: store.put("memory:a", b"x", ttl=30)])
    await recovered(store)


async def test_a_value_that_the_server_refuses_affects_its_own_key_only(store: StateStore) -> None:
    key = f"memory:{secrets.token_hex(10_000)}"  # random, as the server would compress it; no index has such long ones
    for _ in range(3):
        await refused([lambda: store.put(key, b"x", ttl=30)])
        assert await store.get("memory:b") is None
    assert store.available


async def test_the_cause_tells_apart_what_is_wrong_and_shows_no_password(server: PostgresqlServer) -> None:
    server.run("CREATE ROLE nobody LOGIN PASSWORD 'canary'")
    with silent_port() as port:
        url = f"127.0.0.1:{server.port}"
        causes = {
            server.url_for("admin:canary-wrong"): f"wrong password: {url}, database postgres",
            server.url_for("admin"): f"wrong password: {url}, database postgres",
            server.url_for("unknown:canary"): f"wrong password: {url}, database postgres",
            server.url_for("admin:canary", "missing"): f"unknown database: {url}, database missing",
            server.url_for("nobody:canary"): f"missing permission: {url}, database postgres",
            server.url_for("admin:canary") + "?sslmode=require": f"TLS failed: {url}, database postgres",
            f"postgresql://admin:canary@127.0.0.1:{port}/x": f"connection refused: 127.0.0.1:{port}, database x",
            "postgresql://admin:canary@db.invalid/x": "name not found: db.invalid:5432, database x",
            "postgresql://admin:canary@/x?host=/nowhere": "connection refused: /nowhere:5432, database x",
        }
        assert {url: await cause_of(url) for url in causes} == causes
    server.run("DROP ROLE nobody")


async def test_too_many_connections_are_named(server: PostgresqlServer, store: StateStore) -> None:
    server.run("CREATE ROLE few LOGIN PASSWORD 'canary' CONNECTION LIMIT 0", "GRANT CREATE ON DATABASE postgres TO few")
    assert (await cause_of(server.url_for("few:canary"))).startswith("too many connections: ")
    server.run("DROP OWNED BY few", "DROP ROLE few")
    assert store.available


async def cause_of(url: str) -> str:
    from toolchat.state.postgresql import PostgresqlStateStore

    store = PostgresqlStateStore(url, schema="unprivileged", deadline=PATIENCE)
    await store.start()
    with pytest.raises(StoreUnavailable) as raised:
        await store.put("memory:a", b"x", ttl=30)
    await store.aclose()
    assert "canary" not in "".join(traceback.format_exception(raised.value)) + repr(store)
    return str(raised.value.log_fields["cause"])


async def test_no_password_is_in_the_log(server: PostgresqlServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await cause_of(server.url_for("admin:canary-wrong"))
    await cause_of("postgresql://admin:canary@db.invalid/x")
    assert reasons(caplog)
    assert "canary" not in caplog.text
