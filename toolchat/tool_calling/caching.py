"""Cached results of tools, and single flight: equal calls that come together run once."""

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

from pydantic_core import from_json, to_json

import toolchat.instruments as instruments
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.threads import NotBegun

_Outcome = ToolResult | tuple[BaseException, TracebackType | None]
"""The result of a call, or its error as a value."""


def call_key(arguments: str, schema: Mapping[str, Any]) -> bytes:
    """Compute a cache key that is equal for equal arguments.

    The order of properties does not matter, and a missing property equals its default. The key is a digest: it has the
    same size for any arguments and contains nothing that a user wrote.

    Args:
        arguments: JSON text that has been validated against the schema.
        schema: the JSON Schema of the tool's input.
    """
    try:
        value = from_json(arguments) if arguments.strip() else {}
    except ValueError:  # Validation repairs more than a parser accepts. Such a text equals only itself.
        return hashlib.sha256(b"?" + arguments.encode("utf-8", "surrogatepass")).digest()
    properties = schema.get("properties", {})
    if isinstance(value, dict) and value.keys() <= properties.keys():
        value = {name: part["default"] for name, part in properties.items() if "default" in part} | value
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


@dataclass(slots=True)
class RecentResults:
    """A cache of results with a time to live; at its limits the least recently used are evicted."""

    seconds: float
    max_entries: int = 1000
    max_bytes: int = 16 * 1024 * 1024
    """Memory for all cached results together."""
    clock: Callable[[], float] = time.monotonic
    _stored: OrderedDict[bytes, tuple[ToolResult, int, float]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def get(self, key: bytes) -> ToolResult | None:
        """Look up a result that has not expired."""
        result, _, until = self._stored.get(key, (None, 0, 0.0))
        if result is None:
            return None
        if self.clock() >= until:
            self._drop(key)
            return None
        self._stored.move_to_end(key)
        return result

    def put(self, key: bytes, result: ToolResult) -> None:
        """Store a result, unless it is larger than the whole cache."""
        self._drop(key)
        size = sys.getsizeof(result.text) + (0 if result.data is None else len(to_json(result.data)))
        if size > self.max_bytes:
            return
        while self._stored and (len(self._stored) >= self.max_entries or self._bytes + size > self.max_bytes):
            self._drop(next(iter(self._stored)))
        self._stored[key] = result, size, self.clock() + self.seconds
        self._bytes += size

    def _drop(self, key: bytes) -> None:
        if dropped := self._stored.pop(key, None):
            self._bytes -= dropped[1]


@dataclass(slots=True)
class SingleFlight:
    """Runs equal calls once: a later call gets the cached result, a simultaneous one waits for the running call.

    The call runs in a task of its own without the context variables of its callers, since it answers all of them: its
    log lines carry no request id. Only the identity and the trace of its caller are copied, for limits per client and
    for spans. If its caller leaves, it is cancelled, and one of those who wait runs it anew. Errors reach every caller
    and are never cached.
    """

    recent: RecentResults
    _running: dict[bytes, asyncio.Future[_Outcome | None]] = field(default_factory=dict)
    """What comes of the running calls; ``None`` for one whose caller has left."""

    async def result(self, key: bytes, run: Callable[[], Coroutine[Any, Any, ToolResult]]) -> ToolResult:
        """Get the result of a call."""
        while (cached := self.recent.get(key)) is None:
            if (running := self._running.get(key)) is None:
                return _result_of(await self._run(key, run))
            # ``asyncio.wait`` leaves the future alone when this caller is cancelled: the others still need it.
            await asyncio.wait({running})
            if (outcome := running.result()) is not None:
                return _result_of(outcome)._replace(cached=True)
        return cached._replace(cached=True)

    async def _run(self, key: bytes, run: Callable[[], Coroutine[Any, Any, ToolResult]]) -> _Outcome:
        context = contextvars.Context()
        context.run(current_caller.set, current_caller.get())
        instruments.observer.copy_context(context)
        task = asyncio.create_task(_catch(run), context=context)
        running = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({task})
        finally:
            del self._running[key]
            running.set_result(task.result() if task.done() else None)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
                if isinstance(task.result()[0], NotBegun):
                    raise NotBegun
        outcome = task.result()
        if isinstance(outcome, ToolResult):
            self.recent.put(key, outcome)
        return outcome


async def _catch(run: Callable[[], Coroutine[Any, Any, ToolResult]]) -> _Outcome:
    try:
        return await run()
    except BaseException as error:  # noqa: BLE001 - raised in the task, some exceptions would end the event loop
        return error, error.__traceback__


def _result_of(outcome: _Outcome) -> ToolResult:
    if isinstance(outcome, ToolResult):
        return outcome
    error, traceback = outcome
    raise error.with_traceback(traceback)  # the first one, which each further ``raise`` would make longer
