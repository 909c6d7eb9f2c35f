"""Sixty decisions about one answer at once, at two processes: its tools run once."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from tests.api.guarded import LIGHT
from tests.chat.played import EVENTS, JSON
from tests.command_line import with_tools
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.serving import client_of
from tests.sessions.deciding import approve, careful, waiting
from tests.sessions.replicas import Replica, needs_redis, running_replicas

pytestmark = needs_redis

FORMS: tuple[dict[str, str], ...] = ({}, JSON, EVENTS)
CASES: tuple[tuple[str, dict[str, str], set[int]], ...] = (
    ("/light/chat-tool-function", {"query": "Light, please"}, {404}),
    ("/chat", {"userInput": "Light, please", "sessionId": "s-1"}, {404, 409}),
)


@asynccontextmanager
async def two_processes(
    folder: Path, **variables: str
) -> AsyncGenerator[tuple[list[httpx.AsyncClient], list[Replica], OpenAIPlayer], None]:
    """Two processes with a switch that share a Redis, a client for each, and their model."""
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisServer())
        player = await stack.enter_async_context(OpenAIPlayer(careful))
        variables |= {
            "REDIS_URL": redis.url,
            "OPENAI_BASE_URL": player.base_url,
            **with_tools(folder, {"light": LIGHT}),
        }
        processes = await stack.enter_async_context(running_replicas(2, folder, **variables))
        yield [await stack.enter_async_context(client_of(each.url)) for each in processes], processes, player


async def test_of_sixty_decisions_at_two_processes_one_is_taken(tmp_path: Path) -> None:
    # In a session those who wait for it longer than 32 others are told to come again.
    async with two_processes(tmp_path) as (clients, _, player):
        for path, parameters, refusals in CASES:
            place, call = await waiting(clients[0], path, **parameters)
            asked = len(player.requests)
            decisions = [approve(clients[n % 2], place, call, **FORMS[n % 3]) for n in range(60)]
            statuses = Counter(each.status_code for each in await asyncio.gather(*decisions))
            # Where the machine is too busy for Redis to be asked in time, nobody may have it: 503, and nothing ran.
            assert statuses[200] == 1 or (statuses[200] == 0 and statuses[503])
            assert set(statuses) <= {200, 503} | refusals
            assert statuses[200] <= len(player.requests) - asked <= 1
