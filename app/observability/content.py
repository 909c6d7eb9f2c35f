"""What was said, as JSON that spans hold where that is wanted, in the form of the conventions for generative AI."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, Message, SystemMessage, ToolResponseMessage, UserMessage

__all__ = ["answer", "conversation", "instructions", "short"]

_MOST_MESSAGES, _MOST_CHARS = 40, 8000
_ROLES = {UserMessage: "user", AssistantMessage: "assistant", ToolResponseMessage: "tool"}


def instructions(messages: Sequence[Message]) -> str:
    """What stands above a conversation; empty where nothing does."""
    parts = [_text(each.text) for each in messages if isinstance(each, SystemMessage)]
    return _json(parts) if parts else ""


def conversation(messages: Sequence[Message]) -> str:
    """The newest messages of a conversation."""
    said = [each for each in messages if not isinstance(each, SystemMessage)]
    return _json([{"role": _ROLES[type(each)], "parts": _parts(each)} for each in said[-_MOST_MESSAGES:]])


def answer(message: AssistantMessage, finish_reason: str) -> str:
    """What came of it."""
    return _json([{"role": "assistant", "parts": _parts(message), "finish_reason": finish_reason}])


def short(text: str) -> str:
    """The beginning of a text, which can be sent."""
    text = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()  # a lone surrogate is no UTF-8


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    if isinstance(message, ToolResponseMessage):
        return [{"type": "tool_call_response", "id": each.id, "result": short(each.text)} for each in message.responses]
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    told = [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": short(each.arguments)} for each in calls
    ]
    return [*([_text(message.text)] if message.text else []), *told]


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "content": short(text)}


def _json(value: Any) -> str:
    return to_json(value).decode()
