"""Rolling deployment: every process is replaced again and again while questions come, and no turn is lost."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.conversing import ask, conversation, reply, sociable
from tests.service.api.sessions.replicas import behind_nginx, replacement, running_replicas
from tests.serving import client_of
from tests.waiting import until

pytestmark = pytest.mark.slow(seconds=15)

REPLACEMENTS = 4
CHATS = 4
TURNS = 10
"""Of one session; less than what is kept of it."""


class ThinkingPlayer(OpenAIPlayer):
    """A sociable model that takes its time, so that there are turns under way whenever a process is told to end."""

    def __init__(self) -> None:
        super().__init__(sociable)

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await super()._send(answer, reader, writer)


class Visitor:
    """Asks one question after the other, in a new session now and then, and again what it is asked to ask again."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.acknowledged: dict[str, list[str]] = {}
        """The questions that were answered, by session."""
        self.refused: list[str] = []
        """The codes of all answers that were errors."""

    async def chat(self, client: httpx.AsyncClient, done: asyncio.Event) -> None:
        turn = 0
        while not done.is_set():
            session, question = f"s-{self._number}-{turn // TURNS}", f"question {turn}"
            answer = await ask(client, question, session)
            if answer.status_code == 200:
                assert answer.text == reply(question)
                self.acknowledged.setdefault(session, []).append(question)
                turn += 1
            else:
                self.refused.append(answer.json()["code"])
                await asyncio.sleep(float(answer.headers["retry-after"]))


async def test_replacing_processes_under_load_loses_no_turn(tmp_path: Path) -> None:
    done = asyncio.Event()
    async with RedisServer() as redis, ThinkingPlayer() as player:
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url}
        async with (
            running_replicas(2, tmp_path, **variables) as replicas,
            behind_nginx(replicas, tmp_path) as url,
            client_of(url) as client,
            asyncio.TaskGroup() as tasks,
        ):
            visitors = [Visitor(number) for number in range(CHATS)]
            chats = [tasks.create_task(each.chat(client, done)) for each in visitors]
            for number in range(REPLACEMENTS):
                replicas[number % 2] = await replacement(replicas[number % 2], tmp_path, **variables)
            await until(lambda: any(len(each.acknowledged) > 1 for each in visitors))
            done.set()
            await asyncio.gather(*chats)
            acknowledged = {name: turns for each in visitors for name, turns in each.acknowledged.items()}
            kept = {name: await conversation(client, name) for name in acknowledged}

    assert {code for each in visitors for code in each.refused} <= {"draining"}
    for name, turns in acknowledged.items():
        assert kept[name] == [line for turn in turns for line in (("user", turn), ("assistant", reply(turn)))]
