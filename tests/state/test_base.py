"""What every state store promises: values, locks, logs, lists, what lasts, and records that move between any two."""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.state.conftest import opened
from tests.waiting import until
from toolchat.chat.memory import ChatMemory
from toolchat.errors import StoreFull
from toolchat.messages import AssistantMessage, UserMessage
from toolchat.service.cli.state import _from_json, _import, _to_json
from toolchat.state.base import FOREVER, Committed, Lock, LockLost, StateStore, StoredRecord, Write
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore


async def taken(store: StateStore, key: str, ttl: float = 30) -> Lock:
    lock = await store.try_lock(key, ttl=ttl)
    assert lock is not None
    return lock


async def lost(store: StateStore, key: str) -> tuple[Lock, Lock]:
    """A lock that ran out, and the one that somebody else took then."""
    first = await taken(store, key, ttl=0.02)
    second: list[Lock] = []

    async def next_one() -> bool:
        second.extend(filter(None, [await store.try_lock(key, ttl=30)]))
        return bool(second)

    await until(next_one)
    return first, second[0]


@pytest.mark.parametrize("value", [b"", b"text", bytes(range(256)) * 300])
@pytest.mark.parametrize("key", ["plain", "memory:4f", "todo:ü {x} } * \r\n:y"])
async def test_bytes_come_back_as_they_were_put(store: StateStore, key: str, value: bytes) -> None:
    # Whatever the bytes and the key are, this key has this value and its neighbour none.
    await store.put(key, value, ttl=30)
    assert (await store.get(key), await store.get(f"{key}x")) == (value, None)
    assert (store.available, store.failures) == (True, 0)


async def test_a_later_value_replaces_an_earlier_one_and_its_time(store: StateStore) -> None:
    # A value that is put again lives as long as the second call says, also if that call releases its lock.
    await store.put("memory:long", b"1", ttl=0.03)
    await store.put("memory:long", b"2", ttl=30)
    await store.put("memory:short", b"1", ttl=30)
    await store.put("memory:short", b"2", ttl=0.05)
    lock = await taken(store, "memory:locked")
    await store.put(lock.key, b"1", ttl=30, lock=lock)
    await store.put(lock.key, b"2", ttl=0.05, lock=lock, unlock=True)

    async def are_over() -> bool:
        return (await store.get("memory:short"), await store.get(lock.key)) == (None, None)

    await until(are_over)
    assert await store.get("memory:long") == b"2"


async def test_delete_reports_whether_any_key_had_a_value(store: StateStore) -> None:
    for key in ("memory:a", "todo:a", "memory:b"):
        await store.put(key, b"x", ttl=30)
    assert await store.delete("memory:a", "todo:a", "rounds:a")
    assert not await store.delete("memory:a", "todo:a", "rounds:a")
    assert not await store.delete()
    assert [await store.get(key) for key in ("memory:a", "todo:a", "memory:b")] == [None, None, b"x"]


async def test_of_concurrent_deletes_one_claims_the_value(store: StateStore) -> None:
    await store.put("memory:a", b"x", ttl=30)
    told = await asyncio.gather(*(store.delete("memory:a") for _ in range(50)))
    assert sorted(told) == [False] * 49 + [True]


async def test_a_lock_has_one_holder_and_no_token_comes_twice(store: StateStore) -> None:
    # Until it is released nobody else gets it; another key's lock and a value of its name are free.
    locks = []
    for _ in range(5):
        locks.append(await taken(store, "memory:a"))
        assert await store.try_lock("memory:a", ttl=30) is None
        await store.unlock(locks[-1])
    await taken(store, "memory:b")
    assert await store.get("memory:a") is None
    assert len({each.token for each in locks}) == 5


async def test_of_concurrent_attempts_one_gets_the_lock(store: StateStore) -> None:
    locks = await asyncio.gather(*(store.try_lock("memory:a", ttl=30) for _ in range(50)))
    assert sum(lock is not None for lock in locks) == 1


