"""Messages as plain records: how a conversation, or a turn that waits, is kept, and shown to its user."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)

__all__ = ["from_records", "sendable", "to_records"]


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
