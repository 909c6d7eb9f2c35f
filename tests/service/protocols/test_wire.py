"""Rules that hold on every wire: each has its own format for the same question, the same answer and the same errors."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx
import pytest
from pydantic_core import from_json

from tests.players.openai_player import Answer, body, delta, finish, sse, whole
from tests.service.protocols.openai.asking import played, says
from tests.waiting import PATIENCE
from toolchat.service.protocols.ag_ui.routes import AG_UI
from toolchat.service.protocols.ai_sdk.routes import AI_SDK
from toolchat.service.protocols.anthropic.routes import ANTHROPIC
from toolchat.service.protocols.openai.routes import OPENAI
from toolchat.service.settings.service_settings import Tuning

JSON = "application/json"


class Door(NamedTuple):
    """A wire: what a request needs besides its messages, and how its answers are read."""

    path: str
    fields: dict[str, Any]
    text: Callable[[Any], str]
    """The text that an event adds."""
    media_type: str
    """The type of an error's document."""
    code: Callable[[Any], str]
    """The code of an error's document."""
    max_bytes: int
    messages: str = "messages"
    image: Callable[[str], dict[str, Any]] = lambda url: {"type": "image_url", "image_url": {"url": url}}

    def body(self, *said: tuple[str, Any], **fields: Any) -> dict[str, Any]:
        """A request with messages: their roles, and their texts or an image with a text."""
        return {**self.fields, self.messages: [self._message(*each) for each in said], **fields}

    def _message(self, role: str, content: Any) -> dict[str, Any]:
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        if self.path == "/ai-sdk/chat":
            return {"id": "m", "role": role, "parts": parts}
        return {"id": "m", "role": role, "content": content}

    async def ask(self, client: httpx.AsyncClient, *said: tuple[str, Any], **headers: str) -> httpx.Response:
        return await client.post(self.path, json=self.body(*said), headers=headers)


def events_of(answer: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n") if line.startswith("data: ")]
    return [from_json(line) for line in lines if line != "[DONE]"]


def openai_code(document: Any) -> str:
    return str(document["error"]["code"])


def base64_image(url: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url, "value": url}}


STREAMED = {"model": "toolchat", "stream": True}
RUN = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
DOORS = {
    "completions": Door(
        "/v1/chat/completions",
        STREAMED,
        lambda event: event["choices"][0]["delta"].get("content") or "",
        JSON,
        openai_code,
        OPENAI.max_body_bytes,
    ),
    "Responses": Door(
        "/v1/responses",
        STREAMED,
        lambda event: event["delta"] if event["type"] == "response.output_text.delta" else "",
        JSON,
        openai_code,
        OPENAI.max_body_bytes,
        "input",
        lambda url: {"type": "input_image", "image_url": url},
    ),
    "Anthropic": Door(
        "/v1/messages",
        STREAMED | {"max_tokens": 64},
        lambda event: event["delta"]["text"] if event["type"] == "content_block_delta" else "",
        JSON,
        lambda document: str(document["error"]["type"]),
        ANTHROPIC.max_body_bytes,
        image=base64_image,
    ),
    "AI SDK": Door(
        "/ai-sdk/chat",
        {},
        lambda event: event["delta"] if event["type"] == "text-delta" else "",
        "text/plain; charset=utf-8",
        lambda _: "",
        AI_SDK.max_body_bytes,
        image=lambda url: {"type": "file", "url": url},
    ),
    "AG-UI": Door(
        "/ag-ui",
        RUN,
        lambda event: event["delta"] if event["type"] == "TEXT_MESSAGE_CONTENT" else "",
        "application/problem+json",
        lambda document: str(document["code"]),
        AG_UI.max_body_bytes,
        image=base64_image,
    ),
}
QUESTION = ("user", "?")
HANGS = sse(delta(content="Hel"), done=False, ending="hang")


