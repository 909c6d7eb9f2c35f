"""Requests of every outcome, and figures that say exactly what was asked."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, body, message, sensible_model, sse, whole
from tests.service.observability.reading import Figures, figures_of, grown
from tests.serving import service
from tests.waiting import until

PATH = "/time/chat-tool-function"
KEYS = {name: f"{name}-{'k' * 30}" for name in ("alice", "bob")}
MODEL = (("model", "gpt-4o-mini"), ("provider", "openai_compatible"))
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}
SENSIBLE = sensible_model({"timeZoneId": "Asia/Shanghai"})

PLAYED: dict[str, tuple[int, str]] = {
    "works": (40, "ok"),
    "counted": (30, "ok"),
    "unknown tool": (15, "ok"),
    "bad argument": (13, "ok"),
    "busy": (11, "provider-rate-limited"),
    "failing": (10, "upstream-unavailable"),
    "nonsense": (9, "upstream-invalid"),
    "wrong key": (8, "provider-auth"),
    "moderated": (7, "content-filtered"),
}
"""How often each question is asked, and what becomes of it."""


def called(name: str, **arguments: Any) -> Answer:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return whole(message("tool_calls", content=None, tool_calls=[call]))


def play(request: PlayedRequest) -> Answer:
    asked = next(each["content"] for each in reversed(request.body["messages"]) if each["role"] == "user")
    if asked in ("unknown tool", "bad argument", "written") and request.body["messages"][-1]["role"] == "tool":
        return whole(message(content="done"))
    fixed = {
        "counted": whole(message(content="done", usage=USAGE)),
        "unknown tool": called("inventedTool"),
        "bad argument": called("getCityTimeFunction", timeZoneId="Nowhere/None"),
        "busy": whole({"error": {"message": "slow down"}}, 429),
        "failing": whole({"error": {"message": "sorry"}}, 500),
        "nonsense": body(b"<html>", Content_Type="text/html"),
        "wrong key": whole({"error": {"message": "no"}}, 401),
        "moderated": whole(message("content_filter", content="")),
        "written": whole(message(content='{"name": "getCityTimeFunction", "arguments": {"timeZoneId": "Asia/Tokyo"}}')),
        "silent": sse(done=False, ending="hang"),
    }
    return fixed.get(asked) or SENSIBLE(request)


@pytest.fixture(scope="module")
async def player() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(play) as player:
        yield player


@pytest.fixture(scope="module")
async def client(player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    keys = ",".join(f"{name}={hashlib.sha256(key.encode()).hexdigest()}" for name, key in KEYS.items())
    variables = {"MODEL_MAX_ATTEMPTS": "1", "BREAKER_FAILURES": "0", "ALLOW_ANONYMOUS": "true"}
    async with service(OPENAI_BASE_URL=player.base_url, API_KEYS=keys, OPEN_PATHS="/metrics", **variables) as client:
        yield client


async def ask(client: httpx.AsyncClient, question: str, accept: str = "text/plain", name: str = "") -> httpx.Response:
    headers = {"Accept": accept} | ({"X-API-Key": KEYS[name]} if name else {})
    return await client.get(PATH, params={"query": question}, headers=headers)


async def settled(client: httpx.AsyncClient, before: Figures, asked: int) -> Figures:
    """The figures once every request has been counted: that of an answer is a moment after its last byte."""
    found: Figures = {}

    async def all_counted() -> bool:
        found.update(await figures_of(client))
        requests = grown(before, found, "toolchat_requests_total")
        return sum(number for labels, number in requests.items() if ("route", "/metrics") not in labels) >= asked

    await until(all_counted)
    return found


async def test_every_question_is_counted_once_under_what_became_of_it(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    plan = [question for question, (times, _) in PLAYED.items() for _ in range(times)]
    await asyncio.gather(*(ask(client, each) for each in plan))
    after = await settled(client, before, len(plan))
    expected: Counter[str] = Counter()
    for times, outcome in PLAYED.values():
        expected[outcome] += times
    told = grown(before, after, "toolchat_questions_total")
    assert {dict(each)["outcome"]: value for each, value in told.items()} == expected
    for name, labels in ("duration", (("form", "text/plain"), ("route", PATH))), ("overhead", (("route", PATH),)):
        assert grown(before, after, f"toolchat_question_{name}_seconds_count") == {labels: len(plan)}
    turns = {dict(key)["outcome"]: n for key, n in grown(before, after, "toolchat_model_turns_total").items()}
    twice = PLAYED["works"][0] + PLAYED["unknown tool"][0] + PLAYED["bad argument"][0]
    assert turns == {**expected, "ok": expected["ok"] + twice}
    answers = {dict(key)["outcome"]: n for key, n in grown(before, after, "toolchat_upstream_requests_total").items()}
    refused = {"429": "busy", "500": "failing", "401": "wrong key"}
    assert answers == {
        "200": turns["ok"] + PLAYED["nonsense"][0] + PLAYED["moderated"][0],
        **{status: PLAYED[question][0] for status, question in refused.items()},
    }


async def test_tool_calls_are_counted_by_what_became_of_them_and_a_name_that_is_not_ours_is_other(
    client: httpx.AsyncClient,
) -> None:
    before = await figures_of(client)
    plan = ["works"] * 4 + ["unknown tool"] * 3 + ["bad argument"] * 2
    await asyncio.gather(*(ask(client, each) for each in plan))
    after = await settled(client, before, len(plan))
    calls = grown(before, after, "toolchat_tool_calls_total")
    told = {(dict(key)["tool"], dict(key)["error_kind"]): value for key, value in calls.items()}
    assert told.pop(("getCityTimeFunction", "")) == 4
    assert told.pop(("other", "unknown-tool")) == 3
    [((tool, kind), times)] = told.items()
    assert (tool, bool(kind), times) == ("getCityTimeFunction", True, 2)


async def test_tokens_are_those_that_the_provider_counted(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    await asyncio.gather(*(ask(client, "counted") for _ in range(5)))
    after = await settled(client, before, 5)
    tokens = grown(before, after, "toolchat_model_turn_tokens_sum")
    assert tokens == {(*MODEL, ("type", "input")): 100, (*MODEL, ("type", "output")): 25}
    assert grown(before, after, "toolchat_model_cached_tokens_total") == {MODEL: 40}


async def test_calls_that_the_model_wrote_as_text_are_counted(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    await asyncio.gather(*(ask(client, each) for each in ("written", "written", "works")))
    after = await settled(client, before, 3)
    assert grown(before, after, "toolchat_model_text_calls_total") == {MODEL: 2}
    repaired = grown(before, after, "toolchat_tool_calls_total")
    assert sorted((dict(key)["repaired"], times) for key, times in repaired.items()) == [("false", 1), ("true", 2)]


async def test_questions_are_counted_by_format_variant_and_client(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    for form, name in (("application/json", "alice"), ("text/event-stream", "bob"), ("text/plain", "")):
        assert (await ask(client, "works", form, name)).status_code == 200
    told = grown(before, await settled(client, before, 3), "toolchat_questions_total")
    assert {tuple(dict(key)[each] for each in ("form", "variant", "principal")): n for key, n in told.items()} == {
        ("application/json", "function", "alice"): 1,
        ("text/event-stream", "function", "bob"): 1,
        ("text/plain", "function", "anonymous"): 1,
    }
    first_bytes = grown(before, await figures_of(client), "toolchat_question_first_byte_seconds_count")
    assert first_bytes == {(("route", PATH),): 1}  # of the stream


async def test_what_is_refused_before_it_is_a_question_is_a_request_with_its_code(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    await client.get(PATH, headers={"X-API-Key": "x" * 30})
    await client.get("/nothing/here/at/all")
    await client.get(PATH, params={"query": " "})
    await client.get(PATH, headers={"Accept": "image/png"})
    await client.put(PATH)
    after = await settled(client, before, 5)
    told = grown(before, after, "toolchat_requests_total")
    assert {tuple(value for _, value in key): n for key, n in told.items() if "/metrics" not in dict(key).values()} == {
        ("unauthorized", "other"): 1,
        ("not-found", "other"): 1,
        ("validation", PATH): 1,
        ("not-acceptable", PATH): 1,
        ("method-not-allowed", PATH): 1,
    }
    assert grown(before, after, "toolchat_questions_total") == {}


async def test_a_client_that_leaves_is_counted_as_gone_and_its_turn_as_cancelled(
    client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    before = await figures_of(client)
    player.asked.clear()
    leaving = asyncio.create_task(ask(client, "silent", "text/event-stream"))
    await player.asked.wait()
    leaving.cancel()
    after = await settled(client, before, 1)
    [told] = grown(before, after, "toolchat_questions_total")
    [turn] = grown(before, after, "toolchat_model_turns_total")
    assert (dict(told)["outcome"], dict(turn)["outcome"]) == ("client_gone", "cancelled")
    assert after["toolchat_questions_in_flight", ()] == 0


async def test_the_overhead_is_part_of_the_whole_and_stands_in_a_header(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    answer = await ask(client, "works", "application/json")
    after = await settled(client, before, 1)
    [overhead] = grown(before, after, "toolchat_question_overhead_seconds_sum").values()
    [whole] = grown(before, after, "toolchat_question_duration_seconds_sum").values()
    [turns] = grown(before, after, "toolchat_model_turn_duration_seconds_sum").values()
    assert 0 < float(answer.headers["X-Toolchat-Overhead-Ms"]) <= overhead * 1000 + 0.001
    assert overhead <= whole - turns + 1e-6
    assert "X-Toolchat-Overhead-Ms" not in (await client.get("/tools")).headers
