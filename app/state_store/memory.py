"""State in this process: bounded, with a time for everything, gone when the process ends."""

import heapq
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.state_store.base import Lock, LockLost, StateStore

__all__ = ["InMemoryStateStore"]

_FENCED = 86_400.0
"""Seconds that a lock which ran out is remembered, so that its holder can still write when nobody took it."""

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Held:
    token: int
    until: float


class InMemoryStateStore(StateStore):
    """Keeps the values that were used last, up to a number of values and of bytes.

    A value that is larger than the whole store is not kept.

    Args:
        max_entries: values at once.
        max_bytes: bytes of all keys and values together.
    """

    kind = "memory"
    available = True
    failures = 0

    def __init__(self, max_entries: int = 10_000, max_bytes: int = 64 * 2**20) -> None:
        self._values: _Expiring[bytes] = _Expiring()
        self._locks: _Expiring[_Held] = _Expiring()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._token = 0

    def __len__(self) -> int:
        """How many values there are."""
        self._sweep()
        return len(self._values)

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        self._sweep()
        return self._bytes

    async def get(self, key: str) -> bytes | None:
        """Look a value up; that makes it the one used last."""
        self._sweep()
        return self._values.use(key)

    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None) -> None:
        """Keep a value; those that were not used for longest give way."""
        self._sweep()
        self._check(lock)
        self._forget(key)
        size = _size(key, value)
        if ttl > 0 and size <= self._max_bytes:
            self._values.put(key, value, time.monotonic() + ttl)
            self._bytes += size
        while len(self._values) > self._max_entries or self._bytes > self._max_bytes:
            self._bytes -= _size(*self._values.pop_least_used())

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        """Forget values."""
        self._sweep()
        self._check(lock)
        return sum(self._forget(key) for key in keys) > 0

    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """Take a lock that is free or ran out."""
        self._sweep()
        held = self._locks.get(key)
        if held is not None and held.until > time.monotonic():
            return None
        self._token += 1
        lock = Lock(key, self._token)
        self._hold(lock, ttl)
        return lock

    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """Hold a lock for longer, even one that ran out."""
        self._sweep()
        if not self._owns(lock):
            return False
        self._hold(lock, ttl)
        return True

    async def unlock(self, lock: Lock) -> None:
        """Release a lock; nothing can be written under it any more."""
        if self._owns(lock):
            self._locks.pop(lock.key)

    def _owns(self, lock: Lock) -> bool:
        held = self._locks.get(lock.key)
        return held is not None and held.token == lock.token

    def _hold(self, lock: Lock, ttl: float) -> None:
        until = time.monotonic() + ttl
        self._locks.put(lock.key, _Held(lock.token, until), until + _FENCED)

    def _check(self, lock: Lock | None) -> None:
        if lock is not None and not self._owns(lock):
            raise LockLost(lock.token)

    def _forget(self, key: str) -> bool:
        value = self._values.pop(key)
        if value is None:
            return False
        self._bytes -= _size(key, value)
        return True

    def _sweep(self) -> None:
        now = time.monotonic()
        self._locks.pop_expired(now)
        self._bytes -= sum(_size(key, value) for key, value in self._values.pop_expired(now))


def _size(key: str, value: bytes) -> int:
    return len(key.encode(errors="surrogatepass")) + len(value)


class _Expiring(Generic[V]):
    """A mapping in order of use whose entries have a deadline each, the next one always at hand."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, tuple[float, V]] = OrderedDict()
        self._deadlines: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> V | None:
        entry = self._entries.get(key)
        return entry[1] if entry else None

    def use(self, key: str) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self.get(key)

    def put(self, key: str, value: V, deadline: float) -> None:
        self._entries[key] = (deadline, value)
        self._entries.move_to_end(key)
        heapq.heappush(self._deadlines, (deadline, key))
        # Entries that were replaced or removed leave their deadlines behind.
        if len(self._deadlines) > 2 * len(self._entries) + 64:
            self._deadlines = [(deadline, key) for key, (deadline, _) in self._entries.items()]
            heapq.heapify(self._deadlines)

    def pop(self, key: str) -> V | None:
        entry = self._entries.pop(key, None)
        return entry[1] if entry else None

    def pop_least_used(self) -> tuple[str, V]:
        key, (_, value) = self._entries.popitem(last=False)
        return key, value

    def pop_expired(self, now: float) -> list[tuple[str, V]]:
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, key = heapq.heappop(self._deadlines)
            entry = self._entries.get(key)
            if entry and entry[0] == deadline:
                del self._entries[key]
                expired.append((key, entry[1]))
        return expired
