"""Message content as JSON span attributes, in the format of OpenTelemetry's conventions for generative AI (opt-in)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, Message, SystemMessage, ToolResponseMessage, UserMessage, sendable

LINK_FRAGMENT = "#token="
"""Begins the fragment of an approval link, which browsers do not send: no server's log has the token."""
_TOKEN = re.compile(f"(?<={LINK_FRAGMENT})[A-Za-z0-9_-]+")
_MAX_MESSAGES, _MAX_CHARS = 40, 8000
_ROLES = {UserMessage: "user", AssistantMessage: "assistant", ToolResponseMessage: "tool"}


def instructions(messages: Sequence[Message]) -> str:
    """The system messages; empty if there are none."""
    parts = [_text(each.text) for each in messages if isinstance(each, SystemMessage)]
    return _json(parts) if parts else ""


def conversation(messages: Sequence[Message]) -> str:
    """The newest messages of a conversation, without system messages."""
    messages = [each for each in messages if not isinstance(each, SystemMessage)]
    return _json([{"role": _ROLES[type(each)], "parts": _parts(each)} for each in messages[-_MAX_MESSAGES:]])


def answer(message: AssistantMessage, finish_reason: str) -> str:
    """The answer."""
    return _json([{"role": "assistant", "parts": _parts(message), "finish_reason": finish_reason}])


def short(text: str) -> str:
    """A text that can be sent: truncated, valid UTF-8, and without tokens."""
    text = without_tokens(text)
    text = text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"
    return sendable(text)


def without_tokens(text: str) -> str:
    """A text without the tokens in its approval links, with which any reader could approve the call."""
    return _TOKEN.sub("...", text) if LINK_FRAGMENT in text else text


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    if isinstance(message, ToolResponseMessage):
        return [{"type": "tool_call_response", "id": each.id, "result": short(each.text)} for each in message.responses]
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    requested = [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": short(each.arguments)} for each in calls
    ]
    return [*([_text(message.text)] if message.text else []), *requested]


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "content": short(text)}


def _json(value: Any) -> str:
    return to_json(value).decode()
