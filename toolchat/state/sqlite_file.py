"""The file of the SQLite store: its schema, opening, checks and repairs, and the thread that writes to it."""

import asyncio
import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from toolchat.errors import ConfigurationError

IN_MEMORY: Final = ":memory:"
_VERSION: Final = 2
"""That of the schema below."""
_COMPANIONS: Final = ("", "-wal", "-shm")
_LONG_LOG: Final = 4096
"""Pages of 4 KiB: a log that is written all the time is never moved as a whole, and would grow."""
_LONGEST_LOG: Final = 16 * _LONG_LOG
_MOVE: Final = "PRAGMA wal_checkpoint(PASSIVE)"
_READERS_SECONDS: Final = 0.2
"""Seconds that writers wait for those who still read a long log; less than their deadline."""
_OPENING_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)

# What is stored is counted by triggers, so that it is known at any time what has to be evicted, at a constant cost: by
# client and kind, by client (kind '*') and in total ('**'). What is kept has no kind, and is not counted. What is
# inserted into the view is added to all three.
_SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    client TEXT NOT NULL,
    kind TEXT,
    size INTEGER NOT NULL,
    log_size INTEGER NOT NULL DEFAULT 0,
    written REAL NOT NULL,
    expires REAL NOT NULL,
    value BLOB NOT NULL
);
CREATE INDEX ages ON entries (client, kind, written) WHERE kind IS NOT NULL;
CREATE INDEX deadlines ON entries (expires);
CREATE TABLE log (id INTEGER, place INTEGER, line BLOB NOT NULL, PRIMARY KEY (id, place));
CREATE TABLE listed (list TEXT, id INTEGER, written REAL NOT NULL, PRIMARY KEY (list, id)) WITHOUT ROWID;
CREATE INDEX newest ON listed (list, written);
CREATE INDEX lists ON listed (id);
CREATE TABLE usage (client TEXT, kind TEXT, bytes INTEGER NOT NULL, PRIMARY KEY (client, kind)) WITHOUT ROWID;
CREATE INDEX largest ON usage (kind, bytes);
CREATE VIEW counted AS SELECT client, kind, bytes FROM usage;
CREATE TRIGGER count INSTEAD OF INSERT ON counted WHEN new.kind IS NOT NULL AND new.bytes <> 0 BEGIN
    INSERT INTO usage VALUES
    (new.client, new.kind, new.bytes), (new.client, '*', new.bytes), ('', '**', new.bytes)
    ON CONFLICT (client, kind) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER added AFTER INSERT ON entries BEGIN
    INSERT INTO counted VALUES (new.client, new.kind, new.size);
END;
CREATE TRIGGER changed AFTER UPDATE OF size, log_size ON entries WHEN old.kind = new.kind BEGIN
    INSERT INTO counted VALUES (new.client, new.kind, new.size + new.log_size - old.size - old.log_size);
END;
CREATE TRIGGER moved AFTER UPDATE OF kind ON entries WHEN old.kind IS NOT new.kind BEGIN
    INSERT INTO counted VALUES
    (old.client, old.kind, -old.size - old.log_size), (new.client, new.kind, new.size + new.log_size);
END;
CREATE TRIGGER removed AFTER DELETE ON entries BEGIN
    INSERT INTO counted VALUES (old.client, old.kind, -old.size - old.log_size);
    DELETE FROM usage WHERE client = old.client AND bytes = 0;
END;
CREATE TRIGGER cleared AFTER DELETE ON entries BEGIN
    DELETE FROM log WHERE id = old.id;
    DELETE FROM listed WHERE id = old.id;
