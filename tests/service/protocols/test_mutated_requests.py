"""Requests of every wire with random faults: refused or answered, never an error of the service."""

import asyncio
import json
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.serving import service

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
FUNCTION = {"name": "roll", "description": "Roll a die", "parameters": {"type": "object", "properties": {}}}
CALLED = {"id": "c", "type": "function", "function": {"name": "roll", "arguments": "{}"}}
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "toolchat",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALLED]},
            {"role": "tool", "tool_call_id": "c", "content": "4"},
            {"role": "user", "content": "What time is it in Tokyo?"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
    },
    "/v1/responses": {
        "model": "toolchat",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c", "name": "roll", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "d", "name": "run", "input": "ls"},
            {"type": "function_call_output", "call_id": "c", "output": "4"},
            {"type": "custom_tool_call_output", "call_id": "d", "output": "a"},
            {"type": "web_search_call", "id": "w"},
            {"role": "user", "content": "What time is it in Tokyo?"},
        ],
        "tools": [
            {"type": "function", **FUNCTION},
            {"type": "namespace", "name": "mcp__wiki", "tools": [{"type": "function", **FUNCTION}]},
            {"type": "custom", "name": "run"},
            {"type": "web_search"},
        ],
        "store": False,
    },
    "/v1/conversations": {
        "items": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c", "name": "roll", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "4"},
        ],
        "metadata": {"a": "b"},
    },
    "/v1/messages": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be short."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, IMAGE]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "roll", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "4"}]},
            {"role": "user", "content": "What time is it in Tokyo?"},
        ],
        "tools": [{"name": "roll", "description": "Roll a die", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
    },
    "/ai-sdk/chat": {
        "messages": [
            {"id": "1", "role": "user", "parts": [{"type": "text", "text": "What time is it in Tokyo?"}]},
        ],
        "tools": {"roll": {"description": "Roll a die", "parameters": {"type": "object"}}},
        "system": "Be short.",
    },
    "/ag-ui": {
        "threadId": "t",
        "runId": "r",
        "state": {},
        "messages": [
            {"id": "1", "role": "user", "content": "hi"},
            {"id": "2", "role": "assistant", "content": "", "toolCalls": [CALLED]},
            {"id": "3", "role": "tool", "content": "4", "toolCallId": "c"},
            {"id": "4", "role": "user", "content": "What time is it in Tokyo?"},
        ],
        "tools": [FUNCTION],
        "context": [{"description": "day", "value": "Friday"}],
        "forwardedProps": {},
    },
}
FAULTS: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", "x", "\0", "\ud800", "a" * 500, [], {}, [[]], {"a": {}}, {"type": "text"}
]  # fmt: skip
MUTATIONS = 200


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object within a body, with a key of it."""
    for key, each in list(part.items() if isinstance(part, dict) else enumerate(part)):
        yield part, key
        if isinstance(each, dict | list):
            yield from places(each)


def mutated(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    body = deepcopy(body)
    for _ in range(chance.randint(1, 3)):
        if not (found := list(places(body))):
            break
        part, key = chance.choice(found)
        if chance.random() < 0.5:
            part[key] = deepcopy(chance.choice(FAULTS))
        elif isinstance(part, list) and chance.random() < 0.5:
            part.insert(chance.randint(0, len(part)), deepcopy(part[key]))
        else:
            del part[key]
    return body


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_request_is_answered_and_no_mutated_one_is_an_error_of_the_service(path: str) -> None:
    chance = random.Random(path)
    async with service(CHAT_PROVIDER="offline") as client:
        assert (await client.post(path, json=REQUESTS[path])).status_code == 200
        for _ in range(MUTATIONS):
            body = json.dumps(mutated(REQUESTS[path], chance))
            headers = {"Content-Type": "application/json"}
            answer = await asyncio.wait_for(client.post(path, content=body, headers=headers), 30)
            assert answer.status_code < 500, body