@pytest.fixture(params=DOORS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def door(name: str) -> Door:
    return DOORS[name]


def texts(player: Any, number: int = -1) -> list[tuple[str, Any]]:
    """What the model received in a request, without the service's own instructions."""
    return [
        (each["role"], each["content"]) for each in player.requests[number].body["messages"] if each["role"] != "system"
    ]


async def test_messages_reach_the_model_and_its_text_comes_back_in_pieces(door: Door) -> None:
    said = [("user", "1+1?"), ("assistant", "2"), ("user", "and 1?")]
    async with played([sse(delta(content="Thr"), delta(content="ee."), finish("stop"))]) as (client, player):
        answer = await door.ask(client, *said)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [text for event in events_of(answer) if (text := door.text(event))] == ["Thr", "ee."]
    assert texts(player) == said
    assert "x-session-id" not in answer.headers
    assert "getCityTimeFunction" in str(player.requests[0].body["tools"])


async def test_instructions_are_appended_to_those_of_the_service(door: Door, name: str) -> None:
    asked = door.body(QUESTION) if name == "Anthropic" else door.body(("system", "Be brief."), QUESTION)
    async with played([says("ok")], SYSTEM_PROMPT="Be kind.") as (client, player):
        await client.post(door.path, json=asked | ({"system": "Be brief."} if name == "Anthropic" else {}))
    assert player.requests[0].body["messages"][0] == {"role": "system", "content": "Be kind.\n\nBe brief."}


WITH_SESSIONS = pytest.mark.parametrize("name", [each for each in DOORS if each != "Responses"], indirect=True)
"""Responses name their conversation in the body."""


@WITH_SESSIONS
async def test_a_session_is_remembered_with_the_last_question_alone(door: Door) -> None:
    async with played([says("one"), says("two"), says("three")]) as (client, player):
        first = await door.ask(client, ("user", "first"), **{"X-Session-ID": "s-1"})
        given = [("user", "of another page"), ("assistant", "?"), ("user", "second")]
        await door.ask(client, *given, **{"X-Session-ID": "s-1"})
        await door.ask(client, ("user", "third"))
        kept = (await client.get("/chat/s-1")).json()
    assert (first.headers["x-session-id"], kept["turns"]) == ("s-1", 2)
    assert texts(player, 1) == [("user", "first"), ("assistant", "one"), ("user", "second")]
    assert texts(player) == [("user", "third")]


@WITH_SESSIONS
@pytest.mark.parametrize("given", [["a b"], ["a", "b"], ["a", "a"]], ids=str)
async def test_an_invalid_session_id_is_rejected(given: list[str], door: Door, offline: httpx.AsyncClient) -> None:
    headers = [("X-Session-ID", each) for each in given]
    answer = await offline.post(door.path, json=door.body(QUESTION), headers=headers)
    assert (answer.status_code, "X-Session-ID: " in answer.text) == (
        422 if door.path in ("/ai-sdk/chat", "/ag-ui") else 400,
        True,
    )


@pytest.mark.parametrize("takes_images", [True, False])
async def test_an_image_goes_to_a_model_that_takes_it_and_another_gets_a_note(takes_images: bool, door: Door) -> None:
    url = "https://a.example/b.gif"
    asked = ("user", [{"type": "text", "text": "See"}, door.image(url)])
    async with played([says("ok")], OPENAI_IMAGES=str(takes_images)) as (client, player):
        await door.ask(client, asked)
    parts = [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": url}}]
    assert texts(player) == [("user", parts if takes_images else "See\n[image left out]")]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"null", b'{"messages":"\\ud800"}'])
async def test_a_malformed_body_gets_400(content: bytes, door: Door, offline: httpx.AsyncClient) -> None:
    answer = await offline.post(door.path, content=content, headers={"Content-Type": JSON})
    assert (answer.status_code, answer.headers["content-type"]) == (400, door.media_type)


