"""The context of a tool call: values hidden from the model, and progress reports from the tool."""

import asyncio
import contextvars
import math
import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, core_schema

from toolchat.messages import Message, ToolCall
from toolchat.tool_calling.caller import Caller, current_caller
from toolchat.tool_calling.events import EmitToolCall, ToolCallProgress

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _Value = TypeVar("_Value", covariant=True, default=Any)
else:
    from typing import TypeVar

    _Value = TypeVar("_Value", covariant=True)


CONVERSATION_ID = "conversation_id"
"""The name of the value that identifies the conversation, for tools and advisors that store something under it."""


_MAX_REPORT_CHARS = 1000
"""Characters of a report's text that are read; the event carries fewer."""

_Report = Callable[[float, float | None, str | None], None]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@final
class ToolContext(Generic[_Value]):
    """What a tool learns beside its arguments: the caller, the application's values, and the conversation so far.

    The context is no part of a tool's schema, is never sent to the model and never built from a model's output. A tool
    receives it by declaring one parameter of this type, alone, with ``| None`` or within ``Annotated``. Without values
    the context is empty, never missing. It is immutable, because several calls share it.

    For typed values, pass an object of your own class: with ``ToolContext(value=Tenant())``, a tool that declares
    ``ToolContext[Tenant]`` reads ``context.value.name``, and a type checker knows its type.
    """

    # Not a dataclass: pydantic would build a parametrised one from a model's JSON, whatever the schema hooks below say.
    __slots__ = ("_caller", "_given_up", "_report", "history", "idempotency_key", "value", "values")

    values: Mapping[str, Any]
    history: tuple[Message, ...]
    """The messages before the call, oldest first, the assistant message with the call last."""
    value: _Value
    """The application's own object, if it passed one."""
    idempotency_key: str
    """Identifies this one call, to an upstream that does the same thing once for each key; empty outside of a call.

    It stays the same in retries and, in the background, in each try after a crash; another call has another one.
    """
    _caller: Caller | None
    _report: _Report | None
    _given_up: Event | None

    def __init__(
        self,
        values: Mapping[str, Any] = _NOTHING,
        history: tuple[Message, ...] = (),
        value: _Value = None,  # type: ignore[assignment]
        caller: Caller | None = None,
    ) -> None:
        if not isinstance(values, MappingProxyType):
            values = MappingProxyType(dict(values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "history", history)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "_caller", caller)
        object.__setattr__(self, "idempotency_key", "")
        object.__setattr__(self, "_report", None)
        object.__setattr__(self, "_given_up", None)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ToolContext cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ToolContext cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolContext):
            return NotImplemented
        return (self.values, self.history, self.value) == (other.values, other.history, other.value)

    @property
    def caller(self) -> Caller:
        """The client on whose behalf the tool runs: its name, tenant and roles."""
        return current_caller.get() if self._caller is None else self._caller

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for the call any more: its time is over, or its request was cancelled.

        A coroutine is cancelled then. A blocking tool runs on in its thread, since Python cannot stop one: let it look
        here from time to time, and return.
        """
        return self._given_up is not None and self._given_up.is_set()

    def get(self, key: str, default: Any = None) -> Any:
        """Get one value by its name."""
        return self.values.get(key, default)

    def with_values(self, values: Mapping[str, Any]) -> "ToolContext[_Value]":
        """Copy with more values, which replace earlier ones of the same name."""
        merged = MappingProxyType({**self.values, **values})
        return self._for_same_call(ToolContext(merged, self.history, self.value, self._caller))

    def with_value(self, value: object) -> "ToolContext[Any]":
        """Copy with another object of the application's."""
        return self._for_same_call(ToolContext(self.values, self.history, value, self._caller))

    def with_history(self, history: tuple[Message, ...]) -> "ToolContext[_Value]":
        """Copy with another history, for the calls of a round.

        The copy keeps the caller of this moment: a thread that a tool starts by itself has no context variables.
        """
        return self._for_same_call(ToolContext(self.values, history, self.value, self.caller))

    def for_call(self, given_up: Event, report: _Report | None = None) -> "ToolContext[_Value]":
        """Copy for one call.

        Args:
            given_up: set as soon as nobody waits for the call.
            report: receives its progress reports, with numbers that are finite and not negative.
        """
        copy = ToolContext(self.values, self.history, self.value, self._caller)
        object.__setattr__(copy, "idempotency_key", os.urandom(16).hex())
        object.__setattr__(copy, "_given_up", given_up)
        object.__setattr__(copy, "_report", report)
        return copy

    def with_idempotency_key(self, key: str) -> "ToolContext[_Value]":
        """Copy with another key for the call, such as one that outlives the process."""
        copy = self.with_value(self.value)
        object.__setattr__(copy, "idempotency_key", key)
        return copy

    def _for_same_call(self, copy: "ToolContext[Any]") -> "ToolContext[Any]":
        if self._given_up is None:  # it is the context of no call yet
            return copy
        object.__setattr__(copy, "idempotency_key", self.idempotency_key)
        object.__setattr__(copy, "_given_up", self._given_up)
        object.__setattr__(copy, "_report", self._report)
        return copy

    def report(self, done: float, *, of: float | None = None, text: str | None = None) -> None:
        """Report the progress of the call; a streaming client receives at most ten reports a second.

        Can be called from any thread and as often as needed: of reports that come too fast, only the latest is sent.
        Without a streaming client, and after the end of the call, it does nothing. Odd numbers do not make a tool fail:
        a ``done`` that is not finite is ignored, a negative one counts as 0, and an ``of`` that is not finite or not
        above 0 counts as unknown.

        Args:
            done: the work done, in any unit.
            of: the total work, in the same unit.
            text: the current step, sent as one line of at most 200 characters.

        Raises:
            TypeError: an argument has the wrong type.
        """
        reached, goal = _finite(done), None if of is None else _finite(of)
        if not (text is None or isinstance(text, str)):
            raise TypeError(f"the text of a report must be a str, not {type(text).__name__}")
        if self._report is not None and reached is not None:
            shown = None if text is None else text[:_MAX_REPORT_CHARS]
            self._report(max(reached, 0), goal if goal and goal > 0 else None, shown)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A pydantic model may have a field of this type. No JSON is an instance, so a model's output never becomes one.
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> NoReturn:
        raise PydanticUserError("a ToolContext comes from the caller alone, as a parameter of its own", code=None)


