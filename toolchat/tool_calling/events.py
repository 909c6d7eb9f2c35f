"""Events of tool calls: started, progress, finished. A stream carries them to the client."""

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from toolchat.messages import ToolCall, ToolResponse, immutable
from toolchat.tool_calling.results import json_or_text


@immutable
class ToolCallStarted:
    """A call starts."""

    call: ToolCall
    round: int
    """The round of the model call that requested it, from 1."""


@immutable
class ToolCallProgress:
    """A running call reports progress."""

    call: ToolCall
    round: int
    done: float
    """The work done, in a unit of the tool; finite and not negative."""
    of: float | None = None
    """The total work in the same unit, greater than 0; ``None`` if unknown."""
    text: str | None = None
    """The current step: one short line without control characters."""

    def to_dict(self) -> dict[str, Any]:
        """Convert the report to a plain object without its missing parts."""
        record = {"id": self.call.id, "name": self.call.name, "done": self.done, "of": self.of, "text": self.text}
        return {key: value for key, value in record.items() if value is not None} | {"round": self.round}

    def __str__(self) -> str:
        reached = f"{self.done:g}" if self.of is None else f"{self.done:g} of {self.of:g}"
        return f"{self.call.name}: {reached}" + (f", {self.text}" if self.text else "")


@immutable
class ToolCallFinished:
    """A call has ended, with its result or an error."""

    call: ToolCall
    round: int
    result: str
    """The text for the model: the tool's result, or JSON with an ``error`` object."""
    outcome: Literal["ok", "error"]
    duration_ms: float
    error_kind: str | None = None
    """A stable word for the failure; ``None`` if the outcome is ``ok``."""
    return_direct: bool = False
    sandbox: bool = False
    """The result is a sandbox's invented data."""
    cached: bool = False
    """The result belongs to an equal call; this call did not run."""
    repaired: bool = False
    """The arguments did not fit the schema and were repaired, or the model wrote the call as text."""
    data: Any = None
    """JSON for the client, beside the text for the model; see :class:`ToolAnswer`."""
    images: tuple[str, ...] = ()
    """For a model that takes images, beside the text."""
    approved_by: str = ""
    """The name of who approved the call, if that is known."""
    whole_result: str = ""
    """The text of a tool with ``return_direct`` before it was shortened for the model; else empty."""

    @property
    def response(self) -> ToolResponse:
        """The result as a part of a tool response message."""
        return ToolResponse(self.call.id, self.call.name, self.result, self.sandbox, self.images)

    def to_dict(self) -> dict[str, Any]:
        """Convert the call to a plain object; arguments that are valid JSON are parsed."""
        return self.to_record() | {"arguments": parse_arguments(self.call)}

    def to_record(self) -> dict[str, Any]:
        """As :meth:`to_dict`, with the arguments as the model wrote them."""
        record: dict[str, Any] = {
            "id": self.call.id,
            "name": self.call.name,
            "arguments": self.call.arguments,
            "result": self.result,
            "outcome": self.outcome,
            "duration_ms": self.duration_ms,
            "round": self.round,
        }
        if self.sandbox:
            record["sandbox"] = True
        if self.cached:
            record["cached"] = True
        if self.repaired:
            record["repaired"] = True
        if self.data is not None:
            record["data"] = self.data
        if self.approved_by:
            record["approved_by"] = self.approved_by
        return record | ({"error_kind": self.error_kind} if self.error_kind else {})


ToolCallEvent = ToolCallStarted | ToolCallProgress | ToolCallFinished

EmitToolCall = Callable[[ToolCallEvent], Coroutine[Any, Any, None]]
"""Sends an event to the client. It is awaited, so that a slow client slows the stream down."""


async def discard_event(event: object) -> None:
    """Discard an event: the ``emit`` of a request that is not streamed."""


def parse_arguments(call: ToolCall) -> Any:
    """Parse a call's arguments; text that is not valid JSON is returned as it is."""
    return json_or_text(call.arguments) if call.arguments.strip() else {}
