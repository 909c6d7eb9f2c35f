"""Writing to an SQLite file in a thread of its own: what is waiting is committed together, away from the event loop."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

from toolchat.messages import immutable

_MANY: Final = 100
"""Operations that are committed together at most: other processes wait as long."""
_STOP_SECONDS: Final = 5.0

T = TypeVar("T")


class WritingThread:
    """Runs operations in the order in which they were submitted, and their callers go on once they are committed.

    A commit writes to the disk, which may take long: only this thread waits for it.

    Args:
        database: its connection, which nothing else uses from now on.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._waiting = SimpleQueue[_Operation[Any] | None]()
        self._began_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="state-store", daemon=True)
        self._thread.start()

    async def run(self, function: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        """Run a function in a transaction. If it raises an error of its own, it must not have written before.

        ``undo`` is called with the result if the caller has been cancelled in the meantime.
        """
        operation = _Operation(asyncio.get_running_loop(), function, undo)
        self._waiting.put(operation)
        try:
            return await operation.future
        except asyncio.CancelledError:
            operation.abandon()
            raise

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

    def _commit(self, operations: "Sequence[_Operation[Any]]") -> None:
        self._began_at = time.monotonic()
        try:
            outcomes = transact(self._database, lambda: [_outcome(each.function) for each in operations])
        except sqlite3.Error as error:
            outcomes = [_Failure(error)] * len(operations)
        self._began_at = None

        def deliver() -> None:
            for operation, outcome in zip(operations, outcomes, strict=True):
                operation.deliver(outcome)

        with suppress(RuntimeError):  # the loop was closed
            operations[0].loop.call_soon_threadsafe(deliver)


class _Operation(Generic[T]):
    """An operation that is waiting, and its result."""

    __slots__ = ("function", "future", "loop", "undo")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, function: Callable[[], T], undo: Callable[[T], None] | None
    ) -> None:
        self.loop = loop
        self.function = function
        self.undo = undo
        self.future: asyncio.Future[T] = loop.create_future()

    def deliver(self, outcome: "T | _Failure") -> None:
        """Give the outcome to the caller."""
        if isinstance(outcome, _Failure):
            if not self.future.cancelled():
                self.future.set_exception(outcome.error)
        elif not self.future.cancelled():
            self.future.set_result(outcome)
        elif self.undo:
            self.undo(outcome)

    def abandon(self) -> None:
        """Undo what was delivered just before the caller was cancelled."""
        if self.undo and not self.future.cancelled() and not self.future.exception():
            self.undo(self.future.result())


@immutable
class _Failure:
    """The error of an operation."""

    error: Exception


def transact(database: sqlite3.Connection, function: Callable[[], T]) -> T:
    """Run a function in a transaction."""
    database.execute("BEGIN IMMEDIATE")
    try:
        result = function()
        database.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite has rolled back by itself if the disk is full
            database.execute("ROLLBACK")
        raise
    return result


def _outcome(function: Callable[[], T]) -> T | _Failure:
    try:
        return function()
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - it is the caller's
        return _Failure(error)
