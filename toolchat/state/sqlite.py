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
from contextlib import closing, nullcontext, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic_core import from_json

import toolchat.instruments as instruments
from toolchat.errors import StoreFull, StoreUnavailable
from toolchat.state.base import Change, Committed, StateStore, StoredRecord, Write, decoded_key, shared_client_key
from toolchat.state.sqlite_file import (
    IN_MEMORY,
    WritingThread,
    checkpoint,
    identity,
    open_database,
    open_reader,
    vacuum,
)

_CHECK_SECONDS: Final = 1.0
_SWEEP_SECONDS: Final = 10.0
_WARNING_SECONDS: Final = 60.0
_STALL: Final = 10
"""Deadlines that a disk may exceed before further operations are refused at once."""
_BATCH: Final = 100
"""Expired values that are deleted in one step."""
_MOST_EVICTED: Final = 16
"""Values that one write evicts at most, so that none takes long; the next writes evict the rest."""

_WRITE: Final = """
INSERT INTO entries (key, client, kind, size, written, expires, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (key) DO UPDATE SET kind = ?3, size = ?4, written = ?5, expires = ?6, value = ?7,
client = CASE WHEN '+' IN (client, ?3) THEN ?2 ELSE client END, log_size = coalesce(?8, log_size)
"""
# Of the client that stores most the kind that takes most, and of that what was not written for longest.
_EVICT: Final = """
WITH share AS (
    SELECT client, kind FROM usage
    WHERE client = (SELECT client FROM usage WHERE kind = '*' AND client <> '+' ORDER BY bytes DESC LIMIT 1)
    AND kind NOT GLOB '[*]*'
    ORDER BY bytes DESC LIMIT 1
)
DELETE FROM entries WHERE id = (
    SELECT id FROM entries WHERE client = (SELECT client FROM share) AND kind = (SELECT kind FROM share)
    ORDER BY written LIMIT 1
)
"""
_STORED: Final = "SELECT bytes FROM usage WHERE client = '' AND kind = '**'"
_LASTING: Final = "+"
"""The client and the kind of what is stored for ever: it is counted, and not evicted."""
_LASTING_SHARE: Final = 0.9
"""The share of the store that it may take."""
_LASTING_STORED: Final = "SELECT bytes FROM usage WHERE client = '+' AND kind = '*'"
_LISTED: Final = """
SELECT key, value, listed.written FROM listed JOIN entries USING (id)
WHERE list = ? AND listed.written < ? AND expires > ? ORDER BY listed.written DESC LIMIT ?
"""
_LINES: Final = """
SELECT line FROM entries JOIN log USING (id) WHERE key = ? AND expires > ? AND place >= ? ORDER BY place LIMIT ?
"""
_VALUE: Final = "SELECT value FROM entries WHERE key = ? AND expires > ? AND expires <= ?"
_ENTRY: Final = "SELECT id, log_size FROM entries WHERE key = ?"
_LIST: Final = "REPLACE INTO listed (list, id, written) SELECT ?, id, ? FROM entries WHERE key = ?"
_CUT: Final = "DELETE FROM log WHERE id = ? AND place >= ?"
_LOG_SIZE: Final = "SELECT coalesce(sum(length(line)), 0) FROM log WHERE id = ?"
_SWEEP: Final = "DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE expires <= ? LIMIT ?)"
_RECORDS: Final = """
SELECT id, key, value, expires, client, kind,
(SELECT json_group_array(list) FROM listed WHERE listed.id = entries.id), line
FROM entries LEFT JOIN log USING (id) WHERE expires > ? ORDER BY entries.written, id, place
"""
T = TypeVar("T")
_log = logging.getLogger(__name__)


