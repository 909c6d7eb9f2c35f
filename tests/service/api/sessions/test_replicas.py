"""Two processes with one Redis are one service: each continues what the other began."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, sse
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.conversing import (
    GatedPlayer,
    ask,
    conversation,
    faults,
    metric,
    questions,
    reply,
    sociable,
)
from tests.service.api.sessions.replicas import Replica, behind_nginx, running_replicas
from tests.service.api.sessions.test_concurrent_questions import ROOM, assert_serial
from tests.serving import client_of, events_of, service
from tests.waiting import PATIENCE, until


@asynccontextmanager
async def two_processes(
    player: OpenAIPlayer, folder: Path, **variables: str
) -> AsyncGenerator[tuple[list[Replica], list[httpx.AsyncClient]], None]:
    """Two processes that share a Redis and have each answered a question, and a client for each."""
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisServer())
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url, **variables}
        replicas = await stack.enter_async_context(running_replicas(2, folder, **variables))
        clients = [await stack.enter_async_context(client_of(each.url)) for each in replicas]
        for client in clients:
            assert (await ask(client, "warm up", "warm")).status_code == 200
        player.requests.clear()
        yield replicas, clients


async def ask_patiently(client: httpx.AsyncClient, question: str, session: str) -> str:
    """Ask, and ask again when the service says that this helps, as a client should."""
    for _ in range(5):
        answer = await ask(client, question, session)
        if "retry-after" not in answer.headers:
            break
        await asyncio.sleep(float(answer.headers["retry-after"]))
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_questions_of_one_session_to_two_processes_are_answered_in_a_row(tmp_path: Path) -> None:
    # Of eighty at once each process takes its 33 and refuses the others; no turn is lost or sees half of another.
    #
    # Both show the same conversation; forgotten here, it is gone there.
    async with GatedPlayer(sociable) as player, two_processes(player, tmp_path, **ROOM) as (_, clients):
        player.gate.clear()
        tasks = [asyncio.create_task(ask(clients[number % 2], f"q{number}")) for number in range(80)]

        async def all_refused() -> bool:
            return sum(task.done() for task in tasks) == 14

        await until(all_refused)
        player.gate.set()
        answers = [await task for task in tasks]
        kept = [await conversation(each) for each in clients]
        assert (await clients[0].delete("/chat/s-1")).status_code == 204
        assert await conversation(clients[1]) == []

    answered = {f"q{number}" for number, answer in enumerate(answers) if answer.status_code == 200}
    assert sorted({answer.status_code for answer in answers}) == [200, 409]
    assert len(answered) == 66
    assert_serial(player.requests, answered)
    assert kept[0] == kept[1]
    assert [text for role, text in kept[0] if role == "user"] == questions(player.requests[-1])


CHATS = 12
ZONES = ["", " Asia/Tokyo", "", " Europe/Paris Asia/Seoul", ""]


async def chats(client: httpx.AsyncClient) -> list[list[str]]:
    """Chats of five turns side by side, some turns with tools; their answers."""
    side_by_side = asyncio.Semaphore(8)

    async def chat(number: int) -> list[str]:
        async with side_by_side:
            asked = [f"chat{number:02d} asks {turn}{zone}" for turn, zone in enumerate(ZONES)]
            return [await ask_patiently(client, question, f"s-{number}") for question in asked]

    return await asyncio.gather(*map(chat, range(CHATS)))


def given(player: OpenAIPlayer) -> set[tuple[tuple[str, str], ...]]:
    """Every conversation that a model was given; the results of clocks are left out."""
    return {
        tuple((each["role"], each["content"] if each["role"] != "tool" else "") for each in request.body["messages"])
        for request in player.requests
    }


async def test_chats_that_change_the_process_with_every_question_go_as_on_one(tmp_path: Path) -> None:
    # Through nginx to two processes by turns: the same answers, and the model is given the same.
    async with OpenAIPlayer(sociable) as one, service(OPENAI_BASE_URL=one.base_url) as client:
        expected = await chats(client)
    async with (
        OpenAIPlayer(sociable) as two,
        two_processes(two, tmp_path) as (replicas, _),
        behind_nginx(replicas, tmp_path) as url,
        client_of(url) as client,
    ):
        assert await chats(client) == expected
        await until(lambda: sum(each.finished for each in replicas) >= CHATS * len(ZONES))
        finished = [each.finished for each in replicas]

    assert given(two) == given(one)
    assert [each for each in two.requests if faults(each.body["messages"])] == []
    assert min(finished) > CHATS


HANG = "hang Asia/Tokyo"


class HangingPlayer(GatedPlayer):
    """A sociable model that never ends its answer to "hang", and begins it only when the gate is opened again."""

    def __init__(self) -> None:
        super().__init__(self._hang)

    def _hang(self, request: PlayedRequest) -> Answer:
        if questions(request)[-1] != HANG or request.body["messages"][-1]["role"] == "user":
            return sociable(request)
        self.gate.clear()
        return sse(delta(content="first "), delta(content="words"), done=False, ending="hang")

    async def is_held(self) -> bool:
        """Whether it is asked for that answer."""
        return not self.gate.is_set()


async def test_a_process_that_is_killed_in_the_middle_of_a_turn_leaves_the_session_to_the_other(tmp_path: Path) -> None:
    # Events come through nginx while the model still writes; after the kill nothing of the turn is kept.
    #
    # With no setting changed the other process waits longer than the lock of the dead one lives: nobody sees a 409.
    async with AsyncExitStack() as stack:
        player = await stack.enter_async_context(HangingPlayer())
        replicas, direct = await stack.enter_async_context(two_processes(player, tmp_path))
        url = await stack.enter_async_context(behind_nginx(replicas, tmp_path))
        client = await stack.enter_async_context(client_of(url))
        await ask(client, "before")
        seen = await _streamed_until_killed(client, player, replicas, direct)
        assert [each.data["text"] for each in events_of(seen)[-2:]] == ["first ", "words"]

        after = await ask(client, "after")
        assert (after.status_code, after.text) == (200, reply("after"))
        assert questions(player.requests[-1]) == ["before", "after"]
        kept = [text for _, text in await conversation(client)]
        assert kept == ["before", reply("before"), "after", reply("after")]


async def _streamed_until_killed(
    client: httpx.AsyncClient, player: HangingPlayer, replicas: list[Replica], direct: list[httpx.AsyncClient]
) -> str:
    """What a stream brings of an answer whose process is killed once the last words are there.

    The model goes on only when the client has seen what came before.
    """
    seen = ""
    parameters = {"userInput": HANG, "sessionId": "s-1"}
    async with client.stream("GET", "/chat/stream", params=parameters) as answer, asyncio.timeout(PATIENCE):
        pieces = answer.aiter_text()
        while "tool_call_finished" not in seen:
            seen += await anext(pieces)
        await until(player.is_held)
        player.gate.set()
        while "words" not in seen:
            seen += await anext(pieces)
        working = [await metric(each, "questions_in_flight") for each in direct]
        assert sorted(working) == [0, 1]
        replicas[working.index(1)].kill()
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(pieces)
    return seen
