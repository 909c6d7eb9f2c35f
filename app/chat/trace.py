"""What became of a turn: its tool calls, tokens and times, kept beside its messages and shown with them."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from app.chat.message_records import sendable
from app.chat_models.base import ChatResponse
from app.messages import ToolCall
from app.tool_calling.events import ToolCallFinished, parsed_arguments
from app.tool_calling.shortening import shortened

__all__ = ["shown_trace", "trace_of"]

_ROOM = 16_000
"""Characters of a turn's results together, and of its arguments together; the calls share them."""
_LEAST = 100
"""Characters that each has, however many calls there were."""
_NAME = 128


def trace_of(response: ChatResponse, provider: str, duration_ms: float) -> str:
    """What is kept of a turn beside its messages, as JSON: every call, results and arguments shortened to a bound.

    Arguments stay the model's own text: however deep they are nested, the trace can be read again.
    """
    turn = response.whole_turn()
    room = max(_ROOM // max(len(turn.executions), 1), _LEAST)
    calls = [_kept(each, room) for each in turn.executions]
    trace: dict[str, Any] = {"tool_calls": calls} if calls else {}
    trace |= {
        "usage": turn.usage.as_record(),
        "duration_ms": round(duration_ms, 3),
        "model": {"provider": turn.provider or provider, "name": sendable(turn.model[:_NAME])},
    }
    trace |= {"sandbox": True} if any(each.sandbox for each in turn.executions) else {}
    return to_json(trace, inf_nan_mode="strings").decode()


def shown_trace(text: str) -> dict[str, Any]:
    """The same as an answer in JSON has it: arguments as an object where they are one; nothing where none was kept."""
    try:
        trace: dict[str, Any] = dict(from_json(text)) if text else {}
        if "tool_calls" in trace:
            trace["tool_calls"] = [each | {"arguments": _parsed(each)} for each in trace["tool_calls"]]
    except (ValueError, LookupError, TypeError):  # somebody has written over it
        return {}
    return trace


def _parsed(record: Mapping[str, Any]) -> Any:
    return parsed_arguments(ToolCall(record["id"], record["name"], record["arguments"]))


def _kept(execution: ToolCallFinished, room: int) -> dict[str, Any]:
    call = execution.call
    return execution.as_record() | {
        "id": call.id[:_NAME],
        "name": call.name[:_NAME],
        "arguments": shortened(call.arguments, room),
        "result": sendable(shortened(execution.result, room)),
    }
