"""Errors in OpenAI's format with OpenAI's status codes, wherever they arise."""

import json
from typing import Any

import httpx
import pytest

from tests.players.openai_player import body, delta, sse, whole
from tests.protocols.openai.asking import COMPLETIONS, ROLL, call, error_of, played, result, streamed, user
from toolchat.service.api import body_limits as bodies
from toolchat.service.protocols.openai.routes import OPENAI

AS_JSON = {"Content-Type": "application/json"}
ROLLED = {"role": "assistant", "content": None, "tool_calls": [call("roll")]}
FUNCTION: dict[str, Any] = ROLL["function"]  # type: ignore[assignment]


def image() -> dict[str, Any]:
    url = {"url": "data:image/bmp;base64,AA=="}
    return {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "image_url", "image_url": url}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "function", "content": "?"}]}, "messages[0].role"),
        ({"messages": [user("a"), {"role": "user", "content": 5}]}, "messages[1].content"),
        ({"messages": [image()]}, "messages[0].content[1]"),
        ({"messages": [user("a"), user(" ")]}, "messages[1].content"),
        ({"messages": [user("a\0b")]}, "messages[0].content"),
        ({"messages": [user("a"), image(), {"role": "system", "content": "Be brief."}]}, "messages[1].content[1]"),
        ({"messages": [user("?"), result("call_1", "4")]}, "messages[1].tool_call_id"),
        ({"messages": [user("?"), ROLLED]}, "messages"),
        ({"messages": [user("?"), ROLLED, user("and?")]}, "messages"),
        ({"messages": [user("?"), ROLLED, result("call_1", "4"), result("call_1", "4")]}, "messages[3].tool_call_id"),
        ({"messages": [user("?"), ROLLED, {"role": "tool", "content": "4"}]}, "messages[2].tool_call_id"),
        *(
            ({"response_format": each}, "response_format")
            for each in (
                {},
                {"type": "xml"},
                {"type": "json_schema"},
                {"type": "json_schema", "json_schema": {"name": "a"}},
                {"type": "json_schema", "json_schema": "a"},
                {"type": "json_schema", "name": "a", "schema": {"type": "object"}},
            )
        ),
        ({"temperature": 3}, "temperature"),
        ({"n": 2}, "n"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "nobody"}}}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": "nobody"}}, "tool_choice"),
        ({"tool_choice": ["auto"]}, "tool_choice"),
        ({"modalities": ["text", "audio"]}, "modalities[1]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": FUNCTION | {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [ROLL, ROLL]}, "tools"),
        ({"tools": [ROLL] * 129}, "tools"),
        ({"tools": [{"type": "function", "function": FUNCTION | {"description": "x" * 300_000}}]}, "tools"),
    ],
)
async def test_an_invalid_request_gets_400_with_the_field(
    fields: dict[str, Any], param: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")], **fields})
    assert error_of(answer) == (400, "invalid_value", param)
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        *((each, "not valid JSON") for each in (b"", b"{", b"\xff", b"[" * 100_000)),
        (b'{"model":"\\ud800","messages":[{"role":"user","content":"?"}]}', "a lone surrogate"),
    ],
)
async def test_invalid_json_gets_400(sent: bytes, message: str, offline: httpx.AsyncClient) -> None:
    answer = await offline.post(COMPLETIONS, content=sent, headers=AS_JSON)
    assert error_of(answer)[:2] == (400, "invalid_request")
    assert message in answer.json()["error"]["message"]


async def test_an_unknown_model_gets_404(offline: httpx.AsyncClient) -> None:
    answer = await offline.post(COMPLETIONS, json={"model": "gpt-4o", "messages": [user("?")]})
    assert error_of(answer) == (404, "model_not_found", "model")


ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [ROLL]}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"tool_choice": ALLOWED},
            "tool_choice: allowed_tools is not supported; send only tools that may be called, or name one",
        ),
        ({"functions": [FUNCTION]}, "functions: not supported; use tools"),
        ({"function_call": "auto"}, "function_call: not supported; use tool_choice"),
        ({"logprobs": True, "top_logprobs": 2}, "logprobs: not supported; providers do not agree on them"),
        ({"audio": {"voice": "alloy"}}, "audio: not supported; the models answer with text only"),
        # Without options a search is still requested.
        (
            {"web_search_options": {}},
            "web_search_options: not supported; add a tool that searches the web to the service",
        ),
        (
            {"prediction": {"type": "content", "content": "a"}},
            "prediction: not supported; the models get no predicted text",
        ),
    ],
)
async def test_what_a_client_relies_on_is_refused_with_a_remedy(
    fields: dict[str, Any], message: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")], **fields})
    assert error_of(answer) == (400, "invalid_value", next(iter(fields)))
    assert answer.json()["error"]["message"] == message


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"stop": ["."], "seed": 0}, "stop, seed"),
        ({"frequency_penalty": 1, "presence_penalty": -1}, "frequency_penalty, presence_penalty"),
        ({"stop": [], "frequency_penalty": 0, "presence_penalty": 0}, ""),
    ],
)
async def test_options_that_the_providers_api_does_not_have_are_refused_if_they_change_anything(
    fields: dict[str, Any], names: str
) -> None:
    async with played([body(b"{}", 429)], OPENAI_API="responses") as (client, player):
        answer = await client.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")], **fields})
    if not names:
        assert [each.path for each in player.requests] == ["/v1/responses"]
        return
    assert (error_of(answer)[:2], player.requests) == ((400, "invalid_request"), [])
    assert answer.json()["error"]["message"].startswith(f"{names}: the chat provider's Responses API")


