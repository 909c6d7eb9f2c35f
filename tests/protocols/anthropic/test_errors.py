"""Errors in Anthropic's format, and the requests that lead to them."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.players.openai_player import body, whole
from tests.protocols.anthropic.asking import MESSAGES, error_of, image, message, result, said, sent, user
from tests.protocols.openai.asking import played, says
from tests.serving import service
from toolchat.service.access.keys import digest_of

CALLED = said({"type": "tool_use", "id": "a", "name": "roll", "input": {}})
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
TOO_LONG = whole({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)


@pytest.fixture(scope="module")
async def offline() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service() as client:
        yield client


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages: "),
        ({"messages": [user(" ")]}, "messages[0].content: must not be blank"),
        ({"messages": [{"role": "tool", "content": "?"}]}, "messages[0].role: "),
        ({"messages": [user({"type": "text"})]}, "messages[0].content[0]: text is missing"),
        ({"messages": [user({"type": "tool_result", "content": "4"})]}, "tool_use_id is missing"),
        ({"messages": [user(PDF)]}, "messages[0].content[0]: document is not supported"),
        ({"messages": [user(image(type="file", file_id="f"))]}, "messages[0].content[0]: image is not supported"),
        ({"messages": [CALLED, user("and?")]}, "tool calls without a result: a"),
        ({"messages": [user(result("b"))]}, "messages[0]: must answer a call of the assistant (b)"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]: bash_20250124 is not supported"),
        ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools[0].name: "),
        ({"tool_choice": {"type": "tool", "name": "none_such"}}, "tool_choice: no tool has the name none_such"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice: type must be auto, any, none, or tool with a name"),
        ({"tool_choice": {"type": ["any"]}}, "tool_choice: type must be auto, any, none, or tool with a name"),
        ({"max_tokens": 0}, "max_tokens: "),
        ({"mcp_servers": [{"type": "url", "url": "https://a.example"}]}, "mcp_servers: not supported; add the servers"),
    ],
)
async def test_a_faulty_request_names_the_field(fields: dict[str, Any], words: str, offline: httpx.AsyncClient) -> None:
    answer = await offline.post(MESSAGES, json={"model": "toolchat", "max_tokens": 9, "messages": [user("?")]} | fields)
    status, kind, told = error_of(answer)
    assert (status, kind) == (400, "invalid_request_error")
    assert words in told


async def test_a_thread_is_refused_so_that_the_client_sends_the_whole_conversation(offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, user("?"), thread={"type": "create"})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


async def test_what_has_no_effect_is_ignored() -> None:
    ignored = {
        "thinking": {"type": "disabled"},
        "metadata": {"user_id": "u"},
        "top_k": 5,
        "service_tier": "auto",
        "context_management": {"edits": []},
        "mcp_servers": [],
    }
    async with played([says("Hi")]) as (client, player):
        client.headers.update({"anthropic-version": "any", "anthropic-beta": "unknown-2030-01-01"})
        await message(client, user({"type": "text", "text": "?", "cache_control": {"type": "ephemeral"}}), **ignored)
    told = player.requests[0].body
    assert not set(told) & set(ignored)
    assert told["messages"][-1] == user("?")


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "words"),
    [
        ("POST", "/v1/messages/batches", 404, "not_found_error", "send each request to POST /v1/messages"),
        ("GET", "/v1/messages/batches/b_1/results", 404, "not_found_error", "send each request to POST /v1/messages"),
        ("POST", "/v1/messages/other", 404, "not_found_error", "not found"),
        ("GET", "/v1/messages", 405, "invalid_request_error", "method not allowed"),
        ("POST", "/messages", 415, "invalid_request_error", "application/json"),
        ("POST", "/v1/messages/", 415, "invalid_request_error", "application/json"),
    ],
)
async def test_every_error_below_the_prefix_has_the_format(
    method: str, path: str, status: int, kind: str, words: str, offline: httpx.AsyncClient
) -> None:
    status_of, kind_of, told = error_of(await offline.request(method, path))
    assert (status_of, kind_of) == (status, kind)
    assert words in told


async def test_a_base_url_that_ends_in_v1_is_named(offline: httpx.AsyncClient) -> None:
    answer = await offline.post("/v1/v1/messages")
    assert answer.status_code == 400
    assert "the base URL without /v1" in answer.json()["error"]["message"]


async def test_models_are_the_services_own_and_every_claude() -> None:
    async with played([says("Hi")] * 2) as (client, player):
        await message(client, model="claude-haiku-4-5-20251001")
        await message(client, model="toolchat-plain")
        unknown = await sent(client, model="gpt-4o")
    assert ["tools" in each.body for each in player.requests] == [True, False]
    assert error_of(unknown)[:2] == (404, "not_found_error")


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
async def test_a_key_is_taken_from_both_headers(header: str) -> None:
    prefix = "Bearer " if header == "authorization" else ""
    async with service(API_KEYS=f"agent={digest_of('key')}") as client:
        assert error_of(await sent(client))[:2] == (401, "authentication_error")
        client.headers[header] = f"{prefix}key"
        assert (await sent(client)).status_code == 200


@pytest.mark.parametrize(
    ("upstream", "status", "kind", "words", "again"),
    [
        # Claude Code compacts the conversation at these words.
        (TOO_LONG, 400, "invalid_request_error", "prompt is too long: ", "false"),
        (body(b"{}", 429), 429, "rate_limit_error", "", "true"),
        (body(b"{}", 401), 503, "api_error", "", "false"),
        (body(b"{}", 500), 502, "api_error", "", "true"),
    ],
)
async def test_a_failure_of_the_provider_has_a_type_and_says_whether_to_try_again(
    upstream: Any, status: int, kind: str, words: str, again: str
) -> None:
    async with played([upstream]) as (client, _):
        answer = await sent(client)
    assert error_of(answer)[:2] == (status, kind)
    assert error_of(answer)[2].startswith(words)
    assert answer.headers["x-should-retry"] == again
