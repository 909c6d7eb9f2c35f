"""The bounds of the store in this process."""

import time
import tracemalloc

import pytest

from tests.calling_as import calling_as
from toolchat.state.base import LockLost
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.caller import current_client_key


async def number_and_size(store: SqliteStateStore) -> tuple[int, int]:
    """The number of values, and the bytes of keys and values."""
    sizes = [len(record.key) + len(record.value) async for record in store.records()]
    return len(sizes), sum(sizes)


async def test_the_values_that_were_not_written_for_longest_are_evicted() -> None:
    store = SqliteStateStore(max_entries=3)
    for key in "abc":
        await store.put(key, b"x", ttl=30)
    await store.put("a", b"y", ttl=30)
    await store.put("d", b"x", ttl=30)
    assert [await store.get(key) for key in "abcd"] == [b"y", None, b"x", b"x"]


async def test_values_of_one_kind_do_not_evict_those_of_another() -> None:
    store = SqliteStateStore(max_entries=2, max_bytes=1000)
    await store.put("approval:a", bytes(100), ttl=30)
    for number in range(100):
        await store.put(f"memory:{number}", bytes(400), ttl=30)
    assert (await store.get("approval:a"), await number_and_size(store)) == (bytes(100), (3, 928))
    assert await store.get("memory:99") == bytes(400)


async def test_a_client_that_stores_much_evicts_its_own_values_only() -> None:
    store = SqliteStateStore(max_entries=100, client_key=current_client_key)
    with calling_as("alice"):
        await store.put("memory:hers", b"x", ttl=30)
    for number in range(1000):
        with calling_as(address="192.0.2.1"):
            await store.put(f"memory:{number}", b"x", ttl=30)
    with calling_as("bob"):
        await store.put("memory:his", b"x", ttl=30)
    assert (await number_and_size(store))[0] == 100
    assert [await store.get(key) for key in ("memory:hers", "memory:his", "memory:999", "memory:902")] == [b"x"] * 4
    assert await store.get("memory:901") is None


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


async def test_clients_with_equally_many_values_still_lose_one() -> None:
    store = SqliteStateStore(max_entries=50, client_key=current_client_key)
    for number in range(1000):
        with calling_as(address=f"192.0.2.{number % 250}"):
            await store.put(f"memory:{number}", b"x", ttl=30)
    assert (await number_and_size(store))[0] == 50
    assert await store.get("memory:999") == b"x"


async def test_an_expired_value_makes_room_for_a_new_one() -> None:
    store = SqliteStateStore(max_entries=2)
    await store.put("old", b"x", ttl=30)
    await store.put("short", b"x", ttl=0.02)
    deadline = time.monotonic() + 0.02
    while time.monotonic() <= deadline:
        pass
    await store.put("new", b"x", ttl=30)
    assert await store.get("old") == b"x"


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


async def test_values_do_not_evict_locks() -> None:
    store = SqliteStateStore(max_entries=1)
    lock = await store.try_lock("memory:a", ttl=30)
    for number in range(100):
        await store.put(f"memory:{number}", b"x", ttl=30)
    assert lock
    assert await store.try_lock("memory:a", ttl=30) is None
    await store.put("memory:a", b"x", ttl=30, lock=lock)


async def test_work_that_outlives_its_lock_is_refused() -> None:
    # A process that stood still too long finds its lock taken, and what it writes is not kept.
    store = SqliteStateStore()
    async with Locks(store, ttl=0.03).hold("memory:a") as lock:
        time.sleep(0.04)  # noqa: ASYNC251 - the whole process stands still, renewals too
        assert await store.try_lock("memory:a", ttl=30)
        with pytest.raises(LockLost):
            await store.put("memory:a", b"late", ttl=30, lock=lock)
    assert await store.try_lock("memory:a", ttl=30) is None
