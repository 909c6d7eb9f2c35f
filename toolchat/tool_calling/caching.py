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


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error as the value of a task: raised in the task, some exceptions would end the event loop."""

    error: BaseException
    traceback: TracebackType | None

    def restored(self) -> BaseException:
        """The error with its first traceback, which each further ``raise`` would make longer."""
        return self.error.with_traceback(self.traceback)


@dataclass(slots=True)
class SharedCall:
    """A running call and the number of callers that wait for it."""

    task: asyncio.Task[ToolResult | _Failure]
    waiting: int = 0
    is_abandoned: bool = False
    """A caller stopped waiting. The call may hang, so no further caller joins it."""

    async def wait(self) -> ToolResult:
        """Wait for the result; raises what the call raised."""
        self.waiting += 1
        try:
            # ``asyncio.wait`` leaves the task alone when this caller is cancelled: the others still need it.
            await asyncio.wait({self.task})
        finally:
            self.waiting -= 1
            if not self.task.done():
                await self._leave()
        result = self.task.result()
        if isinstance(result, _Failure):
            # The call failed: every caller gets the same error.
            raise result.restored()
        # The call succeeded: every caller gets the same result.
        return result

    async def _leave(self) -> None:
        # This caller was cancelled, for example by its time limit, while the call goes on for the others.
        self.is_abandoned = True
        if not self.waiting:
            # It was the last caller: nobody needs the result, so the call is cancelled, and has ended on return.
            self.task.cancel()
            await asyncio.wait({self.task})


@dataclass(slots=True)
class SingleFlight:
    """Runs equal calls once: a later call gets the cached result, a simultaneous one waits for the running call.

    The call runs in a task of its own without the context variables of its callers, since it answers all of them: its
    log lines carry no request id. Only the identity and the trace of the first caller are copied, for limits per client
    and for spans. The call is cancelled when its last caller leaves. Errors reach every caller and are never cached.
    """

    recent: RecentResults
    _running: dict[bytes, SharedCall] = field(default_factory=dict)

    async def result(self, key: bytes, run: Callable[[], Coroutine[Any, Any, ToolResult]]) -> ToolResult:
        """Get the result of a call."""
        cached = self.recent.get(key)
        if cached is not None:
            return cached._replace(cached=True)
        call = self._running.get(key)
        joins = call is not None and not call.is_abandoned
        if call is None or not joins:
            call = self._start(key, run)
        return (await call.wait())._replace(cached=joins, repaired=False)

    def _start(self, key: bytes, run: Callable[[], Coroutine[Any, Any, ToolResult]]) -> SharedCall:
        context = contextvars.Context()
        context.run(current_caller.set, current_caller.get())
        instruments.observer.copy_context(context)
        task = asyncio.create_task(_catch(run), context=context)
        call = self._running[key] = SharedCall(task)
        task.add_done_callback(lambda _: self._store(key, call))
        return call

    def _store(self, key: bytes, call: SharedCall) -> None:
        # An abandoned call may have been replaced by a newer one, whose result must not be overwritten.
        if self._running.get(key) is not call:
            return
        del self._running[key]
        if not call.task.cancelled() and isinstance(result := call.task.result(), ToolResult):
            self.recent.put(key, result)


async def _catch(run: Callable[[], Coroutine[Any, Any, ToolResult]]) -> ToolResult | _Failure:
    try:
        return await run()
    except BaseException as error:  # noqa: BLE001
        return _Failure(error, error.__traceback__)
