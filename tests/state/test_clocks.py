"""A clock that is moved locks nobody out for longer than any deadline lasts, and nothing fails."""

import time
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic_core import to_json

import toolchat.state.sqlite as sqlite_store
from toolchat.service.access.principals import Principal
from toolchat.service.access.quotas import Quotas
from toolchat.service.access.usage import DAY, Limits, NameUsage, reserve
from toolchat.service.api.idempotency import IdempotencyStore, IdempotentRequest
from toolchat.state.base import StateStore, Write
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import IN_MEMORY

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
    return Quotas(store, Limits("all", concurrent=1), longest=60)


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


def test_a_running_question_ends_by_itself_when_its_process_died() -> None:
    used, limits = NameUsage(), Limits("alice", concurrent=1)
    found = []
    for now in (0.0, 59.0, 60.0):
        used.refresh(now, 60)
        found.append(reserve([used], [limits], f"{now}", now=now, longest=60)[2])
    assert found == [None, "concurrent", None]
