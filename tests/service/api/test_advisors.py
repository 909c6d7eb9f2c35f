"""Advisors of the service: the notice about invented data, and the limit of the tool calls of a conversation."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from tests.application import create_sandbox
from tests.chat.played import EVENTS, JSON, asks, clock, says, turns
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.api.sessions.conversing import ask, conversation
from tests.service.api.sessions.deciding import LIGHTS, approve, waiting
from tests.serving import events_of, service, serving
from toolchat.service.api.advisors import SandboxNoticeAdvisor

NOTICE = SandboxNoticeAdvisor.notice
WEATHER = ("getWeatherFunction", {"city": "Oslo", "days": 1})


def forecaster(request: PlayedRequest) -> Answer:
    """Looks at the clock when it is asked for the time, else at the weather, and answers at length when asked to."""
    messages = request.body["messages"]
    question = next(each["content"] for each in reversed(messages) if each["role"] == "user")
    if messages[-1]["role"] == "user":
        return whole(message("tool_calls", **asks(clock("Europe/Oslo") if "time" in question else WEATHER)))
    return whole(message(content="Mild. " * 2000 if "long" in question else "Mild."))


@asynccontextmanager
async def sandboxed(**variables: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with (
        serving(create_sandbox()) as url,
        OpenAIPlayer(forecaster) as player,
        service(SANDBOX_URL=url, OPENAI_BASE_URL=player.base_url, **variables) as client,
    ):
        yield client


async def test_a_stored_answer_has_its_notice() -> None:
    async with sandboxed() as client:
        for form in ({}, JSON, EVENTS):
            assert NOTICE in (await ask(client, "weather", **form)).text.replace("\\n", "\n")
        kept = await conversation(client)
    assert kept == [("user", "weather"), ("assistant", f"Mild.{NOTICE}")] * 3


async def test_an_answer_that_rests_on_real_data_gets_no_notice_though_invented_was_on_offer() -> None:
    async with sandboxed() as client:
        await ask(client, "time")
        assert await conversation(client) == [("user", "time"), ("assistant", "Mild.")]


async def test_the_trace_marks_each_call_that_was_answered_from_invented_data() -> None:
    async with sandboxed(MEMORY_TOOL_ROUNDS="true") as client:
        invented, real = [(await ask(client, each, **JSON)).json() for each in ("weather", "time")]
        streamed = events_of((await ask(client, "weather", **EVENTS)).text)
        kept = (await client.get("/chat/s-1")).json()["messages"]
    assert [each["tool_calls"][0].get("sandbox") for each in (invented, real)] == [True, None]
    assert [each.data["sandbox"] for each in streamed if each.name == "tool_call_finished"] == [True]
    results = [each for one in kept for each in one.get("responses", ())]
    assert [each.get("sandbox") for each in results] == [True, None, True]


async def test_a_resumed_answer_is_marked_for_sandbox_data_from_before_the_pause() -> None:
    script = turns(asks(WEATHER), asks(("switchLight", {"on": True})), says("Mild, and light."), says("Good night."))
    async with (
        serving(create_sandbox()) as url,
        OpenAIPlayer(script) as player,
        service(LIGHTS, SANDBOX_URL=url, OPENAI_BASE_URL=player.base_url) as client,
    ):
        place, call = await waiting(client, "/chat", userInput="weather and light", sessionId="s-1")
        answer = (await approve(client, place, call)).json()["answer"]
        await ask(client, "thanks")
        kept = await conversation(client)
    assert answer == f"Mild, and light.{NOTICE}"
    assert [text for role, text in kept if role == "assistant"] == [answer, "Good night."]
    assert NOTICE not in str([each.body for each in player.requests[:3]])


LIMIT = {"TOOL_MAX_CALLS_PER_SESSION": "3"}


def looks_twice(request: PlayedRequest) -> Answer:
    """A model that looks at two clocks at once and answers with whatever it is told."""
    told = request.body["messages"][-1]["role"] == "tool"
    return turns(says("ok") if told else asks(clock("Europe/Paris"), clock("Asia/Tokyo")))(request)


async def outcomes(client: httpx.AsyncClient, question: str, session: str = "s-1") -> Counter[str]:
    """What became of the calls of one question."""
    answer = await ask(client, question, session, **JSON)
    assert answer.status_code == 200, answer.text
    return Counter(each.get("error_kind", "ok") for each in answer.json()["tool_calls"])


async def test_calls_of_a_conversation_are_counted_over_its_questions() -> None:
    async with OpenAIPlayer(looks_twice) as player, service(OPENAI_BASE_URL=player.base_url, **LIMIT) as client:
        told = [await outcomes(client, "What time is it?") for _ in range(3)]
        other = await outcomes(client, "What time is it?", "s-2")
    assert [each["ok"] for each in told] == [2, 1, 0]
    assert [each["limit"] for each in told] == [0, 1, 2]
    assert other == {"ok": 2}


async def test_a_conversation_that_is_forgotten_begins_to_count_anew() -> None:
    async with OpenAIPlayer(looks_twice) as player, service(OPENAI_BASE_URL=player.base_url, **LIMIT) as client:
        await outcomes(client, "What time is it?")
        assert (await client.delete("/chat/s-1")).status_code == 204
        assert await outcomes(client, "What time is it?") == {"ok": 2}
