"""What both state stores promise."""

import asyncio

import pytest

from tests.waiting import until
from toolchat.state.base import Lock, LockLost, StateStore


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


async def test_a_lock_comes_with_the_value_of_its_key(store: StateStore) -> None:
    assert (await taken(store, "memory:a")).value is None
    await store.put("memory:b", b"1", ttl=30)
    assert (await taken(store, "memory:b")).value == b"1"


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

    async def ran_out() -> bool:
        return await store.try_lock("memory:b", ttl=30) is not None

    await until(ran_out)
    await store.put("memory:a", b"late", ttl=30, lock=lock)
    assert await store.delete("memory:a", lock=lock)
    assert await store.renew(lock, ttl=30)
    assert await store.try_lock("memory:a", ttl=30) is None


async def test_a_renewed_lock_outlives_its_first_expiry(store: StateStore) -> None:
    lock, other = await taken(store, "memory:a", ttl=0.05), await taken(store, "memory:b", ttl=0.06)
    assert await store.renew(lock, ttl=30)

    async def other_ran_out() -> bool:
        return await store.try_lock("memory:b", ttl=30) is not None

    await until(other_ran_out)
    assert await store.try_lock("memory:a", ttl=30) is None
    assert other.key == "memory:b"


async def test_writes_under_a_released_lock_are_refused(store: StateStore) -> None:
    # A renewal or a write that arrives after the release is refused, and the lock stays free.
    lock = await taken(store, "memory:a")
    await store.unlock(lock)
    assert not await store.renew(lock, ttl=30)
    with pytest.raises(LockLost):
        await store.put("memory:a", b"late", ttl=30, lock=lock)
    assert await store.get("memory:a") is None
    await taken(store, "memory:a")
