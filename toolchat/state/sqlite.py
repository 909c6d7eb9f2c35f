"""The state store in SQLite: a file that the processes of one machine share, or the memory of this process.

Statements on memory run on the event loop: they take some ten microseconds, less than handing them to a thread. So do
reads of a file, whose pages the system has in memory. What writes to a file may wait for the disk, and runs in a
thread; another one moves the log (WAL) into the file.
"""

import asyncio
import logging
import sqlite3
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import toolchat.instruments as instruments
from toolchat.errors import StoreUnavailable
from toolchat.state.base import Lock, LockLost, StateStore, StoredRecord, shared_client_key
from toolchat.state.eviction import evict
from toolchat.state.sqlite_file import (
    IN_MEMORY,
    WritingThread,
    checkpoint,
    identity,
    open_database,
    open_reader,
    vacuum,
)

_FENCE_SECONDS: Final = 86_400.0
"""Seconds for which an expired lock is remembered: its holder may still write if no other has taken the lock."""
_CHECK_SECONDS: Final = 1.0
_SWEEP_SECONDS: Final = 10.0
_WARNING_SECONDS: Final = 60.0
_STALL: Final = 10
"""Deadlines that a disk may exceed before further operations are refused at once."""
_MANY: Final = 1000
"""Values that are written at most until all are counted, so each further process may store as many beyond the limit."""

_LOCK: Final = """
SELECT until, token, value FROM (SELECT ?1 AS name)
LEFT JOIN locks ON locks.key = name LEFT JOIN entries ON entries.key = name AND expires > ?2
"""
_WRITE: Final = "REPLACE INTO entries (key, kind, client, size, expires, value) VALUES (?, ?, ?, ?, ?, ?)"
T = TypeVar("T")
_log = logging.getLogger(__name__)


