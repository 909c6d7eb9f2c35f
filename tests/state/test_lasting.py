"""What is stored for ever: it stays whatever else is stored, and a store that is full of it says so."""

import random
from pathlib import Path

import pytest

from tests.state.conftest import opened
from tests.state.test_moves import move
from toolchat.errors import StoreFull
from toolchat.state.base import FOREVER, StateStore, Write
from toolchat.state.sqlite import SqliteStateStore


async def test_what_lasts_is_counted_and_never_evicted() -> None:
    store = SqliteStateStore(max_bytes=100_000)
    await store.commit([Write("memory:kept", bytes(40_000), FOREVER, line=bytes(30_000))])
    assert (store.usage() or (0,))[0] > 70_000
    for number in range(100):
        await store.put(f"memory:{number}", bytes(1000), ttl=60)
    assert (await store.get("memory:kept"), await store.get("memory:0")) == (bytes(40_000), None)
    assert await store.read_log("memory:kept") == [bytes(30_000)]
    assert await store.get("memory:99") is not None


@pytest.mark.parametrize("name", [":memory:", "state.db"])
async def test_a_store_that_is_full_of_what_lasts_refuses_more_of_it_and_takes_the_rest(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStateStore(name, max_bytes=100_000)
    await store.put("memory:kept", bytes(95_000), ttl=FOREVER)
    with pytest.raises(StoreFull):
        await store.commit([Write("memory:other", b"x", FOREVER), Write("todo:other", b"x", 60)])
    assert (await store.get("memory:other"), await store.get("todo:other")) == (None, None)
    await store.put("once:a", bytes(3000), ttl=60)
    assert await store.get("once:a") is not None
    await store.delete("memory:kept")
    await store.put("memory:other", b"x", ttl=FOREVER)
    assert (store.available, await store.get("memory:other")) == (True, b"x")
    await store.aclose()


async def test_what_is_counted_fits_whatever_becomes_of_the_values() -> None:
    store, chance, clients = SqliteStateStore(client_key=lambda: chance.choice("abc")), random.Random(1), "+abc"
    for _ in range(500):
        ttl, kept, line = chance.choice([60.0, FOREVER]), chance.random() < 0.2, chance.choice([None, b"123"])
        value = None if chance.random() < 0.2 else bytes(chance.randrange(50))
        await store.commit([Write(f"memory:{chance.randrange(9)}", value, ttl, is_kept=kept, line=line)])
    counting = "SELECT client, sum(size + log_size) FROM entries WHERE kind IS NOT NULL GROUP BY client"
    sizes = dict(store._opened().execute(counting).fetchall())
    counted = dict(
        store._opened().execute("SELECT client, bytes FROM usage WHERE kind = '*' AND bytes <> 0").fetchall()
    )
    assert sizes == counted
    assert set(sizes) <= set(clients)
    assert store.usage() == (sum(sizes.values()), 64 * 2**20)


async def test_what_lasts_in_any_store_does_not_expire(store: StateStore) -> None:
    await store.put("memory:kept", b"x", ttl=FOREVER)
    [record] = [each async for each in store.records()]
    assert (await store.get("memory:kept"), record.expires > FOREVER) == (b"x", True)


async def test_what_lasts_does_so_after_a_move(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with (
        opened("file", tmp_path / "1.db", request) as first,
        opened("file", tmp_path / "2.db", request) as second,
    ):
        await first.put("memory:kept", bytes(100), ttl=FOREVER)
        await move(first, second)
        assert isinstance(second, SqliteStateStore)
        assert second._opened().execute("SELECT kind, client FROM entries WHERE kind = '+'").fetchall() == [("+", "+")]
