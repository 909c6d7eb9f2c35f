"""The same questions by POST, as a JSON body: what it takes, what it refuses, and that nothing else differs."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from pydantic_core import to_json

from tests.app.tools.examples.asking import READING
from tests.players.openai_player import OpenAIPlayer
from tests.service.api.sessions.conversing import EVENTS, JSON, reply, sociable
from tests.serving import events_of, service

NINE = [
    f"/{tool}/{variant}"
    for tool in ("time", "weather", "translate")
    for variant in ("chat", "chat-tool-function", "chat-tool-method")
]
IN_SESSION = ["/chat", "/chat/stream", "/todo/chat"]
KEYS = {"WEATHER_API_KEY": "w", "BAIDU_TRANSLATE_APP_ID": "a", "BAIDU_TRANSLATE_SECRET_KEY": "s"}
JSON_BODY = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
async def _model() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(sociable) as player:
        yield player


@pytest.fixture(scope="module")
async def client(_model: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(OPENAI_BASE_URL=_model.base_url, **KEYS) as client:
        yield client


@pytest.fixture
def player(_model: OpenAIPlayer) -> OpenAIPlayer:
    _model.requests.clear()
    return _model


def question(player: OpenAIPlayer) -> str:
    """What the model was asked last."""
    asked: str = player.requests[-1].body["messages"][-1]["content"]
    return asked


@pytest.mark.parametrize("path", [*NINE, *READING, *IN_SESSION])
async def test_every_question_route_takes_a_json_body(
    path: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.post(path, json={"query": "你好 & <b>hi</b> %41"})
    assert answer.status_code == 200, answer.text
    assert question(player) == "你好 & <b>hi</b> %41"


def forms(answer: httpx.Response) -> list[tuple[str, str]]:
    changing = ("x-request-id", "x-session-id", "x-toolchat-overhead-ms", "content-length", "date")
    return [(name, value) for name, value in answer.headers.multi_items() if name not in changing]


@pytest.mark.parametrize("path", ["/time/chat", "/tool/context/order", "/chat", "/todo/chat"])
@pytest.mark.parametrize("headers", [{}, JSON, EVENTS], ids=str)
async def test_both_methods_give_the_same_answer_in_the_same_form(
    path: str, headers: dict[str, str], client: httpx.AsyncClient
) -> None:
    got = await client.get(path, params={"query": "hello"}, headers=headers)
    posted = await client.post(path, json={"query": "hello"}, headers=headers)
    assert (got.status_code, forms(got)) == (posted.status_code, forms(posted))
    assert reply("hello") in posted.text or events_of(posted.text)[-1].data["answer"] == reply("hello")


@pytest.mark.parametrize("path", ["/time/chat", "/tools/simple/test", "/todo/chat"])
@pytest.mark.parametrize("sent", [{}, {"json": {}}, {"json": {"query": ""}}, {"headers": JSON_BODY}], ids=str)
async def test_without_a_question_the_documents_question_is_meant(
    path: str, sent: dict[str, Any], client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    await client.get(path)
    default = question(player)
    assert (await client.post(path, **sent)).status_code == 200
    assert question(player) == default


async def test_a_posted_question_has_its_session_and_its_tools(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    body = b'{"userInput": "hello", "sessionId": "posted", "tools": ["todoRead"]}'
    answer = await client.post("/chat", content=body, headers={"Content-Type": "Application/JSON; charset=utf-8"})
    assert answer.headers["x-session-id"] == "posted"
    assert [each["function"]["name"] for each in player.requests[-1].body["tools"]] == ["todoRead"]


HELLO = [{"role": "user", "content": "hello"}]
POSTED: dict[str, dict[str, Any]] = {
    "/chat": {"userInput": "hello"},
    "/tools/todoRead": {},
    "/v1/chat/completions": {"model": "toolchat", "messages": HELLO},
    "/v1/responses": {"model": "toolchat", "input": "hello"},
    "/v1/messages": {"model": "toolchat", "max_tokens": 9, "messages": HELLO},
    "/ai-sdk/chat": {"messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}]},
    "/ag-ui": {"threadId": "t", "runId": "r", "messages": HELLO},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
}


@pytest.mark.parametrize("path", POSTED)
async def test_a_byte_order_mark_before_the_body_is_ignored(path: str, client: httpx.AsyncClient) -> None:
    # As PowerShell sends it: https://github.com/PowerShell/PowerShell/issues/8592
    body = b"\xef\xbb\xbf" + to_json(POSTED[path])
    assert (await client.post(path, content=body, headers=JSON_BODY)).status_code == 200


MALFORMED: list[tuple[bytes, int, str]] = [
    (b"{", 400, "body: "),
    (b'{"query": NaN}', 400, "body: "),
    (b'{"query": ' + b"9" * 5000 + b"}", 400, "body: "),
    (b"[" * 60_000, 400, "body: is nested too deeply"),
    (b"[]", 422, "body: must be a JSON object"),
    (b"null", 422, "body: must be a JSON object"),
    (b'"query"', 422, "body: must be a JSON object"),
    (b'{"query": null}', 422, "query: must be a string"),
    (b'{"query": 1}', 422, "query: must be a string"),
    (b'{"query": "a", "query": "b"}', 422, "query: given more than once"),
    (b'{"query": "\\u3000 "}', 422, "query: must not be blank"),
    (b'{"query": "a\\u0000"}', 422, "query: contains a NUL character"),
    (b'{"query": "\\ud800"}', 422, "query: contains a lone surrogate"),
    (b'{"query": "' + b"a" * 32_001 + b'"}', 422, "query: must have at most 32000 characters, and has 32001"),
    (b'{"qeury": "a"}', 422, "qeury: there is no such parameter; did you mean query?"),
    (b'{"\\ud800": "a"}', 422, "?: there is no such parameter; known: "),
]


@pytest.mark.parametrize(("body", "status", "said"), MALFORMED, ids=lambda value: repr(value)[:30])
@pytest.mark.parametrize("path", ["/time/chat", "/chat"])
async def test_an_invalid_body_is_rejected_before_the_model_is_called(
    path: str, body: bytes, status: int, said: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.post(path, content=body, headers=JSON_BODY | {"Idempotency-Key": "k"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"].startswith(said)
    assert player.requests == []


async def test_a_compressed_body_is_rejected_as_such(client: httpx.AsyncClient) -> None:
    answer = await client.post("/chat", content=b"\x1f\x8b", headers=JSON_BODY | {"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
    plain = await client.post("/chat", content=b'{"query": "a"}', headers=JSON_BODY | {"Content-Encoding": "Identity"})
    assert plain.status_code == 200


IN_SESSION_REFUSED = [
    ({"userInput": "a", "query": "b"}, "userInput: userInput and query differ; send one of them"),
    ({"query": "hi", "sessionId": "chat"}, "sessionId: chat is reserved"),
    ({"query": "hi", "sessionId": 7}, "sessionId: must be a string"),
    ({"query": "hi", "tools": "getCityTimeFunction"}, "tools: must be a list of strings"),
    ({"query": "hi", "tools": ["a", None]}, "tools: must be a list of strings"),
    ({"query": "hi", "tools": ["nothing"]}, "tools: no tool has the name nothing; "),
    ({"query": "hi", "tools": ["a"] * 51}, "tools: List should have at most 50 items"),
    ({}, "query: is missing or blank"),
]


@pytest.mark.parametrize(("body", "said"), IN_SESSION_REFUSED, ids=str)
@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
async def test_a_question_in_a_session_that_is_not_clear_is_refused(
    path: str, body: dict[str, Any], said: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert answer.json()["detail"].startswith(said)
    assert player.requests == []


@pytest.mark.parametrize("path", ["/time/chat", "/chat"])
async def test_a_post_gives_nothing_in_its_url(path: str, client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    # There proxies would log it, which is what a client wants to get rid of.
    for url in (f"{path}?query=hello", f"{path}?query="):
        answer = await client.post(url, json={})
        assert (answer.status_code, answer.json()["code"]) == (422, "validation")
        assert answer.json()["detail"] == "query: belongs in the JSON body of a POST, not in its URL"
    assert player.requests == []


@pytest.mark.parametrize("path", ["/time/chat", "/tool/control", *IN_SESSION])
async def test_a_client_that_reconnects_to_a_posted_stream_gets_204(
    path: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    again = await client.post(path, json={"query": "hello"}, headers=EVENTS | {"Last-Event-ID": "1"})
    assert (again.status_code, again.content, player.requests) == (204, b"", [])


UNKNOWN = [
    ("/time/chat?qurey=hi", "qurey: there is no such parameter; did you mean query?"),
    ("/tool/control?q=hi", "q: there is no such parameter; known: query"),
    ("/chat?userInput=hi&session_id=s-1", "session_id: there is no such parameter; did you mean sessionId?"),
    (
        "/chat?userInput=hi&x=1",
        "x: there is no such parameter; known: userInput, query, sessionId, replaceTurns, tools",
    ),
]


@pytest.mark.parametrize(("url", "said"), UNKNOWN)
async def test_a_mistyped_parameter_of_any_question_is_refused_and_the_nearest_one_named(
    url: str, said: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.get(url)
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    assert player.requests == []
