"""The store in SQLite: its bounds, and a clock that is moved."""

import time
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic_core import to_json

import toolchat.state.sqlite as sqlite_store
from tests.calling_as import calling_as
from toolchat.service.access.principals import Principal
from toolchat.service.access.quotas import Quotas
from toolchat.service.access.usage import DAY, NameUsage, QuotaLimits
from toolchat.service.api.idempotency import IdempotencyStore, IdempotentRequest
from toolchat.state.base import LockLost, StateStore, Write
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import IN_MEMORY
from toolchat.tool_calling.caller import current_client_key


async def number_and_size(store: SqliteStateStore) -> tuple[int, int]:
    """The number of values, and the bytes of keys and values."""
    sizes = [len(record.key) + len(record.value) async for record in store.records()]
    return len(sizes), sum(sizes)


async def test_the_values_that_were_not_written_for_longest_are_evicted() -> None:
    store = SqliteStateStore(max_bytes=6)
    for key in "abc":
        await store.put(key, b"x", ttl=30)
    await store.put("a", b"y", ttl=30)
    await store.put("d", b"x", ttl=30)
    assert [await store.get(key) for key in "abcd"] == [b"y", None, b"x", b"x"]


async def test_values_of_one_kind_do_not_evict_those_of_another() -> None:
    store = SqliteStateStore(max_bytes=1000)
    await store.put("approval:a", bytes(100), ttl=30)
    for number in range(100):
        await store.put(f"memory:{number}", bytes(400), ttl=30)
    assert (await store.get("approval:a"), await number_and_size(store)) == (bytes(100), (3, 928))
    assert store.usage() == (928, 1000)
    assert await store.get("memory:99") == bytes(400)


@pytest.mark.parametrize("kinds", [["approval"], ["approval", "memory", "idempotency"]])
async def test_a_client_that_stores_many_bytes_evicts_its_own_values_only(kinds: list[str]) -> None:
    # In one kind or spread over several; the others have more values, and most of the bytes of their kind.
    store = SqliteStateStore(max_bytes=100_000, client_key=current_client_key)
    with calling_as("alice"):
        for number in range(60):
            await store.put(f"approval:hers-{number}", bytes(600), ttl=30)
    with calling_as("bob"):
        for number in range(45):
            await store.put(f"{kinds[number % len(kinds)]}:his-{number}", bytes(4000), ttl=30)
    assert [await store.get(f"approval:hers-{number}") for number in range(60)] == [bytes(600)] * 60
    assert await store.get(f"{kinds[44 % len(kinds)]}:his-44") == bytes(4000)
    assert 90_000 < (await number_and_size(store))[1] <= 100_000


async def test_bytes_are_bounded_as_well_as_values() -> None:
    # A value that is larger than the store is not kept, forgets its predecessor, and drives nobody out.
    store = SqliteStateStore(max_bytes=1000)
    for key in "abcd":
        await store.put(key, bytes(299), ttl=30)
    assert await number_and_size(store) == (3, 900)
    await store.put("b", b"", ttl=30)
    await store.put("c", bytes(1000), ttl=30)
    assert [await store.get(key) for key in "abcd"] == [None, b"", None, bytes(299)]
    await store.delete("b", "d")
    assert await number_and_size(store) == (0, 0)


async def test_writing_and_locking_again_and_again_costs_no_memory() -> None:
    # What replaced and released entries leave behind is bounded.
    store = SqliteStateStore()
    tracemalloc.start()
    try:
        for number in range(5_000):
            await store.put("memory:a", b"x", ttl=30)
            lock = await store.try_lock(f"memory:{number}", ttl=30)
            assert lock
            await store.renew(lock, ttl=30)
            await store.unlock(lock)
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()


async def test_values_evict_neither_locks_nor_what_is_kept() -> None:
    # What is kept does not count for the limit either, however much it is.
    store = SqliteStateStore(max_bytes=20)
    lock = await store.try_lock("memory:a", ttl=30)
    await store.commit([Write("approval:a", bytes(1000), 30, is_kept=True, line=bytes(1000))])
    for number in range(100):
        await store.put(f"memory:{number}", b"x", ttl=30)
    assert lock
    assert await store.try_lock("memory:a", ttl=30) is None
    assert await store.get("approval:a") == bytes(1000)
    assert await store.get("memory:99") == b"x"


async def test_a_log_counts_and_is_evicted_with_its_value() -> None:
    store = SqliteStateStore(max_bytes=10_000)
    for number in range(100):
        for place in range(3):
            await store.commit([Write(f"memory:{number}", b"x", 30, line=bytes(1000), place=place)])
    logs = [await store.read_log(f"memory:{number}") for number in range(100)]
    assert logs == [[]] * 97 + [[bytes(1000)] * 3] * 3
    await store.commit([Write("memory:99", b"x", 30, line=b"x", place=1)])
    assert await store.read_log("memory:99") == [bytes(1000), b"x"]
    await store.put("memory:100", bytes(1900), ttl=30)
    assert await store.read_log("memory:97")  # the two lines that went made room


Fill = Callable[[SqliteStateStore, int], Awaitable[None]]


async def fill_with_conversations(store: SqliteStateStore, number: int) -> None:
    for each in range(number):
        await store.commit([Write(f"memory:{each}", bytes(100), 30, line=bytes(900), lists=(f"key:{each % 10}",))])


async def fill_with_what_is_kept(store: SqliteStateStore, number: int) -> None:
    for each in range(number):
        await store.commit([Write(f"approval:{each}", bytes(1000), 30, is_kept=True)])


