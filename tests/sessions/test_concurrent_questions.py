"""Many questions at once: one session answers them in a row, and sessions do not mix."""

import asyncio
import re

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, sse
from tests.server.raw_client import RawClient
from tests.serving import service
from tests.sessions.conversing import (
    JSON,
    GatedPlayer,
    ask,
    conversation,
    faults,
    history,
    questions,
    reply,
    sociable,
)
from tests.waiting import until

ROOM = {"MEMORY_MAX_MESSAGES": "1000", "MEMORY_MAX_TOKENS": "1000000", "SESSION_WAIT": "60"}


def assert_serial(requests: list[PlayedRequest], answered: set[str]) -> None:
    """Each request brings exactly the turns that were asked before it, and none is lost."""
    asked = [questions(each) for each in requests]
    assert asked == [asked[-1][: place + 1] for place in range(len(asked))]
    assert set(asked[-1]) == answered
    assert len(asked[-1]) == len(answered)
    assert [each for each in requests if faults(each.body["messages"])] == []


async def test_fifty_questions_of_one_session_are_answered_in_a_row_and_the_overflow_is_refused() -> None:
    # One is answered, 32 wait their turn, and the others are told at once to come again.
    async with GatedPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url, **ROOM) as client:
        player.gate.clear()
        tasks = [asyncio.create_task(ask(client, f"q{number}")) for number in range(50)]

        async def all_refused() -> bool:
            return sum(task.done() for task in tasks) == 17

        await until(all_refused)
        player.gate.set()
        answers = [await task for task in tasks]
        kept = await conversation(client)

    answered = {f"q{number}" for number, answer in enumerate(answers) if answer.status_code == 200}
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {(each.status_code, each.json()["code"], each.headers["retry-after"]) for each in refused} == {
        (409, "session-busy", "1")
    }
    assert (len(answered), len(refused)) == (33, 17)
    assert all(answer.text == reply(f"q{n}") for n, answer in enumerate(answers) if answer.status_code == 200)
    assert_serial(player.requests, answered)
    assert [text for role, text in kept if role == "user"] == questions(player.requests[-1])


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


async def test_after_done_the_turn_is_stored_and_the_session_is_free() -> None:
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url, SESSION_WAIT="0") as client:
        for number in range(20):
            async with RawClient(str(client.base_url)) as reader:
                await reader.ask(f"/chat?userInput=q{number}&sessionId=s-1")
                await reader.read_until(b"event: done")
                next_answer = await ask(client, f"and {number}")
            assert (next_answer.status_code, next_answer.text) == (200, reply(f"and {number}"))
        assert len(await conversation(client)) == 80
