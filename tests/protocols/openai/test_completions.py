"""Complete answers: the request to the model, and the response to the client."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import message, whole
from tests.protocols.openai.asking import COMPLETIONS, ROLL, ask, asks, call, completion, played, says, user

SAYS = whole(message(content="Hello.", usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}))
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}')


async def test_an_answer_is_a_chat_completion() -> None:
    async with played([SAYS]) as (client, _):
        document = await completion(client, user("Hi"), model="toolchat-plain")
    assert document.pop("id").startswith("chatcmpl-")
    assert document.pop("created") > 1_700_000_000
    assert document == {
        "object": "chat.completion",
        "model": "toolchat-plain",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


async def test_calls_of_the_service_are_never_returned() -> None:
    async with played([asks(TIME), SAYS]) as (client, player):
        document = await completion(client, user("What time is it?"), model="toolchat-time")
    (choice,) = document["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello.", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert player.requests[1].body["messages"][-1]["role"] == "tool"


async def test_the_headers_are_those_that_clients_of_openai_read() -> None:
    async with played([SAYS]) as (client, _):
        answer = await client.post(
            COMPLETIONS, json={"model": "toolchat", "messages": [user("?")]}, headers={"X-Request-ID": "mine"}
        )
    assert answer.headers["x-request-id"] == "mine"
    assert int(answer.headers["openai-processing-ms"]) >= 0
    assert answer.headers["content-type"] == "application/json"
    assert "x-session-id" not in answer.headers


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "text/html"])
async def test_the_body_chooses_the_format_and_not_accept(accept: str, offline: httpx.AsyncClient) -> None:
    # The official client accepts JSON even if it requests a stream.
    body = {"model": "toolchat-plain", "messages": [user("hello")]}
    answer = await offline.post(COMPLETIONS, json=body, headers={"Accept": accept})
    assert answer.json()["object"] == "chat.completion"


OPTIONS: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["\n"],
    "frequency_penalty": 1,
    "presence_penalty": -1,
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
}


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        (OPTIONS, OPTIONS),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"stop": "END"}, {"stop": ["END"]}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"temperature": None, "stop": None, "tools": None, "tool_choice": None, "stream_options": None}, {}),
        ({"user": "u-1", "logit_bias": {}, "store": True, "metadata": {"a": 1}, "invented": [1]}, {}),
    ],
)
async def test_options_are_passed_on_and_unknown_fields_ignored(sent: dict[str, Any], given: dict[str, Any]) -> None:
    async with played([SAYS]) as (client, player):
        await completion(client, user("?"), **sent)
    body = player.requests[0].body
    assert {name: body[name] for name in body if name not in ("model", "messages", "tools")} == given


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        ("auto", True, None),
        ("none", False, None),
        ("required", True, "required"),
        (
            {"type": "function", "function": {"name": "getCityTimeFunction"}},
            True,
            {"type": "function", "function": {"name": "getCityTimeFunction"}},
        ),
    ],
)
async def test_tool_choice_applies_to_the_services_tools(choice: object, tools: bool, sent: object) -> None:
    async with played([SAYS]) as (client, player):
        await completion(client, user("?"), tool_choice=choice)
    body = player.requests[0].body
    assert ("tools" in body, body.get("tool_choice")) == (tools, sent)


async def test_a_required_tool_is_required_once() -> None:
    async with played([asks(TIME), SAYS]) as (client, player):
        await completion(client, user("?"), tool_choice="required")
    assert [each.body.get("tool_choice") for each in player.requests] == ["required", None]


@pytest.mark.parametrize(
    ("reason", "told"), [("stop", "stop"), ("length", "length"), ("content_filter",) * 2, ("pause_turn", "length")]
)
async def test_the_finish_reason_is_one_of_openai(reason: str, told: str) -> None:
    async with played([whole(message(reason, content="Hel"))]) as (client, _):
        document = await completion(client)
    assert document["choices"][0]["finish_reason"] == told


async def test_reasoning_is_returned_beside_the_content() -> None:
    async with played([whole(message(content="4", reasoning_content="2 and 2"))]) as (client, _):
        document = await completion(client)
    assert document["choices"][0]["message"]["reasoning_content"] == "2 and 2"


@pytest.mark.parametrize("is_agent", [False, True])
async def test_usage_is_that_of_all_model_calls_or_of_the_last_for_an_agent(is_agent: bool) -> None:
    # Codex and Cline take a request's usage as the size of their context, and compact it; LiteLLM as what it costs.
    tokens = [{"prompt_tokens": each, "completion_tokens": 2, "total_tokens": each + 2} for each in (7, 11)]
    asked = message("tool_calls", tool_calls=[TIME], usage=tokens[0])
    async with played([whole(asked), says("Noon.", usage=tokens[1])] * 2) as (client, _):
        chat = await completion(client, user("?"), tools=[ROLL] if is_agent else [])
        response = await ask(client, "?", tools=[{"type": "custom", "name": "patch"}] if is_agent else [])
    prompt, total = (11, 13) if is_agent else (18, 22)
    assert (chat["usage"]["prompt_tokens"], chat["usage"]["total_tokens"]) == (prompt, total)
    assert (response["usage"]["input_tokens"], response["usage"]["total_tokens"]) == (prompt, total)
