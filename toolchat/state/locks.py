"""Locks with a wait queue: fair within this process, polled across processes, renewed while they are held."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field

import toolchat.instruments as instruments
from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.state.base import Lock, StateStore, kept_task, shared_client_key

LOCK_SECONDS = 4.5
"""Seconds after which the lock of a crashed process expires.

- It is shorter than the five seconds that a request waits for its session, so that a retry after a crash succeeds.
- It is renewed after a third, so that a process may stall for two thirds, and one of two renewals may fail.
- A process that stalls for longer may lose the lock. Its writes are then refused by the fence.
"""

_FIRST_PAUSE = 0.02
_MAX_PAUSE = 0.25


@dataclass(slots=True)
class _WaitQueue:
    """The wait queue of one lock in this process: round-robin across clients, in order for each client."""

    members: int = 0
    """The holder and all requests that wait."""
    lock: Lock | None = None
    """The lock that is held, until it is released."""
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """By client key; the client whose turn is next comes first."""

    async def wait_turn(self, client_key: str) -> None:
        """Wait until it is the caller's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(client_key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._remove(client_key, turn)
            else:
                # The turn came just before the cancellation. It has to be passed on, or the queue would stand still.
                self.next()
            raise

    def next(self) -> None:
        """Pass the turn to the next request."""
        while self.waiting:
            client_key = next(iter(self.waiting))
            others = self.waiting.pop(client_key)
            first = others.popleft()
            if others:
                self.waiting[client_key] = others  # behind all other clients
            if not first.done():
                first.set_result(None)
                return

    def _remove(self, client_key: str, turn: asyncio.Future[None]) -> None:
        own = self.waiting.get(client_key)
        if own and turn in own:
            own.remove(turn)
            if not own:
                del self.waiting[client_key]


class Locks:
    """Exclusive locks by key, across all processes that share the store.

    Args:
        store: the store of the locks.
        ttl: seconds after which the lock of a crashed process expires.
        wait: seconds to wait for a lock.
        max_waiting: limit of the requests that wait for one lock in this process. A client without a waiting request is
            admitted up to twice as many, so that a busy client cannot shut others out.
        client_key: identifies the current client; clients take turns.
    """

    def __init__(
        self,
        store: StateStore,
        *,
        ttl: float = LOCK_SECONDS,
        wait: float = 5.0,
        max_waiting: int = 32,
        client_key: Callable[[], str] = shared_client_key,
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._wait = wait
        self._max_waiting = max_waiting
        self._client_key = client_key
        self._queues: dict[str, _WaitQueue] = {}
        self._shielded = set[asyncio.Task[None]]()

    def __len__(self) -> int:
        """The number of locks that are held or waited for in this process."""
        return len(self._queues)

    def hold(self, key: str) -> "Hold":
        """Hold the lock of a key during an ``async with`` block.

        The lock is renewed while it is held. If it is lost nevertheless, writes under it are refused.

        Raises:
            SessionBusy: on entry, if the lock is not released in time, or too many requests wait for it.
            StoreUnavailable: on entry, if the store cannot be reached.
        """
        return Hold(self, key)

    def released(self, lock: Lock) -> None:
        """Note that a held lock was released, in the step that stored what it protects (:attr:`Lock.release`)."""
        self._queues[lock.key].lock = None

    async def acquire(self, hold: "Hold") -> Lock:
        """Take the lock of a :class:`Hold`."""
        loop, key = asyncio.get_running_loop(), hold.key
        began = loop.time()
        deadline = began + self._wait
        hold.queue = queue = await self._enqueue(key, deadline)
        try:
            queue.lock = lock = await self._take(hold, deadline)
        except BaseException:
            self._dequeue(key, queue)
            raise
        instruments.observer.record_wait(f"lock:{key.partition(':')[0]}", loop.time() - began)
        hold.renewal = loop.call_later(self._ttl / 3, self._start_renewal, queue, lock)
        return lock

    async def release(self, hold: "Hold") -> None:
        """Release the lock of a :class:`Hold`, unless that has been done, and pass the turn on."""
        hold.renewal.cancel()
        queue = hold.queue
        try:
            if (lock := queue.lock) is not None:
                queue.lock = None
                # Shielded: if the holder is cancelled now, the lock must not stay held until it expires.
                await asyncio.shield(kept_task(self._shielded, self._unlock(lock)))
        finally:
            self._dequeue(hold.key, queue)

    async def _enqueue(self, key: str, deadline: float) -> _WaitQueue:
        """Wait for the earlier requests of this process."""
        queue, client_key = self._queues.setdefault(key, _WaitQueue()), self._client_key()
        if queue.members > (self._max_waiting if client_key in queue.waiting else 2 * self._max_waiting):
            raise _busy()
        queue.members += 1
        try:
            if queue.members > 1:
                async with asyncio.timeout_at(deadline):
                    await queue.wait_turn(client_key)
        except TimeoutError:
            self._forget(key, queue)
            raise _busy() from None
        except BaseException:
            self._forget(key, queue)
            raise
        return queue

    def _dequeue(self, key: str, queue: _WaitQueue) -> None:
        queue.next()
        self._forget(key, queue)

    def _forget(self, key: str, queue: _WaitQueue) -> None:
        queue.members -= 1
        if not queue.members:
            del self._queues[key]

    async def _take(self, hold: "Hold", deadline: float) -> Lock:
        """Poll the store until the lock is taken: at least once, and not much beyond the deadline."""
        pause = _FIRST_PAUSE
        while True:
            if lock := await self._store.try_lock(hold.key, ttl=self._ttl):
                return lock
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                # If the holder crashed when this wait began, its lock expires after that time.
                raise _busy(self._ttl - self._wait)
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 1.5, _MAX_PAUSE)

    def _start_renewal(self, queue: _WaitQueue, lock: Lock) -> None:
        """Start to renew a lock. A timer does so late, as nearly every lock is released before and needs no task."""
        kept_task(self._shielded, self._renew(queue, lock))

    async def _renew(self, queue: _WaitQueue, lock: Lock) -> None:
        loop = asyncio.get_running_loop()
        while queue.lock is lock:
            next_at = loop.time() + self._ttl / 3
            # An unavailable store is no reason to stop: it may be back before the lock expires.
            with suppress(StoreUnavailable):
                if not await self._store.renew(lock, ttl=self._ttl):
                    return
            await asyncio.sleep(next_at - loop.time())  # no pause after an attempt that took as long

    async def _unlock(self, lock: Lock) -> None:
        with suppress(StoreUnavailable):
            await self._store.unlock(lock)


class Hold:
    """Holds a lock during an ``async with`` block."""

    __slots__ = ("_locks", "key", "queue", "renewal")

    queue: _WaitQueue
    renewal: asyncio.TimerHandle

    def __init__(self, locks: Locks, key: str) -> None:
        self._locks, self.key = locks, key

    def __aenter__(self) -> Coroutine[None, None, Lock]:
        return self._locks.acquire(self)

    def __aexit__(self, *_: object) -> Coroutine[None, None, None]:
        return self._locks.release(self)


def _busy(rest: float = 0) -> SessionBusy:
    return SessionBusy("another request of this session is being answered", retry_after=max(1, rest))
