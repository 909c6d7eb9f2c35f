"""The store in PostgreSQL: its schema, permissions and addresses, and why it cannot be used."""

import asyncio
import re
import secrets
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.players.postgresql_server import PostgresqlServer
from tests.ports import silent_port
from tests.state.conftest import postgresql_store
from tests.state.outages import every_operation, recovered, refused
from tests.waiting import PATIENCE, until
from toolchat.errors import ConfigurationError, StoreUnavailable
from toolchat.service.composition.state import _without_option, state_store
from toolchat.service.settings.service_settings import Settings
from toolchat.state.base import StateStore, Write

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


@pytest.mark.parametrize("schema", ["", "1", 'a"b', "a.b", "ü", "x" * 64])
def test_an_unusable_schema_is_refused(schema: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    from toolchat.state.postgresql import PostgresqlStateStore

    with pytest.raises(ValueError, match=r"^the name of a schema has up to 63 letters, digits, - and _$"):
        PostgresqlStateStore("postgresql://h/db", schema=schema)


async def test_a_dropped_schema_is_created_again(
    schema: str, postgresql: PostgresqlServer, open_store: OpenStore
) -> None:
    store = await open_store()
    postgresql.run(f'DROP SCHEMA "{schema}" CASCADE')
    await refused([lambda: store.put("memory:a", b"x", ttl=30)])
    await recovered(store)


async def test_a_value_that_the_server_refuses_affects_its_own_key_only(open_store: OpenStore) -> None:
    store = await open_store()
    key = f"memory:{secrets.token_hex(10_000)}"  # random, as the server would compress it; no index has such long ones
    for _ in range(3):
        await refused([lambda: store.put(key, b"x", ttl=30)])
        assert await store.get("memory:b") is None
    assert store.available


async def test_the_cause_tells_apart_what_is_wrong_and_shows_no_password(
    postgresql: PostgresqlServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    postgresql.run("CREATE ROLE nobody LOGIN PASSWORD 'canary'")
    with silent_port() as port:
        url = f"127.0.0.1:{postgresql.port}"
        causes = {
            postgresql.url_for("admin:canary-wrong"): f"wrong password: {url}, database postgres",
            postgresql.url_for("admin"): f"wrong password: {url}, database postgres",
            postgresql.url_for("unknown:canary"): f"wrong password: {url}, database postgres",
            postgresql.url_for("admin:canary", "missing"): f"unknown database: {url}, database missing",
            postgresql.url_for("nobody:canary"): f"missing permission: {url}, database postgres",
            postgresql.url_for("admin:canary") + "?sslmode=require": f"TLS failed: {url}, database postgres",
            f"postgresql://admin:canary@127.0.0.1:{port}/x": f"connection refused: 127.0.0.1:{port}, database x",
            "postgresql://admin:canary@db.invalid/x": "name not found: db.invalid:5432, database x",
            "postgresql://admin:canary@/x?host=/nowhere": "connection refused: /nowhere:5432, database x",
        }
        assert {url: await cause_of(url) for url in causes} == causes
    assert "canary" not in caplog.text
    postgresql.run("DROP ROLE nobody")


async def test_too_many_connections_are_named(postgresql: PostgresqlServer) -> None:
    postgresql.run(
        "CREATE ROLE few LOGIN PASSWORD 'canary' CONNECTION LIMIT 0", "GRANT CREATE ON DATABASE postgres TO few"
    )
    assert (await cause_of(postgresql.url_for("few:canary"))).startswith("too many connections: ")
    postgresql.run("DROP OWNED BY few", "DROP ROLE few")


async def cause_of(url: str) -> str:
    from toolchat.state.postgresql import PostgresqlStateStore

    store = PostgresqlStateStore(url, schema="unprivileged", deadline=PATIENCE)
    await store.start()
    with pytest.raises(StoreUnavailable) as raised:
        await store.put("memory:a", b"x", ttl=30)
    await store.aclose()
    assert "canary" not in "".join(traceback.format_exception(raised.value)) + repr(store)
    return str(raised.value.log_fields["cause"])


@pytest.mark.parametrize(
    ("url", "address", "schema"),
    [
        ("postgresql://me:pass@h:1/db", "postgresql://me:pass@h:1/db", "toolchat"),
        ("postgres:///db?schema=other", "postgres:///db", "other"),
        ("postgres:///db?host=/run&schema=a%2Db&options=-c%20a", "postgres:///db?host=/run&options=-c%20a", "a-b"),
    ],
)
def test_the_schema_is_our_option_and_the_rest_goes_to_libpq(url: str, address: str, schema: str) -> None:
    assert _without_option(url, "schema", "toolchat") == (address, schema)


@pytest.mark.parametrize("name", ["postgres", "postgresql"])
def test_the_url_opens_a_store_with_its_schema(name: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    store = state_store(Settings(state_url=SecretStr(f"{name}://me:canary@h:1/db?schema=other"), server_workers=2))
    assert (store.kind, vars(store)["_schema"], vars(store)["_server"]) == ("postgresql", "other", "h:1, database db")


@pytest.mark.parametrize(
    "url", ["postgresql://h/db?schema=a.b", "postgresql://h:port/db", "postgresql://h/db?nosuch=1"]
)
def test_an_unusable_url_is_refused_with_the_forms(url: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    with pytest.raises(ConfigurationError, match=r"^STATE_URL: must be .* or postgresql://"):
        state_store(Settings(state_url=SecretStr(url)))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "toolchat.state.postgresql", raising=False)
    with pytest.raises(ConfigurationError, match=r"needs the package psycopg\[binary\]: pip install"):
        state_store(Settings(state_url=SecretStr("postgresql://h/db")))
