"""Values in Redis that somebody wrote over: what needs them is refused in words, and nothing else is."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import httpx
import pytest

from tests.chat.played import JSON
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.deciding import LIGHTS, approve, careful, waiting
from tests.serving import service

pytestmark = pytest.mark.slow

SPOILT = [
    '[[{"role":"user","text":5,"version":1}]]',
    '[[{"role":"user","text":"a"},{"role":"assistant","text":"b","trace":"[5]","version":1}]]',
    '[[{"role":"assistant","text":"b","tool_calls":[{"id":5,"name":"a","arguments":"{}"}],"version":1}]]',
    '[[{"role":"tool","responses":[{"id":"1","name":"a","text":null}],"version":1}]]',
    '{"a":1}',
    "5",
    "null",
    "[5]",
    '["x"]',
    "nonsense",
]


@pytest.fixture(scope="module")
async def redis() -> AsyncGenerator[RedisServer, None]:
    async with RedisServer() as redis:
        yield redis


@pytest.fixture(scope="module")
async def client(redis: RedisServer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with OpenAIPlayer(careful) as player:
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url, "TOOL_MAX_CALLS_PER_SESSION": "99"}
        async with service(LIGHTS, **variables) as client:
            yield client


Look = Callable[[], Coroutine[Any, Any, httpx.Response]]


async def test_an_unreadable_record_is_no_unexpected_error(redis: RedisServer, client: httpx.AsyncClient) -> None:
    for spoilt in SPOILT:
        looks = await _kept(client)
        for key in await _keys(redis):
            await redis.run("SET", key, spoilt)
        for look in looks:
            answer = await look()
            assert answer.status_code != 500, (spoilt, str(answer.request.url), answer.text)
            assert answer.status_code < 500 or answer.json()["code"] in ("store-unavailable", "pause-impossible")
        assert (await client.get("/chat", params={"query": "hello", "sessionId": "other"})).status_code == 200
        await redis.run("FLUSHALL")


async def _kept(client: httpx.AsyncClient) -> list[Look]:
    """Have something kept of every kind; gives what looks at it."""
    place, call = await waiting(client, query="please", sessionId="s-1")
    session = {"query": "hello", "sessionId": "s-2"}
    await client.get("/chat", params=session)
    await client.get("/todo/chat", params=session)
    alarm: dict[str, Any] = {"headers": {"Idempotency-Key": "k-1"}, "params": {"query": "Wake me in 10 minutes"}}
    await client.post("/tool/alarm", **alarm)
    return [
        lambda: approve(client, place, call),
        lambda: client.get("/chat", params=session, headers=JSON),
        lambda: client.get("/chat/s-2"),
        lambda: client.get("/chat/s-1"),
        lambda: client.get("/todo/chat", params=session),
        lambda: client.get("/todo/s-2"),
        lambda: client.get("/tool/alarms"),
        lambda: client.delete("/tool/alarms/1"),
        lambda: client.post("/tool/alarm", **alarm),
        lambda: client.delete("/chat/s-1"),
        lambda: client.delete("/chat/s-2"),
    ]


async def _keys(redis: RedisServer) -> list[str]:
    keys = await redis.run("KEYS", "toolchat:*")
    assert isinstance(keys, list)
    return [key.decode() for key in keys if b"probe" not in key]
