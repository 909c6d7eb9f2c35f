"""The state store interface: a commit that checks and writes in one step, and what is built on it once for all stores.

A store has values with expiry. A value can have a log of lines beside it, and can be in lists; both go with it. Locks
with fences are values too: who holds one has written its token there, and every write under the lock checks it.
"""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Annotated, Final
from weakref import WeakValueDictionary

from pydantic import AfterValidator

from toolchat.errors import StoreUnavailable
from toolchat.messages import immutable

_FREE: Final = b""
"""The value of a lock that was released: another holder has had it since, if a late writer still has its token."""
_FENCE_SECONDS: Final = 3600.0
"""Seconds for which it is remembered that a lock was released; no process stalls for longer and then writes."""
_LONGEST_LEASE: Final = 60.0
"""Seconds: a lock with more left was taken before the clock was set back, and counts as expired."""
FOREVER: Final = 200 * 365 * 86_400.0
"""Seconds for which a value is stored that does not expire: it is not evicted, and a store that is full refuses it."""
_RETRY_PAUSE: Final = 0.1
TIME_STEP: Final = 0.001
"""Seconds by which the times of a list are exact at least."""
Change = Callable[[Sequence[bytes | None], float], Sequence[bytes] | None]
"""Makes new values of those stored and the time of the store's clock, maybe repeatedly; ``None`` changes nothing."""


@immutable
class Write:
    """What a commit does to one key."""

    key: str
    value: bytes | None = None
    """``None`` deletes the key, with its log and from its lists."""
    ttl: float = 0
    """Seconds for which the value and its log are stored."""
    is_kept: bool = False
    """Never evicted: somebody waits for it, it is running, or it is a record that has to be kept."""
    lists: tuple[str, ...] = ()
    """The lists that it goes to the top of."""
    line: bytes | None = None
    """Added to the key's log."""
    place: int = 0
    """The line's place in the log; what stood there and behind it goes."""

    @property
    def is_lasting(self) -> bool:
        """Whether it does not expire; less than :data:`FOREVER` may be left of a value that is moved."""
        return self.ttl > FOREVER / 2


@immutable
class Committed:
    """The outcome of a commit."""

    is_done: bool
    """Whether every check held; otherwise nothing was written."""
    found: Mapping[str, bytes | None]
    """The values of the checked and the read keys, before it."""
    deleted: int = 0
    """The number of deleted keys that had a value."""
    now: float = 0
    """The time of the store's clock, in seconds since 1970."""


@immutable
class Lock:
    """A lease on a key, held until it is released or expires."""

    key: str
    token: bytes
    """The fencing token, which no other lock ever has: late writes can be refused."""
    value: bytes | None = field(default=None, repr=False, compare=False)
    """The value of the key when the lock was taken."""

    @property
    def name(self) -> str:
        """The key of the lock itself."""
        return f"lock:{self.key}"

    @property
    def fence(self) -> Mapping[str, Sequence[bytes | None]]:
        """The check of a write under the lock; one that has expired still holds if nobody else took it."""
        return {self.name: (self.token, None)}

    @property
    def release(self) -> Write:
        """The write that releases the lock."""
        return Write(self.name, _FREE, _FENCE_SECONDS, is_kept=True)


@immutable
class StoredRecord:
    """A value with all that is stored about it, to be moved to another store."""

    key: str
    value: bytes
    expires: float
    """Seconds since 1970."""
    client_key: str = ""
    """The client for whom it is counted, if the store counts."""
    lists: tuple[str, ...] = ()
    log: tuple[bytes, ...] = ()
    is_kept: bool = True
    """Whether it is never evicted; a store that evicts nothing does not know."""


class LockLost(Exception):
    """The lock expired and was taken by another holder: a write under it would be stale, and is refused."""


def shared_client_key() -> str:
    """Count all clients as one; the default where clients take turns or share a limit."""
    return ""


def decoded_key(name: bytes) -> str:
    """A key as it was written; not every key is valid text, since a client may have sent half of a character."""
    return name.decode(errors="surrogatepass")


@contextmanager
def decoding(fault: str) -> Generator[None, None, None]:
    """Decode a stored value within the block; another program may have overwritten it."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreUnavailable(fault, retryable=False) from error


def kept_task(tasks: set[asyncio.Task[None]], work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """Begin work in a task that is in a set until it ends, as the event loop does not protect it from collection."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


