"""Requests in Anthropic's format to a service with a played model, and the events of its streams.

The format is that of the official client, anthropic 2.14.0 for Python: ``types/message.py``, ``types/stop_reason.py``,
``types/raw_message_stream_event.py`` and ``types/beta/beta_mcp_tool_use_block.py``.
"""

from typing import Any

import httpx
from pydantic_core import from_json

__all__ = ["MESSAGES", "ROLL", "error_of", "events_of", "image", "message", "result", "said", "sent", "text", "user"]

MESSAGES = "/v1/messages"
ROLL = {
    "name": "roll",
    "description": "Roll a die",
    "input_schema": {"type": "object", "properties": {"sides": {"type": "integer"}}},
}
"""A tool of the client."""


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*content: Any) -> dict[str, Any]:
    """A message of the user: one text, or blocks."""
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def result(identifier: str, content: Any = "4", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **fields}


def image(**source: str) -> dict[str, Any]:
    return {"type": "image", "source": source or {"type": "base64", "media_type": "image/png", "data": "AA=="}}


async def sent(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {"model": "toolchat", "max_tokens": 64, "messages": messages or [user("?")], **fields}
    return await client.post(MESSAGES, json=body)


async def message(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Request a message; it must succeed."""
    answer = await sent(client, *messages, **fields)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def events_of(streamed: str) -> list[dict[str, Any]]:
    """The events of a stream, each named like its type."""
    pairs = [each.split("\n") for each in streamed.split("\n\n") if each]
    events: list[dict[str, Any]] = [from_json(data.removeprefix("data: ")) for _, data in pairs]
    assert [name.removeprefix("event: ") for name, _ in pairs] == [each["type"] for each in events]
    return events


def error_of(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, type and message of an error in Anthropic's format."""
    document = answer.json()
    assert (list(document), document["type"]) == (["type", "error", "request_id"], "error")
    assert document["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
    assert list(document["error"]) == ["type", "message"]
    return answer.status_code, document["error"]["type"], document["error"]["message"]