async def instructions(store: SqliteStateStore, key: str) -> int:
    """What a write costs the most of 20 times, in steps of SQLite's virtual machine."""
    counted = [0]

    def count() -> None:
        counted[0] += 1

    most = 0
    for number in range(20):
        counted[0] = 0
        store._opened().set_progress_handler(count, 1)
        await store.commit([Write(f"{key}{number}", bytes(100), 30, line=bytes(900), lists=("key:1",))])
        store._opened().set_progress_handler(None, 1)
        most = max(most, counted[0])
    return most


@pytest.mark.parametrize("fill", [fill_with_conversations, fill_with_what_is_kept])
async def test_what_a_write_costs_depends_on_neither_the_number_of_values_nor_the_limit(fill: Fill) -> None:
    # Below the limit, at it, and far above it, as after the limit was lowered; new keys and those of before.
    costs = dict[str, list[int]]()
    for number in (1000, 6_000):
        store = SqliteStateStore(max_bytes=2**50)
        await fill(store, number)
        for limit in (2**50, 1000 * number, 100 * number):
            store._max_bytes = limit
            for key in ("memory:new-", "memory:"):
                costs.setdefault(f"{key} {min(limit // number, 10**6)}", []).append(await instructions(store, key))
    assert all(large < 1.2 * small for small, large in costs.values()), costs
    assert max(map(max, costs.values())) < 8_000, costs


async def test_work_that_outlives_its_lock_is_refused() -> None:
    # A process that stood still too long finds its lock taken, and what it writes is not kept.
    store = SqliteStateStore()
    async with Locks(store, ttl=0.03).hold("memory:a") as lock:
        time.sleep(0.04)  # noqa: ASYNC251 - the whole process stands still, renewals too
        assert await store.try_lock("memory:a", ttl=30)
        with pytest.raises(LockLost):
            await store.put("memory:a", b"late", ttl=30, lock=lock)
    assert await store.try_lock("memory:a", ttl=30) is None


async def test_what_is_kept_for_a_time_can_be_evicted_afterwards_and_the_other_way_round() -> None:
    store = SqliteStateStore(max_bytes=1000)
    value = b"x" * 400
    for is_kept in (True, False, True):
        await store.commit([Write("a:1", value, 60, is_kept=is_kept, line=b"line")])
    assert store.usage() == (0, 1000)
    await store.commit([Write("a:1", value, 60)])
    assert (store.usage() or (0, 0))[0] > 400
    for number in range(2, 5):
        await store.put(f"a:{number}", value, ttl=60)
    assert [await store.get(f"a:{number}") is not None for number in range(1, 5)] == [False, False, True, True]


HOUR = 3600.0
ALICE = Principal("alice", requests_per_minute=1, concurrent=1, tokens_per_day=10)
ONCE = IdempotentRequest("owner", "key", "pay")


class Clock:
    """Stands for the module ``time``."""

    def __init__(self) -> None:
        self.offset = 0.0
        self.monotonic = time.monotonic

    def time(self) -> float:
        return time.time() + self.offset


def quotas(store: StateStore) -> Quotas:
    return Quotas(store, QuotaLimits("all", concurrent=1))


async def let_everybody_in(store: StateStore) -> None:
    await quotas(store).reserve(ALICE)
    async with Locks(store, wait=0).hold("memory:a") as lock:
        await store.put("memory:a", b"x", ttl=30, lock=lock)
    assert await IdempotencyStore(store).find(ONCE) is None
    async with Locks(store, wait=0).hold(f"once:{ONCE.name}"):
        pass


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("moved", [-HOUR, HOUR, -DAY])
@pytest.mark.parametrize("is_file", [False, True])
async def test_a_clock_that_is_moved_locks_nobody_out(
    *, moved: float, is_file: bool, is_restarted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(sqlite_store, "time", clock)
    path = tmp_path / "state.db" if is_file else IN_MEMORY
    store = SqliteStateStore(path)
    counted = quotas(store)
    spending = await counted.reserve(ALICE)
    spending.tokens = 5
    await counted.settle(spending)
    clock.offset = 60
    await counted.reserve(ALICE)  # never ends, as its process dies
    for key in ("memory:a", f"once:{ONCE.name}"):
        assert await store.try_lock(key, ttl=4.5)
    clock.offset += moved
    if is_restarted:
        await store.aclose()
        store = SqliteStateStore(path)
    if not is_file and not is_restarted:  # its deadlines do not depend on the clock
        monkeypatch.setattr(store, "_now", lambda: time.monotonic() + 4.5)
    await let_everybody_in(store)
    await store.aclose()


@pytest.mark.parametrize("ahead", [HOUR, float(DAY)])
async def test_what_a_clock_that_went_ahead_has_written_locks_nobody_out(ahead: float, store: StateStore) -> None:
    # As a server finds it whose clock was set back since.
    now = time.time() + ahead
    used = NameUsage(now + 60, {"died": now + 60}, int(now // DAY), 5)
    for name in ("key:alice", "all"):
        await store.put(f"quota:{name}", to_json(asdict(used)), ttl=2 * DAY + ahead)
    for key in ("memory:a", f"once:{ONCE.name}"):
        await store.commit([Write(f"lock:{key}", bytes(16), 4.5 + ahead, is_kept=True)])
    await let_everybody_in(store)


async def test_a_lock_holds_for_as_long_as_a_lease_can_last(store: StateStore) -> None:
    assert await store.try_lock("memory:a", ttl=60)
    assert await store.try_lock("memory:a", ttl=60) is None
    await store.commit([Write("lock:memory:b", bytes(16), 61)])
    assert await store.try_lock("memory:b", ttl=60)
