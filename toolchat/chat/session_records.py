"""The stored records of a session: messages and turns as JSON objects, and the summary of each turn.

Stored sessions and paused turns outlive the process that wrote them. A field that an older version may ignore can be
added; any other change of the format needs another :data:`RECORD_VERSION`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    sendable,
)
from toolchat.models.base import ChatResponse
from toolchat.state.base import RECORD_VERSION, check_version
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments
from toolchat.tool_calling.results import shorten


def dump_turn(messages: Sequence[Message], summary: str, identifier: str = "") -> list[dict[str, Any]]:
    """A turn as JSON objects: its messages, the last of them with the record's version, the turn's summary and id."""
    records = to_records(messages)
    records[-1]["version"] = RECORD_VERSION
    if summary:
        # As a string within the answer's record: every request of the session reads and writes it, and only a reader
        # of the session needs it parsed.
        records[-1]["trace"] = summary
    if identifier:
        records[-1]["turn_id"] = identifier
    return records


def load_turn(records: Sequence[Mapping[str, Any]]) -> tuple[tuple[Message, ...], str]:
    """The messages and the summary of a turn; ``LookupError`` or ``TypeError`` if the records have another format."""
    check_version(records[-1]["version"])
    messages, summary = from_records(records), records[-1].get("trace", "")
    if not isinstance(summary, str):
        raise TypeError(summary)
    return messages, summary


def to_records(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as JSON objects; a lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    return list(map(_record, messages))


def from_records(records: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages from :func:`to_records`."""
    return tuple(map(_message, records))


def _record(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolResponseMessage):
        return {"role": "tool", "responses": list(map(_response_record, message.responses))}
    record: dict[str, Any] = {"role": message.role, "text": sendable(message.text)}
    if isinstance(message, AssistantMessage):
        record |= {"tool_calls": list(map(_call_record, message.tool_calls))} if message.tool_calls else {}
        record |= {"extra": dict(message.extra)} if message.extra else {}
    elif isinstance(message, UserMessage) and message.images:
        record["images"] = list(message.images)
    return record


def _call_record(call: ToolCall) -> dict[str, Any]:
    record: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return record | ({"extra": dict(call.extra)} if call.extra else {}) | ({"repaired": True} if call.repaired else {})


def _response_record(response: ToolResponse) -> dict[str, Any]:
    record: dict[str, Any] = {"id": response.id, "name": response.name, "text": sendable(response.text)}
    record |= {"sandbox": True} if response.sandbox else {}
    return record | ({"images": list(response.images)} if response.images else {})


def _message(record: Mapping[str, Any]) -> Message:
    match record["role"]:
        case "system":
            return SystemMessage(_text(record))
        case "user":
            return UserMessage(_text(record), _images(record))
        case "assistant":
            return AssistantMessage(_text(record), tuple(map(_call, record.get("tool_calls", ()))), _extra(record))
        case "tool":
            return ToolResponseMessage(tuple(map(_response, record["responses"])))
        case role:
            raise KeyError(role)


def _call(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(_text(call, "id"), _text(call, "name"), _text(call, "arguments"), _extra(call), "repaired" in call)


def _response(record: Mapping[str, Any]) -> ToolResponse:
    sandbox = record.get("sandbox", False) is True
    return ToolResponse(_text(record, "id"), _text(record, "name"), _text(record), sandbox, _images(record))


def _text(record: Mapping[str, Any], name: str = "text") -> str:
    # Checked here, since a provider would reject a request with anything else.
    if not isinstance(text := record[name], str):
        raise TypeError(name)
    return text


def _images(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple([_text({"image": each}, "image") for each in record.get("images", ())])


def _extra(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(extra := record.get("extra", {}), dict):
        raise TypeError("extra")
    return extra


_SUMMARY_CHARS = 16_000
"""Bound of a turn's results together, and of its arguments together, in characters; the calls share it."""
_LEAST_CHARS = 100
"""The share of each call, however many there were."""
_NAME_CHARS = 128


def turn_summary(response: ChatResponse, provider: str, duration_ms: float) -> str:
    """The summary of a turn as JSON: tool calls, usage, duration and model; results and arguments are truncated.

    Arguments stay the model's own text: parsed, they could be nested too deeply for the summary to be read again.
    """
    turn = response.whole_turn()
    share = max(_SUMMARY_CHARS // max(len(turn.executions), 1), _LEAST_CHARS)
    calls = [_call_summary(each, share) for each in turn.executions]
    summary: dict[str, Any] = {"tool_calls": calls} if calls else {}
    summary |= {
        "usage": turn.usage.to_dict(),
        "duration_ms": round(duration_ms, 3),
        "model": {"provider": turn.provider or provider, "name": sendable(turn.model[:_NAME_CHARS])},
    }
    summary |= {"sandbox": True} if any(each.sandbox for each in turn.executions) else {}
    return to_json(summary, inf_nan_mode="strings").decode()


def _call_summary(execution: ToolCallFinished, chars: int) -> dict[str, Any]:
    call, data = execution.call, execution.data
    shown = execution if data is None or len(to_json(data)) <= chars else replace(execution, data=None)
    return shown.to_record() | {
        "id": call.id[:_NAME_CHARS],
        "name": call.name[:_NAME_CHARS],
        "arguments": shorten(call.arguments, chars),
        "result": sendable(shorten(execution.result, chars)),
    }


def parse_turn_summary(text: str) -> dict[str, Any]:
    """A turn's summary as an object, with arguments parsed if they are JSON; empty for an unreadable one."""
    try:
        summary: dict[str, Any] = dict(from_json(text)) if text else {}
        for each in summary.get("tool_calls", ()):
            each["arguments"] = parse_arguments(ToolCall(each["id"], each["name"], each["arguments"]))
    except (ValueError, LookupError, TypeError):  # another program has overwritten it
        return {}
    return summary