class SqliteStateStore(StateStore):
    """Stores values up to a number of bytes in total.

    What is kept is not counted and never evicted. Of the rest, the client with the most bytes loses what it has not
    written for longest of the kind with the most of them: a client that stores much evicts its own values, and much of
    one kind none of another. The kind of a value is the part of its key before the first colon. A value that is larger
    than the whole store is not stored. What is stored for ever is counted and not evicted; once it takes nine tenths of
    the store, more of it is refused.

    Args:
        path: the file, which is created; ``:memory:`` for the memory of this process, lost when it exits.
        max_bytes: bytes of all keys, values and logs that are not kept.
        client_key: identifies the current client, for whom stored values are counted.
        deadline: seconds to wait for another process that writes.
        synchronous: whether a write waits for the disk, so that it survives a crash of the machine as well.
    """

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        max_bytes: int = 64 * 2**20,
        client_key: Callable[[], str] = shared_client_key,
        deadline: float = 0.5,
        synchronous: bool = False,
    ) -> None:
        super().__init__()
        self.path = str(path)
        self.kind = "memory" if self.path == IN_MEMORY else "sqlite"
        self._max_bytes = max_bytes
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
        self._changes = 0
        """Rows that had been written when the log was last moved into the file."""
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
        self._usable = False
        await super().aclose()
        if self._reader:
            self._reader.close()
        if self._thread:
            await self._thread.stop()

    async def commit(
        self,
        writes: Sequence[Write],
        *,
        checks: Mapping[str, Sequence[bytes | None]] | None = None,
        reads: Sequence[str] = (),
        longest: float | None = None,
        name: str = "commit",
    ) -> Committed:
        """See :meth:`StateStore.commit`."""
        client_key, checks = self._client_key(), checks or {}

        def commit(database: sqlite3.Cursor) -> Committed:
            found = {key: self._value(database, key, longest) for key in checks}
            found |= {key: self._value(database, key) for key in reads}
            if any(found[key] not in allowed for key, allowed in checks.items()):
                return Committed(False, found, now=time.time())
            if any(each.is_lasting for each in writes):
                _check_space(database, self._max_bytes)
            deleted = sum([self._apply(database, write, client_key) for write in writes])
            if not all(each.is_kept for each in writes):
                _evict(database, self._max_bytes)
            return Committed(True, found, deleted, time.time())

        return await self._run(name, commit)

    async def update(self, keys: Sequence[str], change: Change, *, ttl: float) -> None:
        """See :meth:`StateStore.update`; nothing else writes meanwhile, so that nothing has to be checked."""
        client_key = self._client_key()

        def update(database: sqlite3.Cursor) -> None:
            if (values := change([self._value(database, key) for key in keys], time.time())) is not None:
                for key, value in zip(keys, values, strict=True):
                    self._apply(database, Write(key, value, ttl, is_kept=True), client_key)

        await self._run("update", update)

    async def get(self, key: str) -> bytes | None:
        return await self._read("get", lambda database: self._value(database, key))

    async def read_log(self, key: str, start: int = 0, limit: int | None = None) -> list[bytes]:
        def read(database: sqlite3.Cursor) -> list[bytes]:
            rows = database.execute(_LINES, (_encoded(key), self._now(), start, -1 if limit is None else limit))
            return [line for [line] in rows]

        return await self._read("read log", read)

    async def listed(self, name: str, *, limit: int, before: float | None = None) -> list[tuple[str, bytes, float]]:
        def read(database: sqlite3.Cursor) -> list[tuple[str, bytes, float]]:
            rows = database.execute(_LISTED, (_as_text(name), 1e12 if before is None else before, self._now(), limit))
            return [(decoded_key(key), value, written) for key, value, written in rows]

        return await self._read("list", read)

    async def records(self) -> AsyncIterator[StoredRecord]:
        """See :meth:`StateStore.records`; as they are when the first one is read, the oldest first."""
        since_1970 = time.time() - self._now()
        opened = nullcontext(self._opened()) if self.kind == "memory" else closing(open_reader(self.path))
        try:
            with opened as database:
                for _, rows in groupby(database.execute(_RECORDS, (self._now(),)), key=lambda row: row[0]):
                    [[_, key, value, expires, client, kind, lists, line], *rest] = rows
                    name = decoded_key(key)
                    if not name.startswith(("lock:", "quota:")):
                        log = tuple([each for each in (line, *[row[-1] for row in rest]) if each is not None])
                        names = tuple([decoded_key(each.encode("latin-1")) for each in from_json(lists)])
                        yield StoredRecord(name, value, expires + since_1970, client, names, log, is_kept=kind is None)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the state store cannot be read: {error}") from None

    def usage(self) -> tuple[int, int] | None:
        """See :meth:`StateStore.usage`."""
        if not self._usable or self._reader is None:
            return None
        try:
            row = self._reader.execute(_STORED).fetchone()
        except sqlite3.Error:
            return None
        return row[0] if row else 0, self._max_bytes

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

    async def _read(self, name: str, read: Callable[[sqlite3.Cursor], T]) -> T:
        began = time.monotonic()
        if self._usable and self._opened() is not self._reader and self._reader is not None:
            with suppress(sqlite3.Error):  # the thread waits if the file is busy, and reports other errors
                result = read(self._reader.cursor())
                instruments.observer.record_store_operation(self.kind, name, time.monotonic() - began)
                return result
        return await self._run(name, read)

    async def _run(self, name: str, operation: Callable[[sqlite3.Cursor], T]) -> T:
        """Run an operation, on a file in a transaction as soon as no other process writes.

        It raises errors of its own before it writes. The name appears in metrics and traces.
        """
        began = time.monotonic()
        if self._thread and self._thread.is_stalled(_STALL * self._deadline):
            self._failed("the disk does not answer")
        elif self._usable:
            try:
                cursor = self._opened().cursor()
                # Memory has one user and survives nothing: it needs no transaction.
                result = await self._thread.run(lambda: operation(cursor)) if self._thread else operation(cursor)
            except sqlite3.Error as error:
                self._failed(str(error))
            else:
                self._succeeded()
                if self._thread:
                    instruments.observer.record_store_operation(self.kind, name, time.monotonic() - began)
                return result
        raise self._unavailable("the state store cannot be used")

    def _value(self, database: sqlite3.Cursor, key: str, longest: float | None = None) -> bytes | None:
        now = self._now()
        row = database.execute(_VALUE, (_encoded(key), now, 1e12 if longest is None else now + longest)).fetchone()
        return row[0] if row else None

    def _apply(self, database: sqlite3.Cursor, write: Write, client_key: str) -> bool:
        """Write; returns whether a key was deleted that had a value."""
        name, now = _encoded(write.key), self._now()
        size = len(name) + len(write.value or b"") + len(write.line or b"")
        is_bounded = not (write.is_kept or write.is_lasting)
        if write.value is None or write.ttl <= 0 or (size > self._max_bytes and is_bounded):
            is_there = self._value(database, write.key) is not None
            database.execute("DELETE FROM entries WHERE key = ?", (name,))
            return is_there
        kind = None if write.is_kept else _LASTING if write.is_lasting else _kind(write.key)
        client = _LASTING if kind == _LASTING else client_key
        values = name, client, kind, len(name) + len(write.value), now, now + write.ttl, bytearray(write.value)
        log_size = None if write.line is None else _add_line(database, values, write.place, write.line)
        database.execute(_WRITE, (*values, log_size))
        for each in map(_as_text, write.lists):
            database.execute(_LIST, (each, time.time(), name))
        return False

    async def _sweep(self) -> None:
        """Delete what has expired, in steps between which others can write."""

        def sweep(database: sqlite3.Cursor) -> int:
            if not self.available:
                # Written even if nothing was deleted: a disk that was full is known to work again.
                database.execute("REPLACE INTO usage VALUES ('', '***', 0)")
            return database.execute(_SWEEP, (self._now(), _BATCH)).rowcount

        swept = _BATCH
        while swept == _BATCH:
            swept = await self._run("sweep", sweep)

    async def _watch(self) -> None:
        """Delete what has expired, move the log into the file, and find out whether the store can be used again."""
        swept_at = time.monotonic()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if not self.available or time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                with suppress(StoreUnavailable):
                    await self._sweep()
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

    def _succeeded(self) -> None:
        if not self.available:
            self.available, self.cause = True, ""
            _log.info("the state store can be used again")