class SqliteStateStore(StateStore):
    """Stores values up to a number of each kind and a number of bytes in total.

    The kind of a value is the part of its key before the first colon, so that many conversations evict conversations,
    but no approvals. A client that stores much evicts its own values first, and the one that it has not written for
    longest: if there are too many values of a kind, the client with the most of them loses one; if there are too many
    bytes, the client with the most bytes, of its largest kind. A value that is larger than the whole store is not
    stored.

    Args:
        path: the file, which is created; ``:memory:`` for the memory of this process, lost when it exits.
        max_entries: values of one kind.
        max_bytes: bytes of all keys and values.
        client_key: identifies the current client, for whom stored values are counted.
        deadline: seconds to wait for another process that writes.
        synchronous: whether a write waits for the disk, so that it survives a crash of the machine as well.
    """

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        max_entries: int = 10_000,
        max_bytes: int = 64 * 2**20,
        client_key: Callable[[], str] = shared_client_key,
        deadline: float = 0.5,
        synchronous: bool = False,
    ) -> None:
        self.path = str(path)
        self.kind = "memory" if self.path == IN_MEMORY else "sqlite"
        self.available = True
        self.failures = 0
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._client_key = client_key
        self._deadline = deadline
        self._synchronous = synchronous
        # What is in a file has to expire after a restart of the machine, too; what is in memory has not, and so is
        # independent of a clock that is set.
        self._now = time.monotonic if self.kind == "memory" else time.time
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._thread: WritingThread | None = None
        self._identity: tuple[int, int] | None = None
        self._usable = True
        self._last_token = 0
        self._changes = 0
        """Rows that had been written when the log was last moved into the file."""
        # Counting each time would take too long: so much may be written until then.
        self._entries_left = self._bytes_left = 0
        self._watcher: asyncio.Task[None] | None = None
        self._releases: set[asyncio.Task[None]] = set()
        self._warned_at = -_WARNING_SECONDS

    def check(self) -> None:
        open_database(self.path, thorough=False).close()

    async def start(self) -> None:
        """Open the file, and look after it from now on.

        Raises:
            ConfigurationError: the file cannot be opened, or a later version has written it.
        """
        self._opened()
        self._watcher = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Close the file; if this is the last process, its log is moved into it."""
        self._usable = self.available = False
        if self._watcher:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
        if self._reader:
            self._reader.close()
        if self._thread:
            await self._thread.stop()

    async def get(self, key: str) -> bytes | None:
        name, began = _encoded(key), time.monotonic()
        if self._usable and self._opened() is not self._reader:
            with suppress(sqlite3.Error):  # the thread waits if the file is busy, and reports other errors
                value = self._value(name, self._reader)
                instruments.observer.record_store_operation(self.kind, "get", time.monotonic() - began)
                return value
        return await self._run("get", lambda: self._value(name))

    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None, unlock: bool = False) -> None:
        """See :meth:`StateStore.put`; the values that were not written for longest are evicted."""
        name, client_key = _encoded(key), self._client_key()

        def put() -> None:
            self._check(lock, unlock=unlock)
            self._write(_kind(key), client_key, name, value, ttl)

        await self._run("put and unlock" if unlock else "put", put)

    async def put_all(self, values: Mapping[str, bytes], *, ttl: float) -> None:
        await self.update(list(values), lambda _: list(values.values()), ttl=ttl)

    async def update(
        self, keys: Sequence[str], change: Callable[[list[bytes | None]], Sequence[bytes] | None], *, ttl: float
    ) -> None:
        """Replace the values of keys by what a function makes of them, in one step; ``None`` changes nothing."""
        names, client_key = list(map(_encoded, keys)), self._client_key()

        def update() -> None:
            values = change([self._value(name) for name in names])
            for key, name, value in zip(keys, names, values or (), strict=bool(values)):
                self._write(_kind(key), client_key, name, value, ttl)

        await self._run("update", update)

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        def delete() -> bool:
            self._check(lock)
            statement = "DELETE FROM entries WHERE key = ? AND expires > ?"
            return sum([self._execute(statement, _encoded(key), self._now()).rowcount for key in keys]) > 0

        return await self._run("delete", delete)

    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """See :meth:`StateStore.try_lock`; an expired lock is free."""
        name = _encoded(key)

        def try_lock() -> Lock | None:
            now = self._now()
            [until, token, value] = self._execute(_LOCK, name, now).fetchone()
            if until is not None and until > now:
                return None
            # Of the time, so that tokens grow although a released lock leaves no trace.
            self._last_token = max(self._last_token, token or 0, int(now * 1e6)) + 1
            self._execute("REPLACE INTO locks VALUES (?, ?, ?)", name, self._last_token, now + ttl)
            return Lock(key, self._last_token, value)

        return await self._run("lock", try_lock, undo=self._release_late)

    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """See :meth:`StateStore.renew`; an expired lock is renewed, unless another holder has taken it."""
        statement = "UPDATE locks SET until = ? WHERE key = ? AND token = ?"
        arguments = self._now() + ttl, _encoded(lock.key), lock.token
        return await self._run("renew", lambda: self._execute(statement, *arguments).rowcount > 0)

    async def unlock(self, lock: Lock) -> None:
        """See :meth:`StateStore.unlock`; later writes under the lock are refused."""
        with suppress(LockLost):
            await self._run("unlock", lambda: self._check(lock, unlock=True))

    async def records(self) -> AsyncIterator[StoredRecord]:
        """See :meth:`StateStore.records`; as they are when the first one is read, the oldest first."""
        monotonic = time.time() - self._now()
        database = self._opened() if self.kind == "memory" else open_reader(self.path)
        statement = "SELECT key, value, expires, client FROM entries WHERE expires > ? AND kind != 'quota' ORDER BY id"
        try:
            for key, value, expires, client_key in database.execute(statement, (self._now(),)):
                yield StoredRecord(key.decode(errors="surrogatepass"), value, expires + monotonic, client_key)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the state store cannot be read: {error}") from None

    async def vacuum(self) -> None:
        """Give unused space of the file back to the disk; other processes that write wait meanwhile.

        Raises:
            StoreUnavailable: it does not succeed.
        """
        try:
            await asyncio.to_thread(vacuum, self.path)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the state store cannot be vacuumed: {error}") from None

    def _opened(self) -> sqlite3.Connection:
        """The connection that writes; the first call opens the file."""
        if self._writer is None:
            self._writer = self._reader = open_database(
                self.path, busy_seconds=self._deadline, synchronous=self._synchronous
            )
            if self.kind == "sqlite":
                self._reader = open_reader(self.path)
                self._thread = WritingThread(self._writer)
                self._identity = identity(self.path)
            else:  # a store in memory need not be closed, which Python 3.13 would warn of
                weakref.finalize(self, self._writer.close)
        return self._writer

    async def _run(
        self,
        name: str,
        operation: Callable[[], T],
        *,
        undo: Callable[[T], None] | None = None,
    ) -> T:
        """Run an operation, on a file in a transaction as soon as no other process writes.

        Args:
            name: appears in metrics and traces.
            operation: reads and writes; raises errors of its own before it writes.
            undo: is called with the result if the caller has been cancelled in the meantime.
        """
        began = time.monotonic()
        if self._thread and self._thread.is_stalled(_STALL * self._deadline):
            self._failed("the disk does not answer")
        elif self._usable:
            try:
                self._opened()
                # Memory has one user and survives nothing: it needs no transaction.
                result = await self._thread.run(operation, undo) if self._thread else operation()
            except sqlite3.Error as error:
                self._failed(str(error))
            else:
                self._succeeded()
                if self._thread:
                    instruments.observer.record_store_operation(self.kind, name, time.monotonic() - began)
                return result
        self.failures += 1
        raise self._unavailable("the state store cannot be used")

    def _execute(self, statement: str, *arguments: object) -> sqlite3.Cursor:
        return self._opened().execute(statement, arguments)

    def _value(self, name: bytearray, database: sqlite3.Connection | None = None) -> bytes | None:
        statement = "SELECT value FROM entries WHERE key = ? AND expires > ?"
        row = (database or self._opened()).execute(statement, (name, self._now())).fetchone()
        return row[0] if row else None

    def _write(self, kind: str, client_key: str, name: bytearray, value: bytes, ttl: float) -> None:
        size = len(name) + len(value)
        if ttl <= 0 or size > self._max_bytes:
            self._execute("DELETE FROM entries WHERE key = ?", name)
            return
        self._execute(_WRITE, name, kind, client_key, size, self._now() + ttl, value)
        self._entries_left -= 1
        self._bytes_left -= size
        if self._entries_left < 0 or self._bytes_left < 0:
            self._evict()

    def _check(self, lock: Lock | None, *, unlock: bool = False) -> None:
        """Refuse a write under a lock that was released or is another holder's."""
        if lock is None:
            return
        key = _encoded(lock.key)
        if unlock:
            owned = self._execute("DELETE FROM locks WHERE key = ? AND token = ?", key, lock.token).rowcount > 0
        else:
            owned = self._execute("SELECT 1 FROM locks WHERE key = ? AND token = ?", key, lock.token).fetchone()
        if not owned:
            raise LockLost(lock.token)

    def _evict(self) -> None:
        """Bring the store within its limits, and find out how much may be written until this is due again."""
        self._sweep()
        left = evict(self._opened(), self._max_entries, self._max_bytes)
        self._entries_left = min(left.entries, _MANY)
        self._bytes_left = min(left.size, self._max_bytes // 16)

    def _sweep(self) -> None:
        """Delete what has expired."""
        now = self._now()
        self._execute("DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE expires <= ?)", now)
        self._execute("DELETE FROM locks WHERE until <= ?", now - _FENCE_SECONDS)
        if not self.available:
            # Written even if nothing was deleted: a disk that was full is known to work again.
            self._execute("REPLACE INTO locks VALUES (x'', 0, ?)", now)

    async def _watch(self) -> None:
        """Delete what has expired, move the log into the file, and find out whether the store can be used again."""
        swept_at = time.monotonic()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if not self.available or time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                with suppress(StoreUnavailable):
                    await self._run("sweep", self._sweep)
            if self.kind == "sqlite":
                await self._check_file()

    async def _check_file(self) -> None:
        if self._usable and identity(self.path) != self._identity:
            # What is written from now on would be gone after a restart, and other processes may have another file.
            self._usable = self.available = False
            self.cause = f"the file was removed or replaced: {self.path}"
            _log.error("the file of the state store was removed or replaced: restart", extra={"server": self.path})
        if self._usable and self._changes != (changes := self._opened().total_changes):
            try:
                await asyncio.to_thread(checkpoint, self.path)
            except sqlite3.Error as error:
                self._failed(str(error))
            else:
                self._changes = changes

    def _failed(self, reason: str) -> None:
        self.available, self.cause = False, f"{reason}: {self.path}"
        if time.monotonic() - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = time.monotonic()
            _log.warning("the state store cannot be used", extra={"server": self.path, "reason": reason})

    def _release_late(self, lock: Lock | None) -> None:
        """Release a lock that was granted to a caller who was cancelled."""
        if lock and self._usable:
            task = asyncio.create_task(self.unlock(lock))
            self._releases.add(task)
            task.add_done_callback(self._releases.discard)

    def _succeeded(self) -> None:
        if not self.available:
            self.available = True
            _log.info("the state store can be used again")


def _encoded(key: str) -> bytearray:
    # Not every key is valid text: a client may have sent half of a character. A bytearray, because sqlite3 looks for an
    # adapter of every ``bytes``, which takes longer than the copy.
    return bytearray(key, "utf-8", "surrogatepass")


def _kind(key: str) -> str:
    kind, colon, _ = key.partition(":")
    return kind if colon else ""
