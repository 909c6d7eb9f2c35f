"""Messages as plain records: how a conversation, or a turn that waits, is kept, and shown to its user."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments
from toolchat.tool_calling.results import shorten

__all__ = ["from_records", "parse_turn_summary", "sendable", "to_records", "turn_summary"]


def to_records(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as JSON objects; a lone surrogate, which UTF-8 cannot write, becomes a question mark."""
    return list(map(_record, messages))


def from_records(records: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages that :func:`to_records` made them of.

    Raises:
        KeyError, TypeError: the records are none of ours.
    """
    return tuple(map(_message, records))


def _record(message: Message) -> dict[str, Any]:
    match message:
        case SystemMessage(text):
            return {"role": "system", "text": sendable(text)}
        case UserMessage(text):
            return {"role": "user", "text": sendable(text)}
        case AssistantMessage(text, calls, extra):
            record: dict[str, Any] = {"role": "assistant", "text": sendable(text)}
            record |= {"tool_calls": list(map(_call_record, calls))} if calls else {}
            return record | ({"extra": dict(extra)} if extra else {})
        case ToolResponseMessage(responses):
            return {"role": "tool", "responses": list(map(_response_record, responses))}


def _call_record(call: ToolCall) -> dict[str, Any]:
    record: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return record | ({"extra": dict(call.extra)} if call.extra else {})


def _response_record(response: ToolResponse) -> dict[str, Any]:
    record: dict[str, Any] = {"id": response.id, "name": response.name, "text": sendable(response.text)}
    return record | ({"sandbox": True} if response.sandbox else {})


def sendable(text: str) -> str:
    """A text that UTF-8 can write."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _message(record: Mapping[str, Any]) -> Message:
    match record["role"]:
        case "system":
            return SystemMessage(_text(record))
        case "user":
            return UserMessage(_text(record))
        case "assistant":
            return AssistantMessage(_text(record), tuple(map(_call, record.get("tool_calls", ()))), _extra(record))
        case "tool":
            return ToolResponseMessage(tuple(map(_response, record["responses"])))
        case role:
            raise KeyError(role)


def _call(record: Mapping[str, Any]) -> ToolCall:
    return ToolCall(_text(record, "id"), _text(record, "name"), _text(record, "arguments"), _extra(record))


def _response(record: Mapping[str, Any]) -> ToolResponse:
    sandbox = record.get("sandbox", False) is True
    return ToolResponse(_text(record, "id"), _text(record, "name"), _text(record), sandbox)


def _text(record: Mapping[str, Any], name: str = "text") -> str:
    """What has to be a text; it is told to a provider, which would take nothing else for one."""
    if not isinstance(text := record[name], str):
        raise TypeError(name)
    return text


def _extra(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(extra := record.get("extra", {}), dict):
        raise TypeError("extra")
    return extra


_ROOM = 16_000
"""Characters of a turn's results together, and of its arguments together; the calls share them."""
_LEAST = 100
"""Characters that each has, however many calls there were."""
_NAME = 128


def turn_summary(response: ChatResponse, provider: str, duration_ms: float) -> str:
    """What is kept of a turn beside its messages, as JSON: every call, results and arguments shortened to a bound.

    Arguments stay the model's own text: however deep they are nested, the trace can be read again.
    """
    turn = response.whole_turn()
    room = max(_ROOM // max(len(turn.executions), 1), _LEAST)
    calls = [_kept(each, room) for each in turn.executions]
    trace: dict[str, Any] = {"tool_calls": calls} if calls else {}
    trace |= {
        "usage": turn.usage.to_dict(),
        "duration_ms": round(duration_ms, 3),
        "model": {"provider": turn.provider or provider, "name": sendable(turn.model[:_NAME])},
    }
    trace |= {"sandbox": True} if any(each.sandbox for each in turn.executions) else {}
    return to_json(trace, inf_nan_mode="strings").decode()


def parse_turn_summary(text: str) -> dict[str, Any]:
    """The same as an answer in JSON has it: arguments as an object where they are one; nothing where none was kept."""
    try:
        trace: dict[str, Any] = dict(from_json(text)) if text else {}
        if "tool_calls" in trace:
            trace["tool_calls"] = [each | {"arguments": _parsed(each)} for each in trace["tool_calls"]]
    except (ValueError, LookupError, TypeError):  # somebody has written over it
        return {}
    return trace


def _parsed(record: Mapping[str, Any]) -> Any:
    return parse_arguments(ToolCall(record["id"], record["name"], record["arguments"]))


def _kept(execution: ToolCallFinished, room: int) -> dict[str, Any]:
    call = execution.call
    return execution.to_dict() | {
        "id": call.id[:_NAME],
        "name": call.name[:_NAME],
        "arguments": shorten(call.arguments, room),
        "result": sendable(shorten(execution.result, room)),
    }
