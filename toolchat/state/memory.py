"""The in-memory state store: bounded, with expiry, lost when the process exits."""

import heapq
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Generic, TypeVar

from toolchat.messages import immutable
from toolchat.state.base import Lock, LockLost, StateStore, shared_client_key

__all__ = ["InMemoryStateStore"]

_FENCE_SECONDS = 86_400.0
"""Seconds for which an expired lock is remembered: its holder may still write if no other has taken the lock."""

V = TypeVar("V")


@immutable
class _Lease:
    token: int
    until: float


class InMemoryStateStore(StateStore):
    """Stores the most recently used values, up to a number of values of each kind and a number of bytes in total.

    The kind of a value is the part of its key before the first colon, so that many conversations evict conversations,
    but no approvals. A client that stores much evicts its own values first, and the one that it has not used for
    longest: if there are too many values of a kind, the client with the most of them loses one; if there are too many
    bytes, the client with the most bytes, of its largest kind. A value that is larger than the whole store is not
    stored.

    Args:
        max_entries: values of one kind.
        max_bytes: bytes of all keys and values.
        client_key: identifies the current client, for whom stored values are counted.
    """

    kind = "memory"
    available = True
    failures = 0

    def __init__(
        self,
        max_entries: int = 10_000,
        max_bytes: int = 64 * 2**20,
        client_key: Callable[[], str] = shared_client_key,
    ) -> None:
        self._client_key = client_key
        self._sizes = _Shares()
        """Bytes by client, of all kinds."""
        self._kinds: defaultdict[str, _Values] = defaultdict(lambda: _Values(self._sizes))
        self._locks: _Expiring[_Lease] = _Expiring()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._token = 0

    def __len__(self) -> int:
        """The number of values."""
        self._sweep()
        return sum(map(len, self._kinds.values()))

    @property
    def size(self) -> int:
        """The bytes of all keys and values."""
        self._sweep()
        return self._sizes.total

    async def get(self, key: str) -> bytes | None:
        """See :meth:`StateStore.get`; the value counts as used."""
        self._sweep()
        return self._kind(key).use(key)

    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None, unlock: bool = False) -> None:
        """See :meth:`StateStore.put`; the least recently used values of the kind are evicted."""
        self._sweep()
        self._check(lock)
        values = self._kind(key)
        values.pop(key)
        if ttl > 0 and _size(key, value) <= self._max_bytes:
            values.put_for(self._client_key(), key, value, time.monotonic() + ttl)
        if len(values) > self._max_entries:
            values.pop_least_used(values.numbers.largest())
        while self._sizes.total > self._max_bytes:
            client_key = self._sizes.largest()
            max(self._kinds.values(), key=lambda each: each.bytes_of[client_key]).pop_least_used(client_key)
        if lock is not None and unlock:
            self._locks.pop(lock.key)

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        """See :meth:`StateStore.delete`."""
        self._sweep()
        self._check(lock)
        return sum(self._kind(key).pop(key) is not None for key in keys) > 0

    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """See :meth:`StateStore.try_lock`; an expired lock is free."""
        self._sweep()
        held = self._locks.get(key)
        if held is not None and held.until > time.monotonic():
            return None
        self._token += 1
        lock = Lock(key, self._token, self._kind(key).use(key))
        self._hold(lock, ttl)
        return lock

    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """See :meth:`StateStore.renew`; an expired lock is renewed, unless another holder has taken it."""
        self._sweep()
        if not self._owns(lock):
            return False
        self._hold(lock, ttl)
        return True

    async def unlock(self, lock: Lock) -> None:
        """See :meth:`StateStore.unlock`; later writes under the lock are refused."""
        if self._owns(lock):
            self._locks.pop(lock.key)

    def _owns(self, lock: Lock) -> bool:
        held = self._locks.get(lock.key)
        return held is not None and held.token == lock.token

    def _hold(self, lock: Lock, ttl: float) -> None:
        until = time.monotonic() + ttl
        self._locks.put(lock.key, _Lease(lock.token, until), until + _FENCE_SECONDS)

    def _check(self, lock: Lock | None) -> None:
        if lock is not None and not self._owns(lock):
            raise LockLost(lock.token)

    def _kind(self, key: str) -> "_Values":
        kind, colon, _ = key.partition(":")
        return self._kinds[kind if colon else ""]

    def _sweep(self) -> None:
        now = time.monotonic()
        self._locks.drop_expired(now)
        for each in self._kinds.values():
            each.drop_expired(now)


