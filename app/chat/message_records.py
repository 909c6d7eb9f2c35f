"""Messages as plain records: how a conversation is kept, and shown to its user."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, UserMessage

__all__ = ["from_records", "to_records"]


def to_records(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Questions, answers and tool rounds as JSON objects; instructions are the service's own and are left out.

    A lone surrogate, which UTF-8 cannot write, becomes a question mark; reasoning is left out.
    """
    return [record for record in map(_record, messages) if record]


def from_records(records: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages that :func:`to_records` made them of.

    Raises:
        KeyError, TypeError: the records are none of ours.
    """
    return tuple(map(_message, records))


def _record(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text):
            return {"role": "user", "text": _sendable(text)}
        case AssistantMessage(text, calls):
            record = {"role": "assistant", "text": _sendable(text)}
            return record | ({"tool_calls": list(map(_call_record, calls))} if calls else {})
        case ToolResponseMessage(responses):
            return {"role": "tool", "responses": list(map(_response_record, responses))}
        case _:
            return {}


def _call_record(call: ToolCall) -> dict[str, Any]:
    record: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return record | ({"extra": dict(call.extra)} if call.extra else {})


def _response_record(response: ToolResponse) -> dict[str, Any]:
    return {"id": response.id, "name": response.name, "text": _sendable(response.text)}


def _sendable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _message(record: Mapping[str, Any]) -> Message:
    match record["role"]:
        case "user":
            return UserMessage(record["text"])
        case "assistant":
            return AssistantMessage(record["text"], tuple(ToolCall(**call) for call in record.get("tool_calls", ())))
        case "tool":
            return ToolResponseMessage(tuple(ToolResponse(**response) for response in record["responses"]))
        case role:
            raise KeyError(role)