def _add_line(database: sqlite3.Cursor, values: tuple[Any, ...], place: int, line: bytes) -> int:
    """Add a line to the log of an entry, which is added if it is not there; returns the size of the log."""
    identifier, log_size = database.execute(_ENTRY, values[:1]).fetchone() or (None, 0)
    if identifier is None:  # added without its log, as the triggers expect it
        identifier = database.execute(_WRITE, (*values, None)).lastrowid
    if database.execute(_CUT, (identifier, place)).rowcount:
        # Added up again only if lines went: a long log must not make a line dearer.
        [log_size] = database.execute(_LOG_SIZE, (identifier,)).fetchone()
    database.execute("INSERT INTO log (id, place, line) VALUES (?, ?, ?)", (identifier, place, bytearray(line)))
    return int(log_size + len(line))


def _check_space(database: sqlite3.Cursor, max_bytes: int) -> None:
    [size] = database.execute(_LASTING_STORED).fetchone() or (0,)
    if size > _LASTING_SHARE * max_bytes:
        raise StoreFull("what is stored for ever fills the state store: raise its max_mb, or delete conversations")


def _evict(database: sqlite3.Cursor, max_bytes: int) -> None:
    for _ in range(_MOST_EVICTED):
        [size] = database.execute(_STORED).fetchone() or (0,)
        if size <= max_bytes or not database.execute(_EVICT).rowcount:
            return


def _encoded(key: str) -> bytearray:
    # Not every key is valid text: a client may have sent half of a character. A bytearray, because sqlite3 looks for an
    # adapter of every ``bytes``, which takes longer than the copy.
    return bytearray(key, "utf-8", "surrogatepass")


def _as_text(name: str) -> str:
    # The names of lists are text, which JSON has to take: each byte becomes a character.
    return _encoded(name).decode("latin-1")


def _kind(key: str) -> str:
    kind, colon, _ = key.partition(":")
    return kind if colon else ""
