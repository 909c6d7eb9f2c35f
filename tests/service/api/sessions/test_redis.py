"""Sessions with Redis: its commands, and what happens without it."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.conversing import EVENTS, JSON, GatedPlayer, ask, conversation, metric, reply, sociable
from tests.serving import events_of, service
from tests.waiting import PATIENCE, until
from toolchat.service.observability.logs import JsonFormatter

WARNING = "the state store cannot be used"


async def readiness(client: httpx.AsyncClient) -> Any:
    answer = await client.get("/health/ready")
    assert answer.status_code == 200
    return answer.json()


async def assert_away(client: httpx.AsyncClient, answers: int) -> None:
    """What needs the store is refused at once, and nothing else is."""
    needing = [("GET", "/chat?query=hello&sessionId=s-1"), ("GET", "/chat/stream?query=hello&sessionId=s-1"),
               ("GET", "/chat/s-1"), ("DELETE", "/chat/s-1"), ("GET", "/todo/s-1")]  # fmt: skip
    async with asyncio.timeout(PATIENCE):  # REDIS_TIMEOUT for each would be more
        for method, path in needing * 5:
            refused = await client.request(method, path)
            assert (refused.status_code, refused.json()["code"]) == (503, "store-unavailable"), path
            assert (refused.json()["retryable"], refused.headers["retry-after"]) == (True, "1")
    for _ in range(answers):
        for path in ("/time/chat", "/chat"):  # the session of the second would have been a new one
            assert (await client.get(path, params={"query": "hello"})).text == reply("hello")
    ready = await readiness(client)
    assert (ready["status"], ready["state_store"]) == ("degraded", {"kind": "redis", "available": False})
    assert (await client.get("/health/live")).json() == {"status": "ok"}
    assert await metric(client, "state_store_up", kind="redis") == 0
    assert await metric(client, "state_store_failures_total", kind="redis") >= 5


async def assert_back(client: httpx.AsyncClient) -> None:
    """It works again by itself.

    In a session of its own: a frozen Redis still gives the lock that was asked for last, for some seconds, to nobody.
    """

    async def is_up() -> bool:
        return await metric(client, "state_store_up", kind="redis") == 1

    await until(is_up)
    assert (await readiness(client))["status"] == "ok"
    assert (await ask(client, "back", "s-2")).text == reply("back")


@asynccontextmanager
async def redis_service(server: RedisServer, player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service with this Redis and this model."""
    async with service(REDIS_URL=server.url, OPENAI_BASE_URL=player.base_url) as client:
        yield client


async def take_away(server: RedisServer, way: str) -> None:
    if way == "frozen":
        server.freeze()
    else:
        await server.kill()


async def bring_back(server: RedisServer, way: str) -> None:
    if way == "frozen":
        server.thaw()
    else:
        await server.start()


@pytest.mark.parametrize("way", ["absent", "frozen", "killed"])
async def test_without_redis_only_requests_that_need_it_fail_and_it_reconnects(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Absent at the start, frozen or killed: one line in the log, a figure, readiness that says so, and no restart.
    async with RedisServer(password="canary-of-redis") as server, OpenAIPlayer(sociable) as player:
        if way == "absent":
            await server.kill()
        async with redis_service(server, player) as client:
            if way != "absent":
                assert (await ask(client, "before")).text == reply("before")
                assert (await readiness(client))["state_store"] == {"kind": "redis", "available": True}
                await take_away(server, way)
            await assert_away(client, answers=3)
            await bring_back(server, way)
            await assert_back(client)
            kept = [text for _, text in await conversation(client)]
            assert kept == (["before", reply("before")] if way == "frozen" else [])
    state = [each for each in caplog.records if each.name.startswith("toolchat.state")]
    assert [each.getMessage() for each in state if each.levelno >= logging.WARNING] == [WARNING]
    assert "canary-of-redis" not in "".join(map(JsonFormatter().format, caplog.records))


@pytest.mark.parametrize("form", [EVENTS, JSON], ids=["streamed", "whole"])
async def test_an_answer_that_cannot_be_stored_ends_with_an_error(form: dict[str, str]) -> None:
    # Redis dies while the model writes: the stream has an `error` and no `done`, a whole answer becomes 503.

    def script(request: PlayedRequest) -> Answer:
        if request.body["messages"][-1]["role"] == "tool":
            player.gate.clear()
        return sociable(request)

    async def is_writing() -> bool:
        return not player.gate.is_set()

    async with RedisServer() as server, GatedPlayer(script) as player, redis_service(server, player) as client:
        question = asyncio.create_task(ask(client, "What time is it in Asia/Tokyo?", **form))
        await until(is_writing)
        await server.kill()
        player.gate.set()
        answer = await question
        await server.start()
        await assert_back(client)
        assert await conversation(client) == []
        assert (await ask(client, "again")).text == reply("again")

    if form == JSON:
        assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
        return
    names = [each.name for each in events_of(answer.text)]
    assert answer.status_code == 200
    assert {"delta", "tool_call_started", "tool_call_finished"} <= set(names)
    assert (names[-1], events_of(answer.text)[-1].data["code"]) == ("error", "store-unavailable")
    assert "done" not in names
