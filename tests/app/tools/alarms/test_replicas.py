"""Alarms and idempotency keys at two replicas that share a Redis."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import httpx

from tests.app.tools.alarms.asking import alarm_at, alarms, key
from tests.players.openai_player import OpenAIPlayer, delta, sse
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.replicas import running_replicas
from tests.serving import client_of
from tests.waiting import until


async def post(client: httpx.AsyncClient, time: str, **headers: str) -> httpx.Response:
    return await client.post("/tool/alarm", json={"query": time}, headers=key(**headers))


async def test_the_key_of_a_dead_process_returns_the_alarm_it_has_set(tmp_path: Path) -> None:
    # The lock of the process that died runs out after some seconds; until then its key conflicts.
    script = [alarm_at("PT1H"), sse(delta(content="a"), ending="hang", done=False)]
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisServer())
        player = await stack.enter_async_context(OpenAIPlayer(script))
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url}
        processes = await stack.enter_async_context(running_replicas(2, tmp_path, **variables))
        gone, client = [await stack.enter_async_context(client_of(each.url)) for each in processes]
        dying = asyncio.create_task(post(gone, "PT1H"))
        await until(lambda: len(player.requests) == 2)
        processes[0].kill()
        await asyncio.wait({dying})
        assert isinstance(dying.exception(), httpx.TransportError)

        async def is_free() -> bool:
            return (await post(client, "PT1H")).status_code != 409

        await until(is_free)
        again = await post(client, "PT1H")
        (alarm,) = await alarms(client)
    assert (again.status_code, "闹钟已设置" in again.text) == (200, True)
    assert (alarm["status"], len(player.requests)) == ("waiting", 2)
