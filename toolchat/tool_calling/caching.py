"""Results of tools that may repeat: kept for a while, and made once for equal calls that come together."""

import asyncio
import contextvars
import hashlib
import json
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from pydantic_core import from_json

from toolchat import instruments
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.caller import current_caller

__all__ = ["RecentResults", "ResultCache", "call_key"]


def call_key(arguments: str, schema: Mapping[str, Any]) -> bytes:
    """Make a key that two texts share when they call a tool with the same arguments.

    The order of names does not matter, nor does it whether a default is written out. It is a digest, so that a key
    takes the same room for any arguments and holds nothing of what a user wrote.

    Args:
        arguments: JSON text that has been checked against the schema.
        schema: the JSON Schema of the tool's input.
    """
    try:
        value = from_json(arguments) if arguments.strip() else {}
    except ValueError:  # The check repairs more than a parser does; such a text is equal to itself alone.
        return hashlib.sha256(b"?" + arguments.encode("utf-8", "surrogatepass")).digest()
    properties = schema.get("properties", {})
    if isinstance(value, dict) and value.keys() <= properties.keys():
        value = {name: part["default"] for name, part in properties.items() if "default" in part} | value
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


@dataclass(slots=True)
class RecentResults:
    """The results that were used last, each for a limited time; old ones make room for new ones."""

    seconds: float
    max_entries: int = 1000
    max_bytes: int = 16 * 1024 * 1024
    """Bytes that all kept texts may take in memory together."""
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[bytes, tuple[str, float]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def get(self, key: bytes) -> str | None:
        """Look up a result that is not too old."""
        text, until = self._kept.get(key, (None, 0.0))
        if text is None:
            return None
        if self.clock() >= until:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return text

    def put(self, key: bytes, text: str) -> None:
        """Keep a result from now on, unless it is too large for the whole."""
        self._drop(key)
        size = sys.getsizeof(text)
        if size > self.max_bytes:
            return
        while self._kept and (len(self._kept) >= self.max_entries or self._bytes + size > self.max_bytes):
            self._drop(next(iter(self._kept)))
        self._kept[key] = text, self.clock() + self.seconds
        self._bytes += size

    def _drop(self, key: bytes) -> None:
        if dropped := self._kept.pop(key, None):
            self._bytes -= sys.getsizeof(dropped[0])


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error that everybody who waits is told; it stays a value in the task, for some would end the event loop."""

    error: BaseException
    traceback: TracebackType | None

    def again(self) -> BaseException:
        """The error as it was first raised; each raise would else make its traceback longer."""
        return self.error.with_traceback(self.traceback)


@dataclass(slots=True)
class _Flight:
    """A call that runs, for everybody who waits for it."""

    task: asyncio.Task[str | _Failure]
    waiting: int = 0
    given_up: bool = False
    """Somebody has left before its end: it may hang, so nobody new is made to wait for it."""

    async def landed(self) -> str | _Failure:
        """Wait for the end; who leaves before it leaves it to the others, and the last one ends it."""
        self.waiting += 1
        try:
            await asyncio.wait({self.task})
        finally:
            self.waiting -= 1
            if not self.task.done():
                await self._leave()
        return self.task.result()

    async def _leave(self) -> None:
        self.given_up = True
        if not self.waiting:
            self.task.cancel()
            await asyncio.wait({self.task})


@dataclass(slots=True)
class ResultCache:
    """Runs equal calls once: one that follows gets the result that is kept, one that comes meanwhile waits for it.

    A call runs in a task of its own and without the context variables of any caller, since it answers them all: its
    log lines bear no request's id. Only who asked first stays known, whose share of an upstream it uses and of whose
    trace it is a part. It goes on while anybody waits, and ends with the last who leaves. An error is told to all who
    wait, and never kept.
    """

    recent: RecentResults
    _flights: dict[bytes, _Flight] = field(default_factory=dict)

    async def result(self, key: bytes, run: Callable[[], Coroutine[Any, Any, str]]) -> ToolResult:
        """Get the result of a call.

        Args:
            key: the same for calls that may share a result.
            run: makes the result.

        Raises:
            BaseException: whatever ``run`` raised.
        """
        kept = self.recent.get(key)
        if kept is not None:
            return ToolResult(kept, cached=True)
        flight = self._flights.get(key)
        joins = flight is not None and not flight.given_up
        if flight is None or not joins:
            flight = self._started(key, run)
        landed = await flight.landed()
        if isinstance(landed, _Failure):
            raise landed.again()
        return ToolResult(landed, cached=joins)

    def _started(self, key: bytes, run: Callable[[], Coroutine[Any, Any, str]]) -> _Flight:
        context = contextvars.Context()
        context.run(current_caller.set, current_caller.get())
        instruments.observer.copy_context(context)
        task = asyncio.create_task(_contained(run), context=context)
        flight = self._flights[key] = _Flight(task)
        task.add_done_callback(lambda _: self._keep(key, flight))
        return flight

    def _keep(self, key: bytes, flight: _Flight) -> None:
        if self._flights.get(key) is not flight:
            return
        del self._flights[key]
        if not flight.task.cancelled() and isinstance(text := flight.task.result(), str):
            self.recent.put(key, text)


async def _contained(run: Callable[[], Coroutine[Any, Any, str]]) -> str | _Failure:
    try:
        return await run()
    except BaseException as error:  # noqa: BLE001
        return _Failure(error, error.__traceback__)
