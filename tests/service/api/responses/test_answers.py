"""One answer in three forms, and what every answer carries."""

import re

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from pydantic_core import from_json

from tests.application import create_app
from tests.players.openai_player import OpenAIPlayer, delta, finish, message, sse, whole
from tests.serving import configured, events_of, service
from tests.waiting import until
from toolchat.service.api.schemas import ChatAnswer

SHANGHAI = {"timeZoneId": "Asia/Shanghai"}
JSON = {"Accept": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
PAGES = ("/docs", "/playground")


async def test_plain_text_is_the_default_format(client: httpx.AsyncClient) -> None:
    answer = await client.get("/time/chat", headers={"Accept": ""})
    assert (answer.status_code, answer.text) == (200, "No tool was needed.")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["x-chat-model"] == "openai_compatible/gpt-4o-mini"


async def test_no_cache_keeps_an_answer_that_may_depend_on_a_key(client: httpx.AsyncClient) -> None:
    routes = iter_route_contexts(create_app(configured(CHAT_PROVIDER="offline")).router.routes)
    paths = {re.sub(r"{.*?}", "x", each.path) for each in routes if each.path and not each.path.startswith(PAGES)}
    assert len(paths) > 40
    kept = {path: (await client.get(path)).headers["cache-control"] for path in paths}
    assert {path: header for path, header in kept.items() if header != "no-store"} == {}


@pytest.mark.parametrize("variant", ["function", "method"])
async def test_json_carries_the_whole_trace(variant: str, client: httpx.AsyncClient) -> None:
    answer = (await client.get(f"/time/chat-tool-{variant}", headers=JSON)).json()
    ChatAnswer.model_validate(answer)
    (call,) = answer["tool_calls"]
    assert call["name"] == ("getCityTimeFunction" if variant == "function" else "getCityTimeMethod")
    assert (call["arguments"], call["outcome"], call["round"]) == (SHANGHAI, "ok", 1)
    assert call["result"] in answer["answer"]
    assert "Asia/Shanghai" in call["result"]
    assert answer["usage"] == {"input_tokens": 40, "output_tokens": 10, "total_tokens": 50}
    assert (answer["rounds"], answer["finish_reason"]) == (2, "stop")
    assert answer["model"] == {"provider": "openai_compatible", "name": "played"}


async def test_events_contain_the_calls_the_text_the_usage_and_the_end(client: httpx.AsyncClient) -> None:
    answer = await client.get("/time/chat-tool-function", headers=EVENTS)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-accel-buffering"] == "no"
    events = events_of(answer.text)
    names = [event.name for event in events]
    assert names[:2] == ["tool_call_started", "tool_call_finished"]
    assert set(names[2:-2]) == {"delta"}
    assert names[-2:] == ["usage", "done"]
    text = "".join(event.data["text"] for event in events if event.name == "delta")
    assert text == events[-1].data["answer"]
    ChatAnswer.model_validate(events[-1].data)
    assert events[1].data == events[-1].data["tool_calls"][0]


async def test_text_is_sent_while_the_model_still_writes() -> None:
    script = [sse(delta(content="北京"), ending="hang", done=False)]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        async with client.stream("GET", "/time/chat", headers=EVENTS) as answer:
            first = await anext(answer.aiter_text())
            assert events_of(first)[0].data == {"text": "北京"}
        await until(player.aborted.is_set)


async def test_any_text_arrives_exactly_in_every_form() -> None:
    odd = ["a\nb\r\nc\rd", "data: x\n\nevent: done\ndata: {}", "[DONE]", "x\u2028y\u0085z", "\x00", "😀", ": c", " "]
    texts = [f"[{each}]" for each in odd]
    script = [
        (sse(delta(content=text), finish("stop")) if streamed else whole(message(content=text)))
        for text in texts
        for streamed in (False, False, True)
    ]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for text in texts:
            assert (await client.get("/time/chat")).content.decode() == text
            assert from_json((await client.get("/time/chat", headers=JSON)).content)["answer"] == text
            events = events_of((await client.get("/time/chat", headers=EVENTS)).content.decode())
            assert [event.name for event in events] == ["delta", "usage", "done"]
            assert events[-1].data["answer"] == text


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "text/plain"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/plain"),
        ("application/json", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        ("application/*", "application/json"),
        ("text/plain;q=0.5, application/json", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ("text/plain;q=0, */*", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("image/png, text/event-stream;q=0.1", "text/event-stream"),
    ],
)
async def test_accept_chooses_the_form(accept: str, media_type: str, client: httpx.AsyncClient) -> None:
    answer = await client.get("/time/chat", headers={"Accept": accept})
    assert answer.headers["content-type"].split(";")[0] == media_type


@pytest.mark.parametrize("accept", ["text/html", "image/*", "garbage", "*/*;q=0", "text/plain;q=x", ",,,"])
async def test_an_unacceptable_format_is_rejected_before_the_model_is_called(
    accept: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    answer = await client.get("/time/chat", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["code"]) == (406, "not-acceptable")
    assert player.requests == []


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2_Z", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), ("", False)]
)
async def test_a_well_formed_request_id_is_kept_and_any_other_replaced(
    given: str, kept: bool, offline: httpx.AsyncClient
) -> None:
    answer = await offline.get("/health/live", headers={"X-Request-ID": given})
    problem = await offline.get("/nothing", headers={"X-Request-ID": given})
    assert (answer.headers["x-request-id"] == given) is kept
    assert answer.headers["x-request-id"]
    assert problem.json()["request_id"] == problem.headers["x-request-id"]


async def test_a_question_beyond_the_limit_is_refused_at_once() -> None:
    script = [sse(delta(content="a"), ending="hang", done=False)]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url, MAX_QUESTIONS="1") as client:
        async with client.stream("GET", "/time/chat", headers=EVENTS) as held:
            pieces = held.aiter_raw()
            await anext(pieces)
            for headers in (JSON, EVENTS):
                refused = await client.get("/time/chat", headers=headers)
                assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
                assert refused.headers["retry-after"] == "1"
        await until(player.aborted.is_set)
        live = await client.get("/health/live")
    assert live.status_code == 200
