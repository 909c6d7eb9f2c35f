"""What a caller tells a tool behind the model's back."""

import asyncio
import contextvars
import math
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, core_schema

from toolchat.messages import Message, ToolCall
from toolchat.tool_calling.events import EmitToolCall, ToolCallProgress

__all__ = ["CONVERSATION_ID", "PAUSE", "ProgressReporter", "ToolContext"]


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _Value = TypeVar("_Value", covariant=True, default=Any)
else:
    from typing import TypeVar

    _Value = TypeVar("_Value", covariant=True)


CONVERSATION_ID = "conversation_id"
"""The value that names the conversation: what a tool or an advisor keeps between two questions is kept under it."""


_LOOKED_AT = 1000
"""Characters of a report's text that are looked at."""

_Report = Callable[[float, float | None, str | None], None]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@final
class ToolContext(Generic[_Value]):
    """Values for tools, such as a tenant, and the conversation that led to the call.

    It never enters a tool's schema, is never sent to the model and never made of what a model sends. A tool receives
    it by declaring one parameter of this type, alone, with ``| None`` or within ``Annotated``; without values it is
    empty, never missing. It cannot be changed: several calls share it.

    A class of one's own takes the place of names and ``Any``: where the caller gives ``ToolContext(value=Tenant())``, a
    tool that declares ``ToolContext[Tenant]`` reads ``context.value.name``, and a type checker knows it.
    """

    # No dataclass: pydantic would build a parametrised one out of a model's JSON, whatever the class itself says.
    __slots__ = ("_report", "history", "value", "values")

    values: Mapping[str, Any]
    history: tuple[Message, ...]
    """The messages before the call, oldest first, the assistant message with the call last."""
    value: _Value
    """The caller's own object; ``None`` where the caller gave none."""
    _report: _Report | None

    def __init__(
        self,
        values: Mapping[str, Any] = _NOTHING,
        history: tuple[Message, ...] = (),
        value: _Value = None,  # type: ignore[assignment]
    ) -> None:
        if not isinstance(values, MappingProxyType):
            values = MappingProxyType(dict(values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "history", history)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "_report", None)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ToolContext cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ToolContext cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolContext):
            return NotImplemented
        return (self.values, self.history, self.value) == (other.values, other.history, other.value)

    def get(self, key: str, default: Any = None) -> Any:
        """Look up one value."""
        return self.values.get(key, default)

    def with_values(self, values: Mapping[str, Any]) -> "ToolContext[_Value]":
        """Copy with further values; each takes the place of an earlier one of its name."""
        return _reporting(ToolContext({**self.values, **values}, self.history, self.value), self._report)

    def with_history(self, history: tuple[Message, ...]) -> "ToolContext[_Value]":
        """Copy with another history."""
        return _reporting(ToolContext(self.values, history, self.value), self._report)

    def reporting_to(self, report: _Report | None) -> "ToolContext[_Value]":
        """Copy whose reports are handed to somebody: numbers that are finite and not negative, and a text."""
        return _reporting(ToolContext(self.values, self.history, self.value), report)

    def report(self, done: float, *, of: float | None = None, text: str | None = None) -> None:
        """Say how far the call is; whoever listens to the question is told, at most ten times a second.

        From any thread, as often as one likes: of what comes too fast the latest is told. After the call's end, and
        where nobody listens, it does nothing. What a computation may yield makes no tool fail: a ``done`` that is not
        finite is no report, a negative one counts as 0, an ``of`` that is not finite or not above 0 as not known.

        Args:
            done: how much is done, in a unit of one's own.
            of: how much there is to do, in the same unit.
            text: what is done just now; told as one line of at most 200 characters.

        Raises:
            TypeError: a number is no number, or the text no text.
        """
        reached, goal = _finite(done), None if of is None else _finite(of)
        if not (text is None or isinstance(text, str)):
            raise TypeError(f"the text of a report must be a str, not {type(text).__name__}")
        if self._report is not None and reached is not None:
            shown = None if text is None else text[:_LOOKED_AT]
            self._report(max(reached, 0), goal if goal and goal > 0 else None, shown)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A model class may hold one for its own use; no JSON is an instance, so none is ever made from a model's text.
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> NoReturn:
        raise PydanticUserError("a ToolContext comes from the caller alone, as a parameter of its own", code=None)


def _reporting(context: "ToolContext[_Value]", report: _Report | None) -> "ToolContext[_Value]":
    if report is not None:
        object.__setattr__(context, "_report", report)
    return context


def _finite(number: float) -> float | None:
    """A number as JSON can carry it; ``None`` where it is not finite."""
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"a report needs a number, not {type(number).__name__}")
    try:
        plain = int(number) if isinstance(number, Integral) else float(number)
        return plain if math.isfinite(plain) else None
    except OverflowError:
        return None


PAUSE = 1 / 9
"""Seconds between two events of one call: with the last one, which does not wait, there are ten in a second."""
_LONGEST_TEXT = 200


class ProgressReporter:
    """Tells a listener what one call reports.

    What comes first is told at once, what follows a pause apart: of those that come meanwhile only the latest. What
    is left when the call ends is told then, and nothing after it. No task is made before the first report.
    """

    __slots__ = (
        "_call",
        "_context",
        "_emit",
        "_ended",
        "_latest",
        "_loop",
        "_pause",
        "_rest",
        "_round",
        "_task",
        "_woken",
    )

    def __init__(self, call: ToolCall, turn: int, emit: EmitToolCall, pause: float = PAUSE) -> None:
        self._call = call
        self._round = turn
        self._emit = emit
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        # A report may come from a thread that knows nothing of the request; what it causes belongs to the request.
        self._context = contextvars.copy_context()
        # Its append and its pop are atomic: a report is either the one that is told, or still there.
        self._latest: deque[tuple[float, float | None, str | None]] = deque(maxlen=1)
        self._woken = self._ended = False
        self._task: asyncio.Task[None] | None = None
        self._rest: asyncio.Future[None] | None = None

    def report(self, done: float, of: float | None, text: str | None) -> None:
        """Take a report, from any thread; see :meth:`ToolContext.report`."""
        if self._ended:
            return
        self._latest.append((done, of, text))
        if not self._woken:
            self._woken = True
            # The loop may be gone when a thread for which nobody waits any more comes this far.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake, context=self._context)

    async def finish(self) -> None:
        """Tell what is left, and ignore what comes from now on; raises what the listener raised."""
        self._ended = True
        if self._task is None and self._latest:
            self._task = self._loop.create_task(self._tell())
        if self._task is not None:
            if self._rest is not None:
                _end(self._rest)
            await self._task

    async def cancel(self) -> None:
        """Tell nothing any more."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wake(self) -> None:
        if self._task is None and not self._ended:
            self._task = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            self._woken = False  # Before the look, so that whoever comes behind it wakes us again.
            if not self._latest:
                break
            await self._emit(self._progress(*self._latest.pop()))
            await self._throttle()
        self._task = None

    async def _throttle(self) -> None:
        if self._ended:
            return
        self._rest = self._loop.create_future()
        timer = self._loop.call_later(self._pause, _end, self._rest)
        try:
            await self._rest
        finally:
            timer.cancel()

    def _progress(self, done: float, of: float | None, text: str | None) -> ToolCallProgress:
        return ToolCallProgress(self._call, self._round, done, of, _line(text) if text else None)


def _end(rest: asyncio.Future[None]) -> None:
    if not rest.done():
        rest.set_result(None)


def _line(text: str) -> str | None:
    """A text as one line of what can be shown."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return (line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…") or None