def _finite(number: float) -> float | None:
    """A plain int or float, as JSON needs it; ``None`` if it is not finite."""
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"a report needs a number, not {type(number).__name__}")
    try:
        plain = int(number) if isinstance(number, Integral) else float(number)
        return plain if math.isfinite(plain) else None
    except OverflowError:
        return None


PAUSE = 1 / 9
"""Seconds between two reports of one call: nine a second, and the last one, which does not wait."""
_MAX_LINE_CHARS = 200


class ProgressReporter:
    """Emits the progress reports of one call at a limited rate.

    The first report is emitted at once and each further one after a pause; of those reported meanwhile, the latest.
    The last report is emitted when the call ends, and none after it. The emitting task starts with the first report,
    since most calls have none.
    """

    def __init__(self, call: ToolCall, turn: int, emit: EmitToolCall, pause: float = PAUSE) -> None:
        self._call = call
        self._round = turn
        self._emit = emit
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        # A report may come from a thread outside the request; what it emits still belongs to the request.
        self._context = contextvars.copy_context()
        # A deque is thread-safe: each report is either emitted, replaced by a later one, or still here at the end.
        self._latest: deque[tuple[float, float | None, str | None]] = deque(maxlen=1)
        self._woken = self._ended = False
        self._task: asyncio.Task[None] | None = None
        self._pausing: asyncio.Future[None] | None = None

    def report(self, done: float, of: float | None, text: str | None) -> None:
        """Accept a report from any thread; see :meth:`ToolContext.report`."""
        if self._ended:
            return
        self._latest.append((done, of, text))
        if not self._woken:
            self._woken = True
            # An abandoned thread may report after the event loop has been closed.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake, context=self._context)

    async def finish(self) -> None:
        """Emit the last report and ignore later ones; raises what ``emit`` raised."""
        self._ended = True
        if self._task is None and self._latest:
            self._task = self._loop.create_task(self._emit_reports())
        if self._task is not None:
            if self._pausing is not None:
                resolve_future(self._pausing)
            await self._task

    async def cancel(self) -> None:
        """Stop emitting at once."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wake(self) -> None:
        if self._task is None and not self._ended:
            self._task = self._loop.create_task(self._emit_reports())

    async def _emit_reports(self) -> None:
        while True:
            self._woken = False  # Cleared before the check: a report that comes after the check wakes the task again.
            if not self._latest:
                break
            done, of, text = self._latest.pop()
            await self._emit(ToolCallProgress(self._call, self._round, done, of, _one_line(text) if text else None))
            await self._throttle()
        self._task = None

    async def _throttle(self) -> None:
        if self._ended:
            return
        self._pausing = self._loop.create_future()
        timer = self._loop.call_later(self._pause, resolve_future, self._pausing)
        try:
            await self._pausing
        finally:
            timer.cancel()


def resolve_future(future: asyncio.Future[None]) -> None:
    """Resolve a future, unless it is done or cancelled."""
    if not future.done():
        future.set_result(None)


def _one_line(text: str) -> str | None:
    """Make a text one printable line."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return (line if len(line) <= _MAX_LINE_CHARS else f"{line[: _MAX_LINE_CHARS - 1]}…") or None