async def test_a_page_of_another_site_gets_403(door: Door, offline: httpx.AsyncClient) -> None:
    answer = await door.ask(offline, QUESTION, **{"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.headers["content-type"]) == (403, door.media_type)


async def test_a_long_conversation_is_accepted_and_a_longer_one_rejected(door: Door) -> None:
    long = "字" * 200_000
    async with played([says("ok")]) as (client, player):
        assert (await door.ask(client, ("user", long))).status_code == 200
        answer = await client.post(door.path, content=b" " * (door.max_bytes + 1))
    assert texts(player) == [("user", long)]
    assert (answer.status_code, answer.headers["content-type"]) == (413, door.media_type)


TOO_LONG = whole({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)
UPSTREAM = [body(b"{}", 401), body(b"{}", 429), body(b"{}", 500), TOO_LONG]
AUTH, LIMITED, AWAY, LONG = "provider_auth", "rate_limit_exceeded", "upstream_unavailable", "context_length_exceeded"
PROBLEMS = ["provider-auth", "provider-rate-limited", "upstream-unavailable", "context-too-long"]
REFUSED = {
    "completions": [(503, AUTH), (429, LIMITED), (502, AWAY), (400, LONG)],
    "Anthropic": [(503, "api_error"), (429, "rate_limit_error"), (502, "api_error"), (400, "invalid_request_error")],
    "AI SDK": [(status, "") for status in (503, 503, 502, 422)],
    "AG-UI": [*zip((503, 503, 502, 422), PROBLEMS, strict=True)],
}
"""The status and the code, if nothing has been sent; Responses begin before the model does."""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("number", range(len(UPSTREAM)), ids=["401", "429", "500", "too long"])
@pytest.mark.parametrize("name", REFUSED, indirect=True)
async def test_an_error_before_the_first_byte_has_its_status(number: int, stream: bool, name: str, door: Door) -> None:
    async with played([UPSTREAM[number]]) as (client, _):
        answer = await client.post(door.path, json=door.body(QUESTION, stream=stream))
    code = door.code(answer.json()) if "json" in door.media_type else ""
    assert ((answer.status_code, code), answer.headers["content-type"]) == (REFUSED[name][number], door.media_type)
    assert answer.text
    if "/v1/" in door.path:
        assert answer.headers["x-should-retry"] == ("true" if number in (1, 2) else "false")


LAST: dict[str, list[dict[str, Any]]] = {
    "completions": [{"error": {"type": "server_error", "param": None, "code": "upstream_invalid"}}],
    "Responses": [{"type": "error", "code": "upstream_invalid"}, {"type": "response.failed"}],
    "Anthropic": [{"type": "error"}],
    "AI SDK": [{"type": "text-end", "id": "1"}, {"type": "error"}],
    "AG-UI": [{"type": "RUN_ERROR", "code": "upstream-invalid"}],
}


@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_an_error_during_the_stream_is_its_last_event(ending: Any, name: str, door: Door) -> None:
    async with played([sse(delta(content="Hel"), done=False, ending=ending)]) as (client, _):
        answer = await door.ask(client, QUESTION)
    last = events_of(answer)[-len(LAST[name]) :]
    assert answer.status_code == 200
    for event, expected in zip(last, LAST[name], strict=True):
        if "error" in expected:
            assert event["error"].pop("message")
        code = {"upstream_invalid", "upstream-invalid"} & {expected.get("code", "")}
        assert event.items() >= (expected if ending == "cut" or not code else {"type": expected["type"]}).items()


async def test_an_overloaded_service_sends_retry_after(name: str, door: Door) -> None:
    async with (
        played([HANGS], MAX_QUESTIONS="1") as (client, _),
        client.stream("POST", door.path, json=door.body(QUESTION)) as first,
    ):
        await anext(first.aiter_bytes())
        answer = await door.ask(client, QUESTION)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.headers["content-type"] == door.media_type


async def test_text_is_streamed_live_and_a_disconnect_stops_the_model(door: Door) -> None:
    async with played([HANGS]) as (client, player):
        async with client.stream("POST", door.path, json=door.body(QUESTION)) as answer:
            received = b""
            async for piece in answer.aiter_bytes():
                received += piece
                if b"Hel" in received:
                    break
        async with asyncio.timeout(PATIENCE):
            await player.aborted.wait()


@pytest.mark.parametrize("hangs", [HANGS, sse(delta(), done=False, ending="hang"), Answer(ending="hang")])
async def test_a_silent_stream_begins_and_is_kept_alive_until_it_times_out(
    hangs: Answer, name: str, door: Door
) -> None:
    async with played([hangs], Tuning(stream_begin=0.05, stream_keep_alive=0.05), REQUEST_TIMEOUT="1") as (client, _):
        answer = await door.ask(client, QUESTION)
    assert ('event: ping\ndata: {"type":"ping"}\n\n' if name == "Anthropic" else ": keep-alive\n\n") in answer.text
    last = events_of(answer)[-1]
    assert last["error"]["code"] == "deadline" if name == "completions" else last["type"] == LAST[name][-1]["type"]
