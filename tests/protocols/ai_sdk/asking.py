"""Requests in the format of ``useChat``, and the parts of the response."""

from typing import Any

import httpx
from pydantic_core import from_json

from tests.players.openai_player import Answer, delta, finish, sse

__all__ = ["CHAT", "SHIP_FOLDERS", "asks", "ended", "parts_of", "said", "says", "sent", "text", "user"]

CHAT = "/ai-sdk/chat"
SHIP_FOLDERS = "tests.protocols.openai.folders"
"""Tools, one of which requires approval."""


def user(*texts: str) -> dict[str, Any]:
    return {"id": "m-1", "role": "user", "parts": [text(each) for each in texts]}


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    """An assistant message, as a page stores it."""
    return {"id": "m-2", "role": "assistant", "parts": [{"type": "step-start"}, *parts]}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content, "state": "done"}


def ended(state: str = "output-available", **fields: Any) -> dict[str, Any]:
    """A finished call, as a page stores it."""
    return {"type": "dynamic-tool", "toolName": "look", "toolCallId": "call_1", "state": state, "input": {}, **fields}


def asks(*calls: dict[str, Any], **fields: Any) -> Answer:
    """A response of the played model with tool calls."""
    numbered = [{"index": number, **call} for number, call in enumerate(calls)]
    told = [delta(**fields)] if fields else []
    return sse(*told, delta(tool_calls=numbered), finish("tool_calls"))


def says(*pieces: str) -> Answer:
    return sse(*(delta(content=piece) for piece in pieces), finish("stop"))


async def sent(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    """Send messages as the page's transport does."""
    headers = fields.pop("headers", {})
    body = {"id": "c-1", "messages": messages, "trigger": "submit-message", **fields}
    return await client.post(CHAT, json=body, headers=headers)


def parts_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The parts of a stream, which must end as one."""
    assert answer.status_code == 200, answer.text
    *blocks, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [from_json(block.removeprefix("data: ")) for block in blocks if not block.startswith(":")]
