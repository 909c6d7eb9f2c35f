"""What a session's question asks of Redis, as the server itself tells it."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
from redis.asyncio import Redis

from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.serving import service
from tests.sessions.conversing import ask, reply, sociable
from tests.sessions.replicas import needs_redis
from tests.waiting import PATIENCE

pytestmark = needs_redis

MOST_COMMANDS = 11
"""With those that the two scripts run."""


@pytest.fixture
async def redis() -> AsyncGenerator[RedisServer, None]:
    async with RedisServer() as redis:
        yield redis


@pytest.fixture
async def client(redis: RedisServer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with (
        OpenAIPlayer(sociable) as player,
        service(REDIS_URL=redis.url, OPENAI_BASE_URL=player.base_url) as client,
    ):
        yield client


async def commands_of(redis: RedisServer, client: httpx.AsyncClient, question: str) -> list[tuple[str, str]]:
    """What the server is asked while a question is answered: who asks, a client or ``lua``, and for what."""
    seen: list[tuple[str, str]] = []
    async with Redis.from_url(redis.url) as watching, watching.monitor() as monitor:
        assert (await ask(client, question, "s-1")).text == reply(question)
        await redis.run("ECHO", "the end")
        async with asyncio.timeout(PATIENCE):
            while "the end" not in (each := await monitor.next_command())["command"]:
                if "probe" not in each["command"]:
                    seen.append((each["client_type"], each["command"].split(" ")[0]))
    return [each for each in seen if each[1] not in ("CLIENT", "AUTH", "HELLO", "SELECT")]


async def test_a_question_of_a_session_takes_two_round_trips(redis: RedisServer, client: httpx.AsyncClient) -> None:
    # One takes the lock and brings what is kept, one keeps the turn and gives the lock back.
    await ask(client, "first", "s-1")  # from now on the server knows the scripts
    for question in ("second", "third"):
        seen = await commands_of(redis, client, question)
        assert [name for asker, name in seen if asker != "lua"] == ["EVALSHA", "EVALSHA"]
        assert len(seen) <= MOST_COMMANDS, seen
