"""Locks that are waited for, over both stores."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.calling_as import calling_as
from tests.waiting import PATIENCE, until
from toolchat.errors import SessionBusy
from toolchat.state.base import Lock, StateStore
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.caller import current_client_key


class CountingStore(SqliteStateStore):
    """Counts how often somebody asked for a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = 0

    async def try_lock(self, key: str, **options: Any) -> Lock | None:
        self.attempts += 1
        return await super().try_lock(key, **options)


class Room:
    """Where one at a time may be; remembers who was in, in order."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        self._inside = 0
        self.visitors: list[int] = []

    async def visit(self, name: int, *, stay: float = 0.001) -> None:
        async with self._locks.hold("memory:a"):
            self._inside += 1
            assert self._inside == 1
            self.visitors.append(name)
            await asyncio.sleep(stay)
            self._inside -= 1


async def is_free(store: StateStore, key: str = "memory:a") -> bool:
    lock = await store.try_lock(key, ttl=30)
    if lock:
        await store.unlock(lock)
    return lock is not None


async def begun(locks: Locks, *, stay: float = 30) -> asyncio.Task[None]:
    """Somebody who holds the lock."""
    room = Room(locks)
    task = asyncio.create_task(room.visit(0, stay=stay))
    await until(lambda: bool(room.visitors))
    return task


async def ended(*tasks: asyncio.Task[None]) -> Sequence[object]:
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_waiting_requests_get_the_lock_one_by_one_in_order(store: StateStore) -> None:
    locks = Locks(store)
    room = Room(locks)
    await asyncio.gather(*(room.visit(name) for name in range(20)))
    assert room.visitors == list(range(20))
    assert len(locks) == 0
    assert await is_free(store)


async def test_clients_take_turns_and_a_busy_one_leaves_room_for_others(store: StateStore) -> None:
    locks = Locks(store, max_waiting=4, client_key=current_client_key)
    holder = await begun(locks)
    room = Room(locks)
    waiting = []
    for client, names in {"crowd": (1, 2, 3, 4), "owner": (10, 11)}.items():
        with calling_as(client):
            waiting += [asyncio.create_task(room.visit(name)) for name in names]
        await asyncio.sleep(0)
    crowd, owner = waiting[:4], waiting[4:]
    with calling_as("crowd"), pytest.raises(SessionBusy):
        await room.visit(5)
    await ended(holder)
    await asyncio.gather(*crowd, owner[0])
    assert room.visitors == [1, 10, 2, 3, 4]
    assert isinstance((await ended(owner[1]))[0], SessionBusy)


async def test_different_keys_do_not_wait_for_each_other(store: StateStore) -> None:
    locks = Locks(store)
    async with locks.hold("memory:a") as first, locks.hold("memory:b") as second:
        assert (first.key, second.key, len(locks)) == ("memory:a", "memory:b", 2)
    assert len(locks) == 0


async def test_requests_of_the_same_process_wait_without_polling_the_store() -> None:
    # Ten wait for a fifth of a second and cost no attempt; then each takes one.
    store = CountingStore()
    room = Room(Locks(store))
    first = asyncio.create_task(room.visit(0, stay=0.2))
    others = [asyncio.create_task(room.visit(name)) for name in range(1, 11)]
    await first
    assert store.attempts <= 2  # whose turn it is now may have asked already
    await asyncio.gather(*others)
    assert store.attempts == 11


@pytest.mark.parametrize(("ttl", "retry_after"), [(0.2, 1), (30.1, 30)])
async def test_a_refusal_names_the_time_after_which_the_lock_of_a_crashed_holder_expires(
    ttl: float, retry_after: int, store: StateStore
) -> None:
    # Held by another process, which does not let go; a second at least, as for one that works.
    locks = Locks(store, ttl=ttl, wait=0.1)
    assert await store.try_lock("memory:a", ttl=30)
    with pytest.raises(SessionBusy, match="another request of this session is being answered") as busy:
        await Room(locks).visit(1)
    assert (busy.value.status, busy.value.code, busy.value.retry_after) == (409, "session-busy", retry_after)
    assert len(locks) == 0


async def test_time_in_the_queue_counts_towards_the_wait(store: StateStore) -> None:
    locks = Locks(store, wait=0.1)
    holder = await begun(locks)
    with pytest.raises(SessionBusy) as busy:
        await Room(locks).visit(1)
    assert busy.value.retry_after == 1  # its holder is in this process, and lives
    await ended(holder)
    assert len(locks) == 0


async def test_with_no_time_to_wait_only_a_free_lock_is_taken(store: StateStore) -> None:
    locks = Locks(store, wait=0)
    async with locks.hold("memory:a"):
        with pytest.raises(SessionBusy):
            await Room(locks).visit(1)
    lock = await store.try_lock("memory:a", ttl=30)
    with pytest.raises(SessionBusy):
        await Room(locks).visit(1)
    assert lock
    await store.unlock(lock)
    await Room(locks).visit(1)
    assert len(locks) == 0


async def test_the_number_of_waiting_requests_is_limited(store: StateStore) -> None:
    # One holds, two wait, the next is refused at once; those in line are not disturbed.
    locks = Locks(store, max_waiting=2)
    holder = await begun(locks)
    room = Room(locks)
    waiting = [asyncio.create_task(room.visit(name)) for name in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(SessionBusy):
        await room.visit(3)
    await ended(holder)
    await asyncio.gather(*waiting)
    assert room.visitors == [1, 2]


@pytest.mark.slow
async def test_a_held_lock_is_renewed(store: StateStore) -> None:
    # Work that takes longer than the lock's time keeps it to the end.
    end = time.monotonic() + 3
    async with Locks(store, ttl=2).hold("memory:a") as lock:
        while time.monotonic() < end:
            assert await store.try_lock("memory:a", ttl=30) is None
            await asyncio.sleep(0.02)
        await store.put("memory:a", b"done", ttl=30, lock=lock)
    assert await is_free(store)


async def test_the_lock_of_a_crashed_process_is_taken_over(store: StateStore) -> None:
    # Nobody renews it, so it is free after its time, and not before.
    began = time.monotonic()
    dead = await store.try_lock("memory:a", ttl=0.3)
    assert dead
    async with Locks(store, wait=PATIENCE).hold("memory:a") as lock:
        assert lock.token != dead.token
        assert time.monotonic() - began > 0.29


async def test_a_failure_inside_releases_the_lock(store: StateStore) -> None:
    locks = Locks(store)
    with pytest.raises(LookupError):
        async with locks.hold("memory:a"):
            raise LookupError
    assert await is_free(store)
    assert len(locks) == 0


async def test_a_cancelled_wait_leaves_no_trace(store: StateStore) -> None:
    # Those behind move up, and the order stays.
    locks = Locks(store)
    holder = await begun(locks)
    room = Room(locks)
    waiting = [asyncio.create_task(room.visit(name)) for name in range(1, 7)]
    await asyncio.sleep(0)
    await ended(*waiting[::2])
    await ended(holder)
    await asyncio.gather(*waiting[1::2])
    assert room.visitors == [2, 4, 6]
    assert len(locks) == 0


async def test_a_turn_that_came_just_before_a_cancellation_is_passed_on(store: StateStore) -> None:
    locks = Locks(store, wait=PATIENCE)
    room = Room(locks)
    async with locks.hold("memory:a"):
        first, second = (asyncio.create_task(room.visit(name)) for name in (1, 2))
        await asyncio.sleep(0)
    assert not first.done()
    first.cancel()
    async with asyncio.timeout(PATIENCE / 2):
        await second
    assert room.visitors == [2]
    assert len(locks) == 0


async def test_a_wait_for_another_process_leaves_no_trace_when_it_is_cancelled(store: StateStore) -> None:
    locks = Locks(store)
    lock = await store.try_lock("memory:a", ttl=30)
    waiting = asyncio.create_task(Room(locks).visit(1))
    await asyncio.sleep(0.05)
    await ended(waiting)
    assert len(locks) == 0
    assert lock
    await store.unlock(lock)
    assert await is_free(store)


async def test_repeated_cancellation_does_not_keep_the_lock(store: StateStore) -> None:
    # Frameworks cancel every await of a request whose client left; the release goes through all the same.
    locks = Locks(store)
    with anyio.CancelScope() as scope:
        async with locks.hold("memory:a"):
            scope.cancel()
            await asyncio.sleep(30)
    await until(lambda: is_free(store))
    assert len(locks) == 0


async def test_cancellation_at_any_moment_releases_the_lock(store: StateStore) -> None:
    # Cancelled after a few steps of the event loop, be it before, during or after the store's answer.
    locks = Locks(store)

    async def free() -> bool:
        return await is_free(store)

    for steps in range(60):
        visitor = asyncio.create_task(Room(locks).visit(1, stay=30))
        for _ in range(steps % 20):
            await asyncio.sleep(0.0001 * (steps // 20))
        await ended(visitor)
        await until(free)
    assert len(locks) == 0
