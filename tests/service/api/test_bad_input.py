"""Whatever a client sends, the answer is decided, and it is a problem document."""

import asyncio
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from pydantic_core import from_json

from tests.players.openai_player import OpenAIPlayer
from tests.serving import service
from tests.waiting import PATIENCE
from toolchat.service.api.problems import Problem


def problem_of(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate(answer.json())
    assert problem.status == answer.status_code
    assert problem.request_id == answer.headers["x-request-id"]
    return problem


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("query=%20%09", 422, "validation"),
        ("query=%E3%80%80", 422, "validation"),
        ("query=" + quote("长" * 4001), 422, "validation"),
        ("query=a&query=b", 422, "validation"),
        ("query=%ff%fe", 400, "invalid-request"),
        ("query=%ED%A0%80", 400, "invalid-request"),
        ("query=a%00b", 400, "invalid-request"),
        ("other=%C3%28", 400, "invalid-request"),
        ("query=" + "a" * 60_001, 414, "too-large"),
    ],
)
async def test_an_invalid_question_is_rejected_before_the_model_is_called(
    query: str, status: int, code: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.get(f"/time/chat?{query}")
    assert (answer.status_code, problem_of(answer).code) == (status, code)
    assert player.requests == []


@pytest.mark.parametrize("query", ["长" * 4000, "a\u0301" * 2000, "😀" * 4000, "\u202eolleh", "<b>&amp;%3C</b>", "0"])
async def test_a_question_within_the_limits_arrives_as_it_was_sent(
    query: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.get("/time/chat", params={"query": query})
    assert answer.status_code == 200
    assert player.requests[0].body["messages"][-1]["content"] == query


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
async def test_another_method_gets_405_with_allow_and_no_model_call(
    method: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    for path in ("/time/chat", "/chat"):
        answer = await client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST"), path
        if method != "HEAD":
            assert problem_of(answer).code == "method-not-allowed"
    assert player.requests == []


@pytest.mark.parametrize("path", ["/nothing", "/time", "/time/chat/x", "/docs/static/nothing.js", "/%2e%2e/etc/passwd"])
async def test_an_unknown_path_is_a_problem_document(path: str, offline: httpx.AsyncClient) -> None:
    answer = await offline.get(path)
    assert (answer.status_code, problem_of(answer).code) == (404, "not-found")


async def exchange(client: httpx.AsyncClient, *pieces: bytes) -> tuple[bytes, dict[str, Any]]:
    """Send raw bytes and read until the server hangs up; gives the head and the JSON body."""
    address = urlsplit(str(client.base_url))
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, from_json(body) if body else {}


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"GET /time/chat?query=" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "too-large"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431, "too-large"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 20_000 + b"\r\n", 431, "too-large"),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "invalid-request"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: b\r\nConnection: close\r\n\r\n", 400, "invalid-request"),
    ],
)
async def test_malformed_http_requests_get_problem_documents_too(
    raw: bytes, status: int, code: str, offline: httpx.AsyncClient
) -> None:
    head, problem = await exchange(offline, raw)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in head
    assert problem["code"] == code
    assert problem["request_id"].encode() in head


async def test_chinese_typed_into_a_url_is_understood(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    request = "GET /time/chat?query=东京 HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
    head, _ = await exchange(client, f"{request}Connection: close\r\n\r\n".encode())
    assert head.startswith(b"HTTP/1.1 200 ")
    assert player.requests[0].body["messages"][-1]["content"] == "东京"


async def test_a_body_that_looks_like_a_request_line_is_left_as_it_is(offline: httpx.AsyncClient) -> None:
    body = "GET /é HTTP/1.1\r\n".encode()
    head = b"POST /approvals/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(body)
    answer, problem = await exchange(offline, head, body)
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert problem["code"] == "validation"


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo"])
async def test_a_connection_without_complete_headers_ends(sent: bytes) -> None:
    async with service(SERVER_CLIENT_TIMEOUT="1") as client:
        async with asyncio.timeout(PATIENCE):
            assert await exchange(client, sent) == (b"", {})
        assert (await client.get("/health/live")).status_code == 200


@pytest.mark.parametrize("kind", ["function", "method"])
@pytest.mark.parametrize(
    ("path", "variables"),
    [("/weather", ["WEATHER_API_KEY"]), ("/translate", ["BAIDU_TRANSLATE_APP_ID", "BAIDU_TRANSLATE_SECRET_KEY"])],
)
async def test_a_tool_without_its_key_names_the_variables_and_the_model_alone_still_answers(
    kind: str, path: str, variables: list[str], client: httpx.AsyncClient
) -> None:
    answer = await client.get(f"{path}/chat-tool-{kind}")
    alone = await client.get(f"{path}/chat")
    assert (answer.status_code, problem_of(answer).code) == (503, "not-configured")
    assert all(variable in problem_of(answer).detail for variable in variables)
    assert "retry-after" not in answer.headers
    assert alone.status_code == 200
