"""What a caller is told of tool calls while they run."""

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from pydantic_core import from_json

from toolchat.messages import ToolCall, ToolResponse, immutable

__all__ = [
    "EmitToolCall",
    "ToolCallEvent",
    "ToolCallFinished",
    "ToolCallProgress",
    "ToolCallStarted",
    "parse_arguments",
    "silent",
]


@immutable
class ToolCallStarted:
    """The service is about to run a call."""

    call: ToolCall
    round: int
    """The model turn that asked for it, from 1."""


@immutable
class ToolCallProgress:
    """A call that runs says how far it is."""

    call: ToolCall
    round: int
    done: float
    """In a unit of the tool's own; finite and not negative."""
    of: float | None = None
    """What ``done`` goes up to, greater than 0; ``None`` where the tool does not know."""
    text: str | None = None
    """What the tool does just now: one short line without control characters; ``None`` where it does not say."""

    def to_dict(self) -> dict[str, Any]:
        """The report as a plain object; what the tool does not say is absent."""
        record = {"id": self.call.id, "name": self.call.name, "done": self.done, "of": self.of, "text": self.text}
        return {key: value for key, value in record.items() if value is not None} | {"round": self.round}

    as_record = to_dict  # deprecated alias, removed in 0.3

    def __str__(self) -> str:
        reached = f"{self.done:g}" if self.of is None else f"{self.done:g} of {self.of:g}"
        return f"{self.call.name}: {reached}" + (f", {self.text}" if self.text else "")


@immutable
class ToolCallFinished:
    """One call and what became of it."""

    call: ToolCall
    round: int
    result: str
    """The text that the model is given: the tool's result, or an ``error`` object as JSON."""
    outcome: Literal["ok", "error"]
    duration_ms: float
    error_kind: str | None = None
    """A stable word for the failure; ``None`` when the outcome is ``ok``."""
    return_direct: bool = False
    sandbox: bool = False
    """The result is a sandbox's invented data."""
    cached: bool = False
    """The result was made for an equal call; this one did not run."""
    repaired: bool = False
    """The arguments did not fit as the model wrote them, and were read as they were meant."""

    @property
    def response(self) -> ToolResponse:
        """The call's answer as a message part."""
        return ToolResponse(self.call.id, self.call.name, self.result, self.sandbox)

    def to_dict(self) -> dict[str, Any]:
        """The call as a plain object for traces and answers; arguments parsed where they are JSON."""
        record: dict[str, Any] = {
            "id": self.call.id,
            "name": self.call.name,
            "arguments": parse_arguments(self.call),
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
        return record | ({"error_kind": self.error_kind} if self.error_kind else {})

    as_record = to_dict  # deprecated alias, removed in 0.3


ToolCallEvent = ToolCallStarted | ToolCallProgress | ToolCallFinished

EmitToolCall = Callable[[ToolCallEvent], Coroutine[Any, Any, None]]
"""Tells whoever listens; awaited, so that a slow listener slows what is told."""


async def silent(event: object) -> None:
    """Tell nobody: the ``emit`` of a whole answer."""


def parse_arguments(call: ToolCall) -> Any:
    """A call's arguments as an object, or as the text that the model wrote when it is not JSON."""
    try:
        return from_json(call.arguments, allow_inf_nan=False) if call.arguments.strip() else {}
    except ValueError:
        return call.arguments
