"""Many questions at once: one session answers them in a row, and sessions do not mix."""

import asyncio
import re

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, sse
from tests.service.api.sessions.conversing import (
    JSON,
    GatedPlayer,
    ask,
    faults,
    history,
    questions,
    reply,
    sociable,
)
from tests.serving import service
from tests.waiting import until

ROOM = {"MEMORY_MAX_MESSAGES": "1000", "MEMORY_MAX_TOKENS": "1000000", "SESSION_WAIT": "60"}


def assert_serial(requests: list[PlayedRequest], answered: set[str]) -> None:
    """Each request brings exactly the turns that were asked before it, and none is lost."""
    asked = [questions(each) for each in requests]
    assert asked == [asked[-1][: place + 1] for place in range(len(asked))]
    assert set(asked[-1]) == answered
    assert len(asked[-1]) == len(answered)
    assert [each for each in requests if faults(each.body["messages"])] == []


async def test_a_request_that_waits_too_long_gets_session_busy() -> None:
    # The running turn is not disturbed by it.
    variables = {"SESSION_WAIT": "0.2"}
    async with GatedPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url, **variables) as client:
        player.gate.clear()
        running = asyncio.create_task(ask(client, "first"))
        await until(player.asked.is_set)
        busy = await ask(client, "second", **JSON)
        forgotten = await client.delete("/chat/s-1")
        player.gate.set()
        assert (await running).text == reply("first")
    for refused in (busy, forgotten):
        assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (409, "session-busy", True)
        assert refused.headers["retry-after"] == "1"
    assert len(player.requests) == 1


SESSIONS, TURNS = 40, 5


def canary(session: int) -> str:
    return f"canary{session:03d}"


def capricious(request: PlayedRequest) -> Answer:
    """A sociable model whose third answer to every fourth session breaks off."""
    breaks = re.search(r"canary\d\d[048] asks 2", questions(request)[-1])
    return sse(delta(content="I"), done=False, ending="cut") if breaks else sociable(request)


async def talk(client: httpx.AsyncClient, session: int, side_by_side: asyncio.Semaphore) -> list[str]:
    """Ask all questions of a session one after another; those that were answered."""
    answered = []
    parameters = {"sessionId": f"s-{session}", "tools": "getCityTimeFunction"}
    for turn in range(TURNS):
        question = f"{canary(session)} asks {turn}" + (" Asia/Tokyo" if turn == 1 else "")
        path = "/chat/stream" if turn == 2 else "/chat"
        async with side_by_side:
            answer = await client.get(path, params=parameters | {"userInput": question})
        if "event: error" not in answer.text:
            assert (answer.status_code, reply(question) in answer.text) == (200, True)
            answered.append(question)
    return answered


@pytest.mark.slow
async def test_no_session_sees_anything_of_another_one() -> None:
    # Forty sessions, five turns each, interleaved, a quarter of them with a turn that breaks off.
    async with OpenAIPlayer(capricious) as player, service(OPENAI_BASE_URL=player.base_url, **ROOM) as client:
        side_by_side = asyncio.Semaphore(40)
        answered = await asyncio.gather(*(talk(client, session, side_by_side) for session in range(SESSIONS)))

    assert len(player.requests) == SESSIONS * (TURNS + 1)
    for request in player.requests:
        assert len(set(re.findall(r"canary\d+", str(request.body)))) == 1
        session = int(questions(request)[-1][6:9])
        given = [each["content"] for each in history(request) if each["role"] == "user"]
        assert given == answered[session][: len(given)]
    assert {len(each) for each in answered} == {TURNS, TURNS - 1}
    assert sum(len(each) < TURNS for each in answered) == SESSIONS * 3 // 10