def _size(key: str, value: bytes) -> int:
    return len(key.encode(errors="surrogatepass")) + len(value)


class _Expiring(Generic[V]):
    """A mapping in order of use whose entries expire; a heap has the next deadline."""

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
        # Replaced and removed entries leave their deadlines in the heap, which is rebuilt when these are the majority.
        if len(self._deadlines) > 2 * len(self._entries) + 64:
            self._deadlines = [(deadline, key) for key, (deadline, _) in self._entries.items()]
            heapq.heapify(self._deadlines)

    def pop(self, key: str) -> V | None:
        entry = self._entries.pop(key, None)
        return entry[1] if entry else None

    def drop_expired(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, key = heapq.heappop(self._deadlines)
            entry = self._entries.get(key)
            if entry and entry[0] == deadline:
                self.pop(key)


class _Shares:
    """Amounts by client, and the client with the largest one."""

    def __init__(self) -> None:
        self.total = 0
        self._amounts: dict[str, int] = {}
        self._heap: list[tuple[int, int, str]] = []
        """The clients, largest amount first; outdated entries are skipped when they come up."""
        self._changes = 0

    def add(self, client_key: str, amount: int) -> None:
        self.total += amount
        self._amounts[client_key] = self._amounts.get(client_key, 0) + amount
        if not self._amounts[client_key]:
            del self._amounts[client_key]
        elif len(self._heap) > 2 * len(self._amounts) + 64:
            self._heap.clear()
            for each in self._amounts:
                self._push(each)
        else:
            self._push(client_key)

    def largest(self) -> str:
        """The client with the largest amount; of several, the one that has had it for longest."""
        while True:
            amount, _, client_key = self._heap[0]
            if -amount == self._amounts.get(client_key):
                return client_key
            heapq.heappop(self._heap)

    def _push(self, client_key: str) -> None:
        self._changes += 1
        heapq.heappush(self._heap, (-self._amounts[client_key], self._changes, client_key))


class _Values(_Expiring[bytes]):
    """The values of one kind, with the clients that stored them.

    Args:
        sizes: the bytes of each client in all kinds.
    """

    def __init__(self, sizes: _Shares) -> None:
        super().__init__()
        self.numbers = _Shares()
        self.bytes_of: Counter[str] = Counter()
        self._sizes = sizes
        self._keys_of: dict[str, OrderedDict[str, None]] = {}
        self._client_of: dict[str, str] = {}

    def put_for(self, client_key: str, key: str, value: bytes, deadline: float) -> None:
        """Store the value of a new key."""
        self.put(key, value, deadline)
        self._client_of[key] = client_key
        self._keys_of.setdefault(client_key, OrderedDict())[key] = None
        self._count(client_key, 1, _size(key, value))

    def use(self, key: str) -> bytes | None:
        if (client_key := self._client_of.get(key)) is not None:
            self._keys_of[client_key].move_to_end(key)
        return super().use(key)

    def pop(self, key: str) -> bytes | None:
        value = super().pop(key)
        if value is not None:
            client_key = self._client_of.pop(key)
            self._count(client_key, -1, -_size(key, value))
            keys = self._keys_of[client_key]
            del keys[key]
            if not keys:
                del self._keys_of[client_key], self.bytes_of[client_key]
        return value

    def pop_least_used(self, client_key: str) -> None:
        """Evict the value of a client that it has not used for longest."""
        self.pop(next(iter(self._keys_of[client_key])))

    def _count(self, client_key: str, number: int, size: int) -> None:
        self.numbers.add(client_key, number)
        self.bytes_of[client_key] += size
        self._sizes.add(client_key, size)
