"""Locks that are waited for: in order within this process, by turns with the others."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field

from toolchat import instruments
from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.state.base import Lock, StateStore, shared_client_key

__all__ = ["LOCK_SECONDS", "Hold", "Locks"]

LOCK_SECONDS = 4.5
"""Seconds after which the lock of a process that died is free again.

Less than the five that a question waits for its session: whoever asks again is answered, and not refused. It is renewed
when a third of it is over, so that a process may stall for two thirds, and one of two attempts may fail. Who stalls for
longer may lose it to somebody who waits, and then keeps nothing: the fence sees to that.
"""

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.25


@dataclass(slots=True)
class _Line:
    """Those of this process who hold a lock or wait for it: one of each client in turn, each in the order of coming."""

    members: int = 0
    lock: Lock | None = None
    """What is held, until it is released."""
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """By client key; the client whose turn is next comes first."""

    async def turn(self, client_key: str) -> None:
        """Wait until those before have had theirs."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(client_key, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.cancelled():
                self._forget(client_key, mine)
            else:
                self.next()  # it was given just then
            raise

    def next(self) -> None:
        """Give the turn to the next."""
        while self.waiting:
            client_key = next(iter(self.waiting))
            others = self.waiting.pop(client_key)
            first = others.popleft()
            if others:
                self.waiting[client_key] = others  # behind all other clients
            if not first.done():
                first.set_result(None)
                return

    def _forget(self, client_key: str, mine: asyncio.Future[None]) -> None:
        own = self.waiting.get(client_key)
        if own and mine in own:
            own.remove(mine)
            if not own:
                del self.waiting[client_key]


class Locks:
    """Lets one at a time work under a key, among all processes that share the store.

    Args:
        store: where the locks are kept.
        ttl: seconds after which the lock of a process that died is free again.
        wait: seconds to wait for a lock.
        max_waiting: how many may wait for one lock in this process; a client of whom nobody waits there may all the
            same, up to twice as many.
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
        self._client_key = client_key
        self._ttl = ttl
        self._wait = wait
        self._max_waiting = max_waiting
        self._lines: dict[str, _Line] = {}
        self._errands: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many locks are held or waited for in this process."""
        return len(self._lines)

    def hold(self, key: str) -> "Hold":
        """Hold the lock of a key, for an ``async with``.

        It is renewed as long as it is held. Should it be lost all the same, what is written under it is refused.

        Raises:
            SessionBusy: others kept it for too long, or too many wait already; as the block begins, like the other.
            StoreUnavailable: the store cannot be reached.
        """
        return Hold(self, key)

    async def save_and_release(self, lock: Lock, value: bytes, *, ttl: float) -> None:
        """Keep a value under the key of a lock that is held, and release it with that; raises as ``StateStore.put``."""
        await self._store.put(lock.key, value, ttl=ttl, lock=lock, unlock=True)
        self._lines[lock.key].lock = None

    keep_and_release = save_and_release  # deprecated alias, removed in 0.3

    async def enter(self, key: str) -> tuple[_Line, Lock, asyncio.TimerHandle]:
        """Begin what :meth:`hold` says, and what :meth:`leave` ends."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = began + self._wait
        line = await self._join(key, deadline)
        try:
            line.lock = lock = await self._take(key, deadline)
        except BaseException:
            self._depart(key, line)
            raise
        instruments.observer.record_wait(f"lock:{key.partition(':')[0]}", loop.time() - began)
        return line, lock, loop.call_later(self._ttl / 3, self._begin_renewals, line, lock)

    async def leave(self, line: _Line, lock: Lock, renewal: asyncio.TimerHandle) -> None:
        """Release a lock unless that is done, and let the next one in."""
        renewal.cancel()
        try:
            if line.lock is not None:
                line.lock = None
                await asyncio.shield(self._run_shielded(self._release(lock)))
        finally:
            self._depart(lock.key, line)

    async def _join(self, key: str, deadline: float) -> _Line:
        """Wait for those of this process who came before."""
        line, client_key = self._lines.setdefault(key, _Line()), self._client_key()
        if line.members > (self._max_waiting if client_key in line.waiting else 2 * self._max_waiting):
            raise _busy()
        line.members += 1
        try:
            if line.members > 1:  # else at once: nobody else is there
                await _until(line.turn(client_key), deadline)
        except BaseException:
            self._forget(key, line)
            raise
        return line

    def _depart(self, key: str, line: _Line) -> None:
        line.next()
        self._forget(key, line)

    def _forget(self, key: str, line: _Line) -> None:
        line.members -= 1
        if not line.members:
            del self._lines[key]

    async def _take(self, key: str, deadline: float) -> Lock:
        """Ask the store until the lock is ours: at least once, and not much beyond the deadline."""
        pause = _FIRST_PAUSE
        while True:
            if lock := await self._store.try_lock(key, ttl=self._ttl):
                return lock
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                # Had its holder died when this began to wait, the lock would run out then.
                raise _busy(self._ttl - self._wait)
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311 - no secret
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _begin_renewals(self, line: _Line, lock: Lock) -> None:
        """Begin them late: nearly every lock is released before, without a task of its own."""
        self._run_shielded(self._renew(line, lock))

    async def _renew(self, line: _Line, lock: Lock) -> None:
        loop = asyncio.get_running_loop()
        while line.lock is lock:
            next_at = loop.time() + self._ttl / 3
            with suppress(StoreUnavailable):
                if not await self._store.renew(lock, ttl=self._ttl):
                    return
            await asyncio.sleep(next_at - loop.time())  # at once after an attempt that took that long

    async def _release(self, lock: Lock) -> None:
        with suppress(StoreUnavailable):
            await self._store.unlock(lock)

    def _run_shielded(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start what has to be done even when whoever asked for it is cancelled."""
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task


class Hold:
    """A lock for as long as the block runs."""

    __slots__ = ("_held", "_key", "_locks")

    def __init__(self, locks: Locks, key: str) -> None:
        self._locks, self._key = locks, key

    async def __aenter__(self) -> Lock:
        self._held = await self._locks.enter(self._key)
        return self._held[1]

    async def __aexit__(self, *_: object) -> None:
        await self._locks.leave(*self._held)


async def _until(turn: Coroutine[None, None, None], deadline: float) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await turn
    except TimeoutError:
        raise _busy() from None


def _busy(rest: float = 0) -> SessionBusy:
    return SessionBusy("another request of this session is being answered", retry_after=max(1, rest))