async def test_an_update_changes_all_its_keys_at_once_or_none(store: StateStore) -> None:
    def increased(values: Sequence[bytes | None], _: float) -> list[bytes]:
        return [str(int(each or 0) + 1).encode() for each in values]

    both = ["memory:a", "memory:b"]
    await asyncio.gather(*(store.update(keys, increased, ttl=30) for _ in range(10) for keys in (both, both[::-1])))
    await store.update(both, lambda *_: None, ttl=30)
    with pytest.raises(ZeroDivisionError):
        await store.update(both, lambda *_: [b"0", b"%d" % (1 // 0)], ttl=30)
    assert [await store.get(key) for key in both] == [b"20", b"20"]
    assert (store.available, store.failures) == (True, 0)


async def test_the_keys_that_nobody_has_locked_are_found(store: StateStore) -> None:
    await store.unlock(await taken(store, "memory:a"))
    await taken(store, "memory:b")
    await taken(store, "memory:d", ttl=600)  # taken before the clock was set back, as no lock lasts for so long
    assert await store.unlocked(["memory:a", "memory:b", "memory:c", "memory:d"]) == [
        "memory:a",
        "memory:c",
        "memory:d",
    ]


async def test_a_write_under_a_held_lock_is_stored(store: StateStore) -> None:
    # The lock may be that of another key.
    lock = await taken(store, "memory:a")
    await store.put("memory:a", b"1", ttl=30, lock=lock)
    await store.put("todo:a", b"2", ttl=30, lock=lock)
    assert await store.get("memory:a") == b"1"
    assert await store.delete("memory:a", "todo:a", lock=lock)
    assert not await store.delete("memory:a", lock=lock)


async def test_a_value_is_stored_and_its_lock_released_in_one_step(store: StateStore) -> None:
    lock = await taken(store, "memory:a")
    await store.put("memory:a", b"1", ttl=30, lock=lock, unlock=True)
    later = await taken(store, "memory:a")
    assert later.value == b"1"
    assert not await store.renew(lock, ttl=30)
    with pytest.raises(LockLost):
        await store.put("memory:a", b"late", ttl=30, lock=lock, unlock=True)
    assert await store.try_lock("memory:a", ttl=30) is None  # the later one is still held


async def test_the_holder_of_a_lost_lock_changes_nothing(store: StateStore) -> None:
    # Once somebody else has had the lock, the first holder can neither write, forget, renew nor release.
    first, second = await lost(store, "memory:a")
    await store.put("memory:a", b"second", ttl=30, lock=second)
    for _ in range(2):
        with pytest.raises(LockLost):
            await store.put("memory:a", b"first", ttl=30, lock=first)
        with pytest.raises(LockLost):
            await store.delete("memory:a", lock=first)
        assert not await store.renew(first, ttl=30)
        await store.unlock(first)
        assert await store.try_lock("memory:a", ttl=30) is None
        assert await store.renew(second, ttl=30)
        assert await store.get("memory:a") == b"second"
    await store.unlock(second)
    with pytest.raises(LockLost):
        await store.put("memory:a", b"first", ttl=30, lock=first)


async def test_an_expired_lock_still_allows_writes_until_another_holder_takes_it(store: StateStore) -> None:
    # A slow holder without a rival loses nothing, and holds the lock again when it renews it.
    lock = await taken(store, "memory:a", ttl=0.02)
    await taken(store, "memory:b", ttl=0.04)
    await until(lambda: store.try_lock("memory:b", ttl=30))
    await store.put("memory:a", b"late", ttl=30, lock=lock)
    assert await store.delete("memory:a", lock=lock)
    assert await store.renew(lock, ttl=30)
    assert await store.try_lock("memory:a", ttl=30) is None


async def test_a_renewed_lock_outlives_its_first_expiry(store: StateStore) -> None:
    lock, other = await taken(store, "memory:a", ttl=0.05), await taken(store, "memory:b", ttl=0.06)
    assert await store.renew(lock, ttl=30)
    await until(lambda: store.try_lock("memory:b", ttl=30))
    assert await store.try_lock("memory:a", ttl=30) is None
    assert other.key == "memory:b"


async def append(store: StateStore, line: bytes, place: int, ttl: float = 30) -> None:
    await store.commit([Write("memory:a", b"x", ttl, line=line, place=place)])


async def test_lines_are_read_in_their_order_from_a_place_on(store: StateStore) -> None:
    for place, line in enumerate([b"first", b"", bytes(range(256))]):
        await append(store, line, place)
    assert await store.read_log("memory:a") == [b"first", b"", bytes(range(256))]
    assert await store.read_log("memory:a", 2) == [bytes(range(256))]
    assert await store.read_log("memory:a", 0, 2) == [b"first", b""]
    assert (await store.read_log("memory:a", 3), await store.read_log("memory:b")) == ([], [])


async def test_a_line_replaces_what_stood_at_its_place_and_behind(store: StateStore) -> None:
    for place in range(4):
        await append(store, str(place).encode(), place)
    await append(store, b"new", 1)
    assert await store.read_log("memory:a") == [b"0", b"new"]
    await append(store, b"only", 0)
    assert await store.read_log("memory:a") == [b"only"]


async def test_a_log_goes_with_its_value_and_stays_when_the_value_is_replaced(store: StateStore) -> None:
    await append(store, b"1", 0)
    await store.put("memory:a", b"y", ttl=30)
    assert await store.read_log("memory:a") == [b"1"]
    await store.delete("memory:a")
    await store.put("memory:a", b"z", ttl=30)
    assert await store.read_log("memory:a") == []


async def test_a_log_expires_with_its_value(store: StateStore) -> None:
    await append(store, b"1", 0, ttl=30)
    await append(store, b"2", 1, ttl=0.03)

    async def is_over() -> bool:
        return await store.read_log("memory:a") == []

    await until(is_over)


async def test_a_list_has_the_keys_that_were_written_last_on_top(store: StateStore) -> None:
    for key in ("a", "b", "c", "a"):
        await store.commit([Write(key, key.encode(), 30, lists=("all", f"of {key}"))])
    assert [key for key, *_ in await store.listed("all", limit=2)] == ["a", "c"]
    [(_, _, last), (_, value, before)] = await store.listed("all", limit=2)
    assert (value, last > before) == (b"c", True)
    assert [key for key, *_ in await store.listed("all", limit=9, before=before)] == ["b"]
    assert [key for key, *_ in await store.listed("of c", limit=9)] == ["c"]


async def test_what_is_deleted_or_expired_is_in_no_list(store: StateStore) -> None:
    for key, ttl in (("kept", 30), ("deleted", 30), ("short", 0.03)):
        await store.commit([Write(key, b"x", ttl, lists=("all",))])
    await store.delete("deleted")

    async def is_over() -> bool:
        return [key for key, *_ in await store.listed("all", limit=9)] == ["kept"]

    await until(is_over)


async def test_a_value_that_expires_early_removes_no_other_from_its_list(store: StateStore) -> None:
    await store.commit([Write("long", b"x", 30, lists=("all",))])
    await asyncio.sleep(0.05)
    await store.commit([Write("short", b"x", 0.02, lists=("all",))])
    assert "long" in [key for key, *_ in await store.listed("all", limit=9)]


async def test_a_commit_whose_check_fails_writes_nothing(store: StateStore) -> None:
    await store.put("memory:a", b"x", ttl=30)
    write = Write("memory:b", b"y", 30, lists=("all",), line=b"1")
    refused = await store.commit([write], checks={"memory:a": (b"y", None)}, reads=["memory:c"])
    assert (refused.is_done, refused.found) == (False, {"memory:a": b"x", "memory:c": None})
    assert (await store.get("memory:b"), await store.listed("all", limit=9)) == (None, [])
    done = await store.commit([write, Write("memory:a")], checks={"memory:a": (b"y", b"x"), "memory:b": (None,)})
    assert (done.is_done, done.deleted, done.found) == (True, 1, {"memory:a": b"x", "memory:b": None})
    assert (await store.read_log("memory:b"), await store.get("memory:a")) == ([b"1"], None)


async def test_what_a_turn_writes_does_not_depend_on_the_length_of_its_conversation(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = ChatMemory(store, Locks(store), lists=lambda _: ("sessions",))
    sizes, commit = list[int](), store.commit

    async def counting(writes: Sequence[Write], **others: Any) -> Committed:
        sizes[-1] += sum(len(each.key) + len(each.value or b"") + len(each.line or b"") for each in writes)
        return await commit(writes, **others)

    monkeypatch.setattr(store, "commit", counting)
    for number in range(60):
        sizes.append(0)
        async with memory.open_turn("s") as turn:
            assert len(turn.earlier) == number
            await turn.save((UserMessage("what" * 50), AssistantMessage("well" * 50)))
    assert abs(sizes[59] - sizes[1]) <= 2  # a digit more


async def test_half_a_character_in_a_key_or_the_name_of_a_list_comes_back(store: StateStore) -> None:
    write = Write("memory:\udc80", b"x", 30, lists=("of:\ud800/é", "all"), line=b"1")
    await store.commit([write])
    assert [key for key, *_ in await store.listed("of:\ud800/é", limit=9)] == [write.key]
    assert [key for key, *_ in await store.listed("of:\ud801/é", limit=9)] == []
    [record] = [each async for each in store.records()]
    assert (record.key, sorted(record.lists), record.log) == (write.key, sorted(write.lists), (b"1",))


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


FILES_AND_SERVERS = ["file", "redis", "postgresql"]


@pytest.fixture(
    params=[pytest.param(each, marks=pytest.mark.slow) for each in itertools.product(FILES_AND_SERVERS, repeat=2)],
    ids="-".join,
)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[StateStore, StateStore], None]:
    """Two stores, of any two kinds."""
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(opened(kind, tmp_path / f"{number}.db", request))
            for number, kind in enumerate(request.param)
        ]
        yield first, second


async def move(source: StateStore, target: StateStore) -> list[StoredRecord]:
    """What ``state export | toolchat state import`` does; the records that were moved."""
    lines = [json.dumps(_to_json(record)) async for record in source.records()]
    assert await _import(target, [*map(json.loads, lines), {"records": len(lines)}]) == 0
    return [_from_json(json.loads(line)) for line in lines]


async def test_records_move_with_their_lists_and_logs(pair: tuple[StateStore, StateStore]) -> None:
    source, target = pair
    values = {"memory:ü {a} }:b": '["é"]'.encode(), "plain": bytes(range(256)), "todo:\udc80": b""}
    for key in values:
        await source.put(key, b"", ttl=3600)
    for number, (key, value) in enumerate(reversed(values.items())):
        lines = [f"line {number}".encode(), b"\xff", b""]
        for place, line in enumerate(lines):
            await source.commit([Write(key, value, 3600, lists=("all", f"list {number}"), line=line, place=place)])
    await source.put("alone", b"1", ttl=3600)
    await source.put("quota:key:alice", b"{}", ttl=3600)
    assert await source.try_lock("memory:locked", ttl=30)
    await move(source, target)
    assert [key for key, *_ in await target.listed("all", limit=10)] == list(values)
    for number, (key, value) in enumerate(reversed(values.items())):
        lines = [f"line {number}".encode(), b"\xff", b""]
        assert (await target.get(key), await target.read_log(key)) == (value, lines)
        assert [each for each, *_ in await target.listed(f"list {number}", limit=10)] == [key]
    assert (await target.get("alone"), await target.get("quota:key:alice")) == (b"1", None)
    assert await target.try_lock("memory:locked", ttl=30)


async def test_a_second_import_changes_nothing(pair: tuple[StateStore, StateStore]) -> None:
    source, target = pair
    await source.commit([Write("memory:a", b"1", 3600, line=b"old")])
    await move(source, target)
    await target.commit([Write("memory:a", b"2", 3600, line=b"new", place=1)])
    await move(source, target)
    assert (await target.get("memory:a"), await target.read_log("memory:a")) == (b"2", [b"old", b"new"])


async def test_what_lasts_and_what_is_never_evicted_stay_so_after_a_move(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with (
        opened("file", tmp_path / "1.db", request) as first,
        opened("file", tmp_path / "2.db", request) as second,
    ):
        for key, ttl in (("approval:a", 3600), ("memory:a", 3600), ("memory:kept", FOREVER)):
            await first.commit([Write(key, b"1", ttl, is_kept=key == "approval:a")])
        await move(first, second)
        kept = {each.key: (each.is_kept, each.expires > FOREVER) async for each in second.records()}
    assert kept == {"approval:a": (True, False), "memory:a": (False, False), "memory:kept": (False, True)}


def test_an_export_of_an_earlier_version_is_read() -> None:
    line = {"key": "memory:a", "client": "alice", "expires": 4_000_000_000, "value": "1"}
    assert _from_json(line) == StoredRecord("memory:a", b"1", 4e9, "alice", is_kept=False)


async def test_an_export_tells_when_records_expire(pair: tuple[StateStore, StateStore]) -> None:
    source, target = pair
    await source.put("memory:a", b"1", ttl=3600)
    [exported] = await move(source, target)
    [again] = [record async for record in target.records()]
    assert abs(exported.expires - time.time() - 3600) < 60
    assert abs(exported.expires - again.expires) < 60
