"""Locks that are waited for: in order within this process, by turns with the others."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from app.callers import current_caller
from app.errors import SessionBusy, StoreUnavailable
from app.observation.telling import waited
from app.state_store.base import Lock, StateStore

__all__ = ["LOCK_SECONDS", "Locks"]

LOCK_SECONDS = 10.0
"""Seconds after which the lock of a process that died is free again."""

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.25


@dataclass(slots=True)
class _Line:
    """Those of this process who hold a lock or wait for it: one of each client in turn, each in the order of coming."""

    members: int = 0
    lock: Lock | None = None
    """What is held, until it is released."""
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """By the shares of the clients; whose turn it is comes first."""

    async def turn(self, share: str) -> None:
        """Wait until those before have had theirs."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(share, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.cancelled():
                self._forget(share, mine)
            else:
                self.next()  # it was given just then
            raise

    def next(self) -> None:
        """Give the turn to the next."""
        while self.waiting:
            share = next(iter(self.waiting))
            others = self.waiting.pop(share)
            first = others.popleft()
            if others:
                self.waiting[share] = others  # behind all other clients
            if not first.done():
                first.set_result(None)
                return

    def _forget(self, share: str, mine: asyncio.Future[None]) -> None:
        own = self.waiting.get(share)
        if own and mine in own:
            own.remove(mine)
            if not own:
                del self.waiting[share]


class Locks:
    """Lets one at a time work under a key, among all processes that share the store.

    Args:
        store: where the locks are kept.
        ttl: seconds after which the lock of a process that died is free again.
        wait: seconds to wait for a lock.
        max_waiting: how many may wait for one lock in this process; a client of whom nobody waits there may all the
            same, up to twice as many.
    """

    def __init__(
        self, store: StateStore, *, ttl: float = LOCK_SECONDS, wait: float = 5.0, max_waiting: int = 32
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._wait = wait
        self._max_waiting = max_waiting
        self._lines: dict[str, _Line] = {}
        self._errands: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many locks are held or waited for in this process."""
        return len(self._lines)

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncGenerator[Lock, None]:
        """Hold the lock of a key.

        It is renewed as long as it is held. Should it be lost all the same, what is written under it is refused.

        Raises:
            SessionBusy: others kept it for too long, or too many wait already.
            StoreUnavailable: the store cannot be reached.
        """
        began = asyncio.get_running_loop().time()
        deadline = began + self._wait
        async with self._turn(key, deadline) as line:
            line.lock = lock = await self._take(key, deadline)
            waited(f"lock:{key.partition(':')[0]}", asyncio.get_running_loop().time() - began)
            renewal = asyncio.get_running_loop().call_later(self._ttl / 3, self._begin_renewals, line, lock)
            try:
                yield lock
            finally:
                renewal.cancel()
                if line.lock is not None:
                    line.lock = None
                    await asyncio.shield(self._errand(self._release(lock)))

    async def keep_and_release(self, lock: Lock, value: bytes, *, ttl: float) -> None:
        """Keep a value under the key of a lock that is held, and release it with that; raises as ``StateStore.put``."""
        await self._store.put(lock.key, value, ttl=ttl, lock=lock, unlock=True)
        self._lines[lock.key].lock = None

    @asynccontextmanager
    async def _turn(self, key: str, deadline: float) -> AsyncGenerator[_Line, None]:
        line, share = self._lines.setdefault(key, _Line()), current_caller.get().share
        if line.members > (self._max_waiting if share in line.waiting else 2 * self._max_waiting):
            raise _busy()
        line.members += 1
        try:
            if line.members > 1:  # else at once: nobody else is there
                await _until(line.turn(share), deadline)
            try:
                yield line
            finally:
                line.next()
        finally:
            line.members -= 1
            if not line.members:
                del self._lines[key]

    async def _take(self, key: str, deadline: float) -> Lock:
        """Ask the store until the lock is ours: at least once, and not much beyond the deadline."""
        pause = _FIRST_PAUSE
        while True:
            if lock := await self._try(key):
                return lock
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise _busy()
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311 - no secret
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def _try(self, key: str) -> Lock | None:
        attempt = asyncio.ensure_future(self._store.try_lock(key, ttl=self._ttl))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            # The store may already have given it, and nobody else would give it back.
            self._errand(self._give_back(attempt))
            raise

    def _begin_renewals(self, line: _Line, lock: Lock) -> None:
        """Begin them late: nearly every lock is released before, without a task of its own."""
        self._errand(self._renew(line, lock))

    async def _renew(self, line: _Line, lock: Lock) -> None:
        while line.lock is lock:
            with suppress(StoreUnavailable):
                if not await self._store.renew(lock, ttl=self._ttl):
                    return
            await asyncio.sleep(self._ttl / 3)

    async def _give_back(self, attempt: asyncio.Future[Lock | None]) -> None:
        with suppress(StoreUnavailable):
            if lock := await attempt:
                await self._store.unlock(lock)

    async def _release(self, lock: Lock) -> None:
        with suppress(StoreUnavailable):
            await self._store.unlock(lock)

    def _errand(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start what has to be done even when whoever asked for it is cancelled."""
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task


async def _until(turn: Coroutine[None, None, None], deadline: float) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await turn
    except TimeoutError:
        raise _busy() from None


def _busy() -> SessionBusy:
    return SessionBusy("another request of this session is being answered", retry_after=1)
