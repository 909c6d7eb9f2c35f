"""Several models in order: what a client gets when the first one fails, and who it is told has answered."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, Script, delta, finish, message, sse, whole
from tests.service.observability.reading import figures_of, grown
from tests.serving import events_of, service
from tests.waiting import until
from toolchat.errors import ConfigurationError
from toolchat.service.settings.service_settings import Tuning

PATH = "/time/chat"
JSON, EVENTS = {"Accept": "application/json"}, {"Accept": "text/event-stream"}
SECOND = "openai_compatible/second"
Play = Callable[[PlayedRequest], Answer]


def says(text: str) -> Play:
    def play(request: PlayedRequest) -> Answer:
        return sse(delta(content=text), finish("stop")) if request.body.get("stream") else whole(message(content=text))

    return play


def refuses(status: int) -> Play:
    return lambda _: whole({"error": {"message": "no"}}, status)


def cut(*chunks: object) -> Play:
    return lambda _: sse(*chunks, done=False, ending="cut")


def frozen(_: PlayedRequest) -> Answer:
    return Answer(ending="hang")


FILTERED, TOO_LONG = message("content_filter", content=""), {"error": {"code": "context_length_exceeded"}}
CUT_BEFORE_TEXT, CUT_IN_THE_MIDDLE = cut(delta(role="assistant")), cut(delta(content="Half an ans"))


@dataclass
class Standing:
    client: httpx.AsyncClient
    first: OpenAIPlayer
    second: OpenAIPlayer


@asynccontextmanager
async def standing_by(
    first: Script, *tuning: Tuning, second: Script = says("I am here"), call_id: str = ".*", **variables: str
) -> AsyncGenerator[Standing, None]:
    async with OpenAIPlayer(first) as one, OpenAIPlayer(second) as other:
        entry = {"provider": "openai_compatible", "base_url": other.base_url, "api_key": "sk-second", "model": "second"}
        fallbacks = json.dumps([entry | {"options": {"profile": {"call_id": call_id}}}], indent=1)
        given = {"OPENAI_BASE_URL": one.base_url, "OPENAI_API_KEY": "sk-first", "OPENAI_MODEL": "first", **variables}
        async with service(*tuning, CHAT_FALLBACKS=fallbacks, **given) as client:
            yield Standing(client, one, other)


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (refuses(429), "provider-rate-limited"),
        (refuses(500), "upstream-unavailable"),
        (refuses(401), "provider-auth"),
        (frozen, "upstream-timeout"),
    ],
    ids=["429", "500", "401", "frozen"],
)
async def test_the_fallback_answers_with_its_own_key_and_is_named_in_the_response(first: Play, code: str) -> None:
    variables: dict[str, Any] = {"MODEL_TIMEOUT": "0.5"} if first is frozen else {}
    async with standing_by(first, **variables) as standing:
        before = await figures_of(standing.client)
        answer = await standing.client.get(PATH, headers=JSON)
        told = grown(before, await figures_of(standing.client), "toolchat_model_fallbacks_total")
    assert (answer.status_code, answer.json()["answer"]) == (200, "I am here")
    assert answer.json()["model"] == {"provider": "openai_compatible", "name": "played"}
    assert answer.headers["X-Chat-Model"] == SECOND
    assert len(standing.first.requests) == 1
    [request] = standing.second.requests
    assert (request.headers["authorization"], request.body["model"]) == ("Bearer sk-second", "second")
    assert told == {(("model", "first"), ("outcome", code), ("provider", "openai_compatible")): 1}


@pytest.mark.parametrize("first", [CUT_BEFORE_TEXT, refuses(500)], ids=["cut", "500"])
async def test_a_stream_is_the_next_models_as_long_as_no_text_has_gone_out(first: Play) -> None:
    async with standing_by(first) as standing:
        answer = await standing.client.get(PATH, headers=EVENTS)
    assert answer.headers["X-Chat-Model"] == SECOND
    assert [event.data["text"] for event in events_of(answer.text) if event.name == "delta"] == ["I am here"]
    assert events_of(answer.text)[-1].name == "done"


async def test_a_stream_cut_after_its_first_text_ends_with_an_error_without_fallback() -> None:
    async with standing_by(CUT_IN_THE_MIDDLE) as standing:
        answer = await standing.client.get(PATH, headers=EVENTS)
    *_, last = events_of(answer.text)
    assert (last.name, last.data["code"]) == ("error", "upstream-invalid")
    assert answer.headers["X-Chat-Model"] == "openai_compatible/first"
    assert standing.second.requests == []


async def test_in_mid_turn_the_next_model_gets_no_fields_of_the_first_and_ids_that_fit_it() -> None:
    def first(request: PlayedRequest) -> Answer:
        if request.body["messages"][-1]["role"] == "tool":
            return whole({"error": {"message": "no"}}, 500)
        function = {"name": "getCityTimeFunction", "arguments": '{"timeZoneId": "Asia/Tokyo"}'}
        call = {"id": "call_00_QvDsKrCd1hYE5cn8wbTRnUoG", "type": "function", "function": function}
        extra = {"extra_content": {"google": {"thought_signature": "AY89"}}}
        return whole(message("tool_calls", reasoning_content="why", tool_calls=[call | extra]))

    async with standing_by(first, second=says("It is late"), call_id="[a-zA-Z0-9]{9}") as standing:
        answer = await standing.client.get(f"{PATH}-tool-function", headers=JSON)
    assert answer.json()["answer"] == "It is late"
    asked, result = standing.second.requests[0].body["messages"][-2:]
    assert asked.keys() == {"role", "content", "tool_calls"}
    assert asked["tool_calls"][0].keys() == {"id", "type", "function"}
    assert len(asked["tool_calls"][0]["id"]) == 9
    assert result["tool_call_id"] == asked["tool_calls"][0]["id"]


async def test_if_all_models_fail_the_last_error_is_returned() -> None:
    async with standing_by(refuses(500), second=refuses(401)) as standing:
        answer = await standing.client.get(PATH)
    assert (answer.status_code, answer.json()["code"]) == (503, "provider-auth")


@pytest.mark.parametrize("refusal", [whole(FILTERED), whole(TOO_LONG, 400)], ids=["content_filter", "too long"])
async def test_a_moderation_error_does_not_fall_back(refusal: Answer) -> None:
    async with standing_by(lambda _: refusal) as standing:
        assert (await standing.client.get(PATH)).status_code == 422
    assert standing.second.requests == []


async def test_an_open_breaker_saves_the_time_limit_of_a_dead_provider() -> None:
    variables: dict[str, Any] = {"MODEL_TIMEOUT": "0.5", "BREAKER_FAILURES": "1"}
    async with standing_by(frozen, Tuning(breaker_pause=600), **variables) as standing:
        before = await figures_of(standing.client)
        answers = [(await standing.client.get(PATH)).text for _ in range(6)]
        after = await figures_of(standing.client)
    assert (answers, len(standing.first.requests)) == (["I am here"] * 6, 1)
    upstream = (("upstream", "openai_compatible/first"),)
    assert grown(before, after, "toolchat_breaker_openings_total") == {upstream: 1}
    assert grown(before, after, "toolchat_breaker_refusals_total") == {upstream: 5}
    assert after["toolchat_breaker_open", upstream] == 1


async def test_a_provider_that_has_come_back_is_the_first_again() -> None:
    recovered = False

    def first(request: PlayedRequest) -> Answer:
        return says("back again")(request) if recovered else refuses(500)(request)

    async with standing_by(first, Tuning(breaker_pause=0.05), BREAKER_FAILURES="1") as standing:
        assert (await standing.client.get(PATH)).text == "I am here"
        recovered = True

        async def is_back() -> bool:
            return (await standing.client.get(PATH)).text == "back again"

        await until(is_back)
        figures = await figures_of(standing.client)
    assert figures["toolchat_breaker_open", (("upstream", "openai_compatible/first"),)] == 0


async def test_a_provider_without_another_behind_it_is_not_waited_for_either() -> None:
    variables = {"MODEL_MAX_ATTEMPTS": "1", "BREAKER_FAILURES": "3"}
    async with OpenAIPlayer(refuses(500)) as player, service(OPENAI_BASE_URL=player.base_url, **variables) as client:
        answers = [await client.get(PATH) for _ in range(5)]
    assert len(player.requests) == 3
    assert {each.json()["code"] for each in answers} == {"upstream-unavailable"}
    assert 1 <= int(answers[-1].headers.get("Retry-After", "1")) <= 10
    assert "its circuit is open" in answers[-1].json()["detail"]


FIRST, CLOSED = whole(message(content="the first")), Answer(ending="cut", is_silent=True)


async def test_a_kept_connection_that_was_closed_is_no_failure_of_the_provider() -> None:
    async with standing_by([FIRST, CLOSED, FIRST, FIRST], BREAKER_FAILURES="1") as standing:
        assert [(await standing.client.get(PATH)).text for _ in range(3)] == ["the first"] * 3
    assert (len(standing.first.requests), standing.first.connections, len(standing.second.requests)) == (4, 2, 0)


@pytest.mark.parametrize("kept", [0, 1])
async def test_a_provider_that_closes_a_new_connection_as_well_is_left_for_the_fallback(kept: int) -> None:
    async with standing_by([*[FIRST, CLOSED] * kept, CLOSED], BREAKER_FAILURES="1") as standing:
        texts = [(await standing.client.get(PATH)).text for _ in range(kept + 2)]
    assert texts == [*["the first"] * kept, "I am here", "I am here"]
    assert len(standing.first.requests) == 1 + 2 * kept  # its circuit is open for the last question


NO_PRIMARY = "requires a primary model: set DASHSCOPE_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL"
KNOWN = "api_key, base_url, model, api, client_cert, client_key, images, options"
USABLE = '[{"provider": "openai_compatible", "api_key": "sk-canary", "model": "m"%s}]'


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("second", "must be a JSON list of objects"),
        (USABLE % "", NO_PRIMARY),
        ('[{"model": "m"}]', "model 1: provider: must be openai_compatible or dashscope"),
        ('[{"provider": "dashscope", "model": "m"}]', "model 1: api_key is missing"),
        ('[{"provider": "openai_compatible", "api_key": "sk-canary"}]', "model 1: model is missing"),
        (USABLE % ', "url": "x"', f"model 1: 'url' is not one of {KNOWN}"),
        (
            USABLE % ', "base_url": "ftp://sk-canary"',
            "model 1: base_url: must be a URL in ASCII that starts with http:// or https://",
        ),
    ],
)
async def test_a_model_that_cannot_be_used_stops_the_start_with_one_line_without_any_value(
    value: str, fault: str
) -> None:
    with pytest.raises(ConfigurationError) as stopped:
        async with service(CHAT_FALLBACKS=value):
            pass
    assert str(stopped.value) == f"CHAT_FALLBACKS: {fault}"