class StateStore(ABC):
    """Stores bytes under keys, with expiry.

    The server has half a second for an operation. While the store is unavailable, operations raise ``StoreUnavailable``
    at once; the store detects its return by itself.
    """

    kind: str
    """``memory``, ``sqlite``, ``redis`` or ``postgresql``."""
    available: bool = True
    """Whether the last operation, or the last probe after a failed one, succeeded."""
    cause: str = ""
    """Why the store is unavailable, for operators."""
    namespace: str = ""
    """What tells its keys from those of another deployment on the same server: a prefix, or a schema."""
    failures: int = 0
    """The number of operations that raised ``StoreUnavailable`` since the start."""

    def __init__(self) -> None:
        self._releases = set[asyncio.Task[None]]()
        self._updates = set[asyncio.Task[None]]()
        self._changing = WeakValueDictionary[tuple[str, ...], asyncio.Lock]()
        self._watcher: asyncio.Task[None] | None = None

    @abstractmethod
    async def commit(
        self,
        writes: Sequence[Write],
        *,
        checks: Mapping[str, Sequence[bytes | None]] | None = None,
        reads: Sequence[str] = (),
        longest: float | None = None,
        name: str = "commit",
    ) -> Committed:
        """Check, read and write in one step, which happens whole or not at all.

        Args:
            writes: what is written if every check holds.
            checks: the values that a key may have; ``None``: no value.
            reads: further keys whose values are returned.
            longest: seconds; a checked value that is stored for longer from now counts as none.
            name: appears in metrics and traces.

        Raises:
            StoreUnavailable: the store cannot be reached; whether it was done is unknown if it stalled.
            StoreFull: nothing was written, as what is stored for ever leaves no space for more.
        """

    @abstractmethod
    async def get(self, key: str) -> bytes | None:
        """Get the value of a key; ``None`` if there is none or it has expired."""

    @abstractmethod
    async def read_log(self, key: str, start: int = 0, limit: int | None = None) -> list[bytes]:
        """The lines of a key's log from a place on, at most ``limit``; raises ``StoreUnavailable``."""

    @abstractmethod
    async def listed(self, name: str, *, limit: int, before: float | None = None) -> "list[tuple[str, bytes, float]]":
        """The newest keys of a list with their values and the time of their last write, in seconds since 1970.

        ``before`` continues behind an earlier answer: the time of its last entry. Raises ``StoreUnavailable``.
        """

    async def newest(
        self, name: str, before: float | None = None, page: int = 500
    ) -> AsyncIterator[tuple[str, bytes, float]]:
        """All of a list, as :meth:`listed`, in pages of a size; raises ``StoreUnavailable``."""
        seen = set[str]()
        while True:
            found = await self.listed(name, limit=page, before=before)
            new = [each for each in found if each[0] not in seen]
            for each in new:
                yield each
            if len(found) < page:
                return
            # Several values may be of one moment, of which this page has a part.
            before, seen = found[-1][2] + (TIME_STEP if new else 0), {key for key, *_ in found}

    async def delete_listed(self, *names: str) -> None:
        """Delete all that is in lists; raises ``StoreUnavailable``."""
        for name in names:
            while found := await self.listed(name, limit=500):
                await self.delete(*[key for key, *_ in found])

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float,
        lock: Lock | None = None,
        unlock: bool = False,
        lists: tuple[str, ...] = (),
    ) -> None:
        """Store a value for ``ttl`` seconds, on top of lists; ``unlock`` releases the lock in the same step.

        Raises:
            LockLost: another holder has taken the lock in the meantime; nothing was written.
            StoreUnavailable: the store cannot be reached.
        """
        release = (lock.release,) if lock and unlock else ()
        await self.commit_under(
            lock, (Write(key, value, ttl, lists=lists), *release), "put and unlock" if unlock else "put"
        )

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        """Delete keys; returns whether any of them had a value. Raises the errors of :meth:`put`.

        If several callers delete one key at the same time, on any replica, only one gets ``True``: it has claimed the
        value.
        """
        if not keys:
            return False
        return (await self.commit_under(lock, list(map(Write, keys)), "delete")).deleted > 0

    async def commit_under(self, lock: Lock | None, writes: Sequence[Write], name: str = "commit") -> Committed:
        """Write under a lock, if one is given; raises as :meth:`put`."""
        outcome = await self.commit(writes, checks=lock.fence if lock else None, name=name)
        if not outcome.is_done:
            raise LockLost
        return outcome

    async def update(self, keys: Sequence[str], change: Change, *, ttl: float) -> None:
        """Replace the values of keys in one step; what the function returns last is stored.

        It is done to its end, also if the caller is cancelled meanwhile.
        """
        await asyncio.shield(kept_task(self._updates, self._update(keys, change, ttl)))

    async def _update(self, keys: Sequence[str], change: Change, ttl: float) -> None:
        # One change at a time in this process: its changes of one key would only make each other start again.
        async with self._changing.setdefault(tuple(keys), asyncio.Lock()):
            outcome = await self.commit((), reads=keys, name="read")
            while (values := change([outcome.found[key] for key in keys], outcome.now)) is not None:
                writes = [Write(key, value, ttl, is_kept=True) for key, value in zip(keys, values, strict=True)]
                checks = {key: (outcome.found[key],) for key in keys}
                outcome = await self.commit(writes, checks=checks, name="update")
                if outcome.is_done:
                    return

    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """Take the lock of a key for ``ttl`` seconds; ``None`` if it is held.

        A caller that is cancelled meanwhile does not hold the lock: one that is granted too late is released again.
        """
        lock = Lock(key, secrets.token_bytes(16))
        write = Write(lock.name, lock.token, ttl, is_kept=True)
        may_arrive = self.available
        try:
            outcome = await self.commit(
                (write,), checks={lock.name: (None, _FREE)}, reads=(key,), longest=_LONGEST_LEASE, name="lock"
            )
        except (StoreUnavailable, asyncio.CancelledError):
            if may_arrive:  # it may have been granted although no answer came
                self._release_later(lock, ttl)
            raise
        return Lock(key, lock.token, outcome.found[key]) if outcome.is_done else None

    async def unlocked(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys whose lock nobody holds; raises ``StoreUnavailable``."""
        names = {Lock(key, b"").name: key for key in keys}
        checks: dict[str, Sequence[bytes | None]] = dict.fromkeys(names, (None, _FREE))
        found = (await self.commit((), checks=checks, longest=_LONGEST_LEASE, name="locks")).found
        return [key for name, key in names.items() if not found[name]]

    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """Extend a lock to ``ttl`` seconds from now; false if another holder has taken it.

        An expired lock is renewed, unless another holder has taken it.
        """
        write = Write(lock.name, lock.token, ttl, is_kept=True)
        return (await self.commit((write,), checks=lock.fence, name="renew")).is_done

    async def unlock(self, lock: Lock) -> None:
        """Release a lock, if it is still held; tried again later if the store is unavailable."""
        try:
            await self.commit((lock.release,), checks=lock.fence, name="unlock")
        except StoreUnavailable:
            self._release_later(lock, _LONGEST_LEASE)
            raise

    def _release_later(self, lock: Lock, seconds: float) -> None:
        """Release a lock in the background that was granted too late, until it has expired by itself."""
        kept_task(self._releases, self._release(lock, seconds))

    async def _release(self, lock: Lock, seconds: float) -> None:
        # Only while it has the token: what a stalled server grants later is seen by a later try.
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_RETRY_PAUSE)
            with suppress(StoreUnavailable):
                if (await self.commit((lock.release,), checks={lock.name: (lock.token,)}, name="unlock")).is_done:
                    return

    def records(self) -> AsyncIterator[StoredRecord]:
        """All values but locks and quotas, which are counted anew; raises ``StoreUnavailable``."""
        raise NotImplementedError

    async def durability_warning(self) -> str:
        """What the store's server would lose in a crash, and how to change that; empty if that is little or unknown."""
        return ""

    def _unavailable(self, detail: str) -> StoreUnavailable:
        self.failures += 1
        error = StoreUnavailable(detail, retry_after=1)
        if self.cause:
            error.log_fields["cause"] = self.cause
        return error

    def usage(self) -> tuple[int, int] | None:
        """The bytes that count for the store's limit, and that limit; ``None`` if it has none of its own."""
        return None

    def check(self) -> None:  # noqa: B027
        """Find out, before the store is started, whether it can be used as it is configured.

        Raises:
            ConfigurationError: its file cannot be opened.
        """

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Start to watch the connection, if there is one; does not fail if the store is unavailable."""

    async def aclose(self) -> None:
        """Refuse further operations, and close the connections."""
        if self._updates:
            await asyncio.wait(self._updates)
        self.available = False
        for task in self._releases:
            task.cancel()
        if self._watcher:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])


RECORD_VERSION: Final = 1
"""The version that is written.

Raise it if an older process would misread the new records. A new field that older processes may ignore does not need
another version.
"""


def check_version(version: int) -> int:
    """Check that this process can read a record."""
    if version > RECORD_VERSION:
        raise StoreUnavailable("a newer version of the service stored this; only that version reads it", retry_after=1)
    return version


RecordVersion = Annotated[int, AfterValidator(check_version)]
"""The type of a record's field ``version``."""
