"""Hostile requests: the response is a completion, or an error that blames the client."""

from typing import Any

import httpx
import pytest

from tests.protocols.openai.asking import COMPLETIONS, ROLL, call, result, user


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"properties": {"a": value}} if depth % 2 else {"a": [value]}
    return value


def tool_of(parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "roll", "parameters": parameters}}


HOSTILE: list[dict[str, Any]] = [
    {"response_format": nested(400)},
    {"tools": [tool_of(nested(98))]},
    {"tools": [tool_of(nested(400))]},
    {"tools": [tool_of({"type": "string"})]},
    {"tools": [tool_of({"$ref": "#"})]},
    {"tools": [tool_of({"properties": {"a": {"type": ["x", None], "enum": [], "default": 10**400}}})]},
    {"tools": [ROLL], "tool_choice": {"type": "function", "function": {"name": "nobody"}}},
    {"seed": 10**30},
    {"max_tokens": 10**400},
    {"stop": [""] * 16},
    {"messages": [user("\u0000")]},
    {"messages": [user("x" * 1_000_000)]},
    {"messages": [user("?")] * 4096},
    {"messages": [{"role": "assistant", "content": "?"}]},
    {"messages": [{"role": "system", "content": None}]},
    {"messages": [{"role": "user", "content": []}]},
    {"messages": [{"role": "user", "content": "?", "tool_calls": [call("roll")]}]},
    {
        "messages": [
            user("?"),
            {"role": "assistant", "tool_calls": [call("roll", "}{", f"call_kept_{'f' * 24}")]},
            result(f"call_kept_{'f' * 24}", "4"),
        ],
        "tools": [ROLL],
    },
    {"model": "toolchat-../../etc"},
    {"model": "toolchat-" + "x" * 100_000},
    {"stream_options": {"include_usage": "perhaps"}},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_hostile_requests_never_break_the_service(number: int, stream: bool, offline: httpx.AsyncClient) -> None:
    body = {"model": "toolchat", "messages": [user("What time is it?")], "stream": stream, **HOSTILE[number]}
    answer = await offline.post(COMPLETIONS, json=body)
    if answer.status_code == 200:
        assert "chat.completion" in answer.text
        assert '"error"' not in answer.text
    else:
        assert 400 <= answer.status_code < 500
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert len(answer.text) < 2000
