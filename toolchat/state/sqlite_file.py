"""The file of the SQLite store: its schema, its opening, and what is done about a file that cannot be used."""

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from toolchat.errors import ConfigurationError

IN_MEMORY: Final = ":memory:"
_VERSION: Final = 1
_COMPANIONS: Final = ("", "-wal", "-shm")
_LONG_LOG: Final = 4096
"""Pages of 4 KiB: a log that is written all the time is never moved as a whole, and would grow."""
_LONGEST_LOG: Final = 16 * _LONG_LOG
_MOVE: Final = "PRAGMA wal_checkpoint(PASSIVE)"
_READERS_SECONDS: Final = 0.2
"""Seconds that writers wait for those who still read a long log; less than their deadline."""
_OPENING_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)

# The ids grow, so that the smallest is the value that was not written for longest. The index has what is counted and
# swept, so that neither reads the values.
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    client TEXT NOT NULL,
    size INTEGER NOT NULL,
    expires REAL NOT NULL,
    value BLOB NOT NULL
);
CREATE INDEX usage ON entries (kind, client, size, expires);
CREATE TABLE locks (key BLOB PRIMARY KEY, token INTEGER NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
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
        return _connect(path)
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
        if thorough:
            _check(database)
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
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _created(path: str) -> sqlite3.Connection:
    Path(path).touch(mode=0o600)  # conversations concern nobody else; SQLite gives the log the same mode
    return _connect(path)


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_OPENING_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        [version] = database.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            known = f"this version knows {_VERSION}"
            raise ConfigurationError(f"the file {path} was written by a later version (format {version}, {known})")
        if path != IN_MEMORY:
            database.execute("PRAGMA journal_mode = WAL")
        if not version:
            database.executescript(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _check(database: sqlite3.Connection) -> None:
    """Read every page."""
    [found] = database.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        database.close()
        raise sqlite3.DatabaseError(found)


def _put_aside(path: str, error: sqlite3.DatabaseError) -> None:
    """Rename a damaged file and its companions."""
    aside = f"{path}.damaged-{int(time.time())}"
    for each in _COMPANIONS:
        with suppress(FileNotFoundError):
            Path(path + each).rename(aside + each)
    _log.error("the file of the state store is damaged", extra={"renamed_to": aside, "reason": str(error)})
