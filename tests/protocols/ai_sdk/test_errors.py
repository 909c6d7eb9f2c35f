"""Errors for pages: text with a status before the first byte, and a part of the stream after it."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import body, delta, sse, whole
from tests.protocols.ai_sdk.asking import CHAT, ended, parts_of, said, says, sent, text, user
from tests.protocols.openai.asking import played
from toolchat.service.protocols.ai_sdk.routes import AI_SDK

FILE = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,AA=="}


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages: "),
        ({"messages": None}, "messages: "),
        ({"messages": [user()]}, "messages: none has a text"),
        ({"messages": [{"role": "tool", "parts": []}]}, "messages[0].role: "),
        ({"messages": [user("a"), {"role": "user", "content": "b"}]}, "messages[1].parts: "),
        ({"messages": [user("a"), {"role": "user", "parts": [{}]}]}, "messages[1].parts[0].type: "),
        ({"messages": [{"role": "user", "parts": [text("?"), FILE]}]}, "messages[0].parts[1]: must be a png, jpeg"),
        ({"messages": [user("a"), {"role": "user", "parts": [FILE]}]}, "messages[1].parts[0]: must be a png, jpeg"),
        ({"messages": [user("?")] * 4097}, "messages: "),
        ({"messages": [user("?"), said(ended(toolCallId="x" * 257))]}, "messages[1].parts[1].toolCallId: "),
    ],
)
async def test_an_invalid_request_gets_400_with_the_field(
    fields: dict[str, Any], words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(CHAT, json=fields)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert answer.text.startswith(words)
    assert len(answer.text) < 500
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"messages":"\\ud800"}', b"[" * 100_000, b"null"])
async def test_a_malformed_body_gets_400(content: bytes, offline: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await offline.post(CHAT, content=content, headers=headers)).status_code == 400


HOSTILE: list[dict[str, Any]] = [
    user("\u0000"),
    user("x" * 1_000_000),
    said(ended(input=nested(60), output=nested(60))),
    said(ended(input=nested(97), output=nested(97))),
    said(ended(input=nested(400), output=nested(400))),
    said(ended(input=10**400, output=-(10**400))),
    said(ended(input=None, output=None)),
    said(ended(input="}{", output="\u2028")),
    said(*[ended(output="x")] * 100),
    said({"type": "tool-"}, {"type": "dynamic-tool"}, {"type": ""}, {"type": "step-start"}),
    {"role": "system", "parts": [text("?")]},
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_requests_never_break_the_service(message: dict[str, Any], offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, user("What time is it?"), message, user("And in London?"))
    if answer.status_code != 400:
        assert parts_of(answer)[-1]["type"] == "finish"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", CHAT, 405), ("GET", f"{CHAT}/c-1", 404)])
async def test_unknown_routes_and_methods_are_reported_as_text(
    method: str, path: str, status: int, offline: httpx.AsyncClient
) -> None:
    answer = await offline.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/plain; charset=utf-8")


async def test_a_page_of_another_site_gets_403(offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, user("?"), headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.text) == (403, "a page of another site must not send this request")


async def test_an_invalid_session_id_is_rejected(offline: httpx.AsyncClient) -> None:
    assert (await sent(offline, user("?"), headers={"X-Session-ID": "../x"})).status_code == 422


@pytest.mark.parametrize(
    ("upstream", "status"),
    [
        (body(b"{}", 401), 503),
        (body(b"{}", 500), 502),
        (whole({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400), 422),
    ],
)
async def test_an_error_before_the_first_byte_has_its_status(upstream: Any, status: int) -> None:
    async with played([upstream]) as (client, _):
        answer = await sent(client, user("?"))
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert answer.text
    assert "x-vercel-ai-ui-message-stream" not in answer.headers


async def test_an_overloaded_service_sends_retry_after() -> None:
    waiting = [sse(delta(content="Hel"), done=False, ending="hang")]
    async with (
        played(waiting, MAX_QUESTIONS="1") as (client, _),
        client.stream("POST", CHAT, json={"messages": [user("?")]}),
    ):
        answer = await sent(client, user("?"))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_an_error_during_the_stream_is_its_last_part() -> None:
    async with played([sse(delta(content="Hel"), done=False, ending="cut")]) as (client, _):
        *_, last_but_one, last = parts_of(await sent(client, user("?")))
    assert last_but_one == {"type": "text-end", "id": "1"}
    assert last["type"] == "error"
    assert last["errorText"]


async def test_a_long_conversation_is_accepted_and_a_longer_one_rejected() -> None:
    long = "字" * 200_000
    async with played([says("ok")]) as (client, player):
        parts_of(await sent(client, user(long)))
        answer = await client.post(CHAT, content=b" " * (AI_SDK.max_body_bytes + 1))
    assert player.requests[0].body["messages"][-1]["content"] == long
    assert (answer.status_code, answer.headers["content-type"]) == (413, "text/plain; charset=utf-8")