END;
PRAGMA user_version = 2;
COMMIT;
"""
# The first format had no shares, logs and lists; its locks have expired by now.
_FROM_FIRST: Final = """
BEGIN IMMEDIATE;
INSERT INTO entries (key, client, kind, size, written, expires, value)
SELECT key, client, kind, size, id, expires, value FROM earlier;
DROP TABLE earlier;
COMMIT;
"""


def open_database(
    path: str, *, busy_seconds: float = 0.0, synchronous: bool = False, thorough: bool = True
) -> sqlite3.Connection:
    """Open a database with the tables of the store, and create what is not there.

    A damaged file is renamed and logged, and a new one takes its place.

    Args:
        path: the file; its directory is created. ``:memory:`` for the memory of this process.
        busy_seconds: seconds that a statement waits for another process that writes.
        synchronous: whether a commit waits for the disk.
        thorough: whether every page is read to find damage.
    """
    if path == IN_MEMORY:
        database = _connect(path)
        database.execute("PRAGMA journal_mode = OFF")  # it survives nothing, so that nothing has to be undone
        return database
    try:
        with _alone(Path(path)):
            database = _opened(path, thorough=thorough)
    except (OSError, sqlite3.Error) as error:
        raise ConfigurationError(f"the file {path} cannot be opened: {error}") from None
    database.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'NORMAL'}")
    # A checkpoint waits for the disk: `checkpoint` is called in a thread instead.
    database.execute("PRAGMA wal_autocheckpoint = 0")
    database.execute(f"PRAGMA busy_timeout = {round(1000 * busy_seconds)}")
    # Debian's SQLite would overwrite every page of a deleted value, which doubles what a large conversation writes.
    database.execute("PRAGMA secure_delete = FAST")
    return database


def open_reader(path: str) -> sqlite3.Connection:
    """Open one more connection to a file that is open; it only reads, and waits for nobody."""
    database = sqlite3.connect(path, timeout=0, isolation_level=None)
    database.execute("PRAGMA query_only = ON")
    return database


def _opened(path: str, *, thorough: bool) -> sqlite3.Connection:
    try:
        database = _created(path)
        [found] = database.execute("PRAGMA quick_check(1)").fetchone() if thorough else ("ok",)
        if found != "ok":
            database.close()
            raise sqlite3.DatabaseError(found)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        _put_aside(path, error)
        database = _created(path)
    return database


def checkpoint(path: str) -> None:
    """Move what has been committed from the log into the file, which waits for the disk.

    Nothing else waits for it, unless the log has become long since it was always in use.
    """
    with closing(sqlite3.connect(path, timeout=_READERS_SECONDS)) as database:
        [_, pages, _] = database.execute(_MOVE).fetchone()
        if pages > _LONG_LOG:
            # Writers wait while the rest is moved. On a slow disk even that would exceed their deadline.
            began = time.monotonic()
            database.execute(_MOVE)
            if time.monotonic() - began < _READERS_SECONDS or pages > _LONGEST_LOG:
                database.execute("PRAGMA wal_checkpoint(RESTART)")


def vacuum(path: str) -> None:
    """Write a file anew without its unused space."""
    with closing(sqlite3.connect(path, timeout=_OPENING_SECONDS, isolation_level=None)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def identity(path: str) -> tuple[int, int] | None:
    """What tells a file from another one of its name; ``None`` if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _alone(path: Path) -> Generator[None, None, None]:
    """Open a file while no other process does: one of them creates the tables, or replaces what is damaged."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows, where one process serves
        yield
        return
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _created(path: str) -> sqlite3.Connection:
    Path(path).touch(mode=0o600)  # conversations concern nobody else; SQLite gives the log the same mode
    _close_to_others(path)
    return _connect(path)


def _close_to_others(path: str) -> None:
    """Take the rights of all others from a file that was there before, such as a restored one."""
    if os.name == "nt":  # where they are not in the mode
        return
    for file in filter(Path.exists, [Path(path + each) for each in _COMPANIONS]):
        if (mode := file.stat().st_mode) & stat.S_IRWXO:
            try:
                file.chmod(mode & ~stat.S_IRWXO)
            except OSError:
                _log.warning("the state store's file is open to everybody: chmod o-rwx", extra={"server": str(file)})
            else:
                _log.warning(
                    "the file of the state store was open to everybody, and is no more", extra={"server": str(file)}
                )


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_OPENING_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        [version] = database.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            known = f"this version knows {_VERSION}"
            raise ConfigurationError(f"the file {path} was written by a later version (format {version}, {known})")
        if path != IN_MEMORY:
            database.execute("PRAGMA journal_mode = WAL")
        if version == 1:
            database.executescript("DROP INDEX usage; DROP TABLE locks; ALTER TABLE entries RENAME TO earlier")
        if version < _VERSION:
            database.executescript(_SCHEMA)
        if version == 1:
            database.executescript(_FROM_FIRST)
    except BaseException:
        database.close()
        raise
    return database


def _put_aside(path: str, error: sqlite3.DatabaseError) -> None:
    """Rename a damaged file and its companions."""
    aside = f"{path}.damaged-{int(time.time())}"
    for each in _COMPANIONS:
        with suppress(FileNotFoundError):
            Path(path + each).rename(aside + each)
    _log.error("the file of the state store is damaged", extra={"renamed_to": aside, "reason": str(error)})


_MANY: Final = 100
"""Operations that are committed together at most: other processes wait as long."""
_STOP_SECONDS: Final = 5.0

T = TypeVar("T")
_Operation = tuple[Callable[[], Any], asyncio.Future[Any]]
"""What runs in a transaction, and where its caller waits for the result."""


class WritingThread:
    """Runs operations in the order in which they were submitted, and their callers go on once they are committed.

    A commit writes to the disk, which may take long: only this thread waits for it.

    Args:
        database: its connection, which nothing else uses from now on.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._waiting = SimpleQueue[_Operation | None]()
        self._began_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="state-store", daemon=True)
        self._thread.start()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in a transaction. If it raises an error of its own, it must not have written before."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put((function, future))
        return await future

    def is_stalled(self, seconds: float) -> bool:
        """Whether the disk has not finished a transaction for that time."""
        began_at = self._began_at
        return began_at is not None and time.monotonic() - began_at > seconds

    async def stop(self) -> None:
        """Commit what is waiting, and close the connection; a disk that does not answer is left alone."""
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)

    def _run(self) -> None:
        last = False
        while not last:
            # Nothing else takes from the queue, so as many as it has now can be taken without waiting.
            found = [self._waiting.get() for _ in range(max(1, min(self._waiting.qsize(), _MANY)))]
            last = None in found
            if operations := [each for each in found if each]:
                self._commit(operations)
        self._database.close()

    def _commit(self, operations: Sequence[_Operation]) -> None:
        self._began_at = time.monotonic()
        try:
            self._database.execute("BEGIN IMMEDIATE")
            outcomes = [_outcome(*each) for each in operations]
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):  # nothing has begun, or SQLite has rolled back by itself as the disk is full
                self._database.execute("ROLLBACK")
            outcomes = [partial(future.set_exception, error) for _, future in operations]
        self._began_at = None

        def deliver() -> None:
            for (_, future), outcome in zip(operations, outcomes, strict=True):
                if not future.cancelled():
                    outcome()

        with suppress(RuntimeError):  # the loop was closed
            operations[0][1].get_loop().call_soon_threadsafe(deliver)


def _outcome(function: Callable[[], T], future: asyncio.Future[T]) -> Callable[[], None]:
    """Run an operation, and return what tells its caller."""
    try:
        return partial(future.set_result, function())
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - it is the caller's
        return partial(future.set_exception, error)