async def test_fields_that_say_nothing_or_change_no_answer_are_accepted(offline: httpx.AsyncClient) -> None:
    nothing: dict[str, Any] = {
        "functions": [],
        "function_call": None,
        "logprobs": False,
        "top_logprobs": 0,
        "audio": None,
        "prediction": None,
    }
    ignored = {"modalities": ["text"], "user": "ada", "store": True, "metadata": {"a": "b"}, "logit_bias": {"1": 1}}
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")]} | nothing | ignored)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", COMPLETIONS, 405, "method not allowed"),
        ("POST", "/v1/audio/speech", 404, "not found"),
        ("GET", "/v1/responses", 405, "method not allowed"),
        ("GET", "/v1/responses/resp_1", 404, "no response is stored"),
        ("POST", "/v1/completions", 404, "set the client to chat completions"),
        ("POST", "/v1/embeddings", 404, "another server"),
        ("GET", "/v1/conversations/conv_1", 404, "no conversation is stored"),
        ("GET", "/v1/conversations/conv_1/items/msg_1", 404, "no conversation is stored"),
        ("GET", "/v1/conversations", 405, "method not allowed"),
        ("GET", "/v1/conversations/conv_1/other", 404, "not found"),
        ("POST", "/v1/responses/input_tokens", 404, "count the tokens"),
        ("POST", "/v1/responses/compact", 404, "summarize"),
    ],
)
async def test_unknown_routes_and_methods_are_reported_in_openais_format(
    method: str, path: str, status: int, words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.request(method, path)
    assert error_of(answer)[0] == status
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("upstream", "status", "code", "again"),
    [
        (body(b"{}", 401), 503, "provider_auth", "false"),
        (body(b"{}", 429), 429, "rate_limit_exceeded", "true"),
        (body(b"{}", 500), 502, "upstream_unavailable", "true"),
        (
            whole({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400),
            400,
            "context_length_exceeded",
            "false",
        ),
    ],
)
async def test_an_error_before_the_first_byte_has_its_status(
    upstream: Any, status: int, code: str, again: str, stream: bool
) -> None:
    async with played([upstream]) as (client, _):
        answer = await streamed(client, stream=stream)
    assert error_of(answer) == (status, code, None)
    assert answer.headers["x-should-retry"] == again
    assert answer.headers["content-type"] == "application/json"


async def test_an_overloaded_service_sends_503_and_retry_after() -> None:
    waiting = [sse(delta(content="Hel"), done=False, ending="hang")]
    async with played(waiting, MAX_QUESTIONS="1") as (client, _):
        first = {"model": "toolchat", "messages": [user("?")], "stream": True}
        async with client.stream("POST", COMPLETIONS, json=first):
            answer = await streamed(client, stream=False)
    assert error_of(answer) == (503, "overloaded", None)
    assert answer.headers["retry-after"] == "1"


async def test_a_long_conversation_is_accepted_and_a_longer_one_rejected() -> None:
    long = "字" * 200_000
    async with played([whole({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})]) as (
        client,
        player,
    ):
        answer = await streamed(client, user(long), stream=False)
        assert answer.status_code == 200
        assert player.requests[0].body["messages"][-1]["content"] == long
        answer = await client.post(COMPLETIONS, content=b" " * (OPENAI.max_body_bytes + 1))
        assert error_of(answer) == (413, "too_large", None)


async def test_the_larger_limit_applies_to_this_protocol_only(offline: httpx.AsyncClient) -> None:
    answer = await offline.post("/approvals/x", content=json.dumps({"a": "x" * 400_000}))
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


async def test_all_large_bodies_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_BODIES", 100_000)
    async with played([]) as (client, _):
        for _ in range(2):  # the place of a refused one is free again
            assert error_of(await client.post(COMPLETIONS, content=b" " * 200_000))[:2] == (503, "overloaded")
        assert error_of(await client.post(COMPLETIONS, content=b" " * 90_000, headers=AS_JSON))[0] == 400
