"""Alarms and idempotency keys at two replicas that share a Redis."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from tests.app.tools.alarms.asking import alarm_at, alarms, key
from tests.app.tools.examples.asking import SAID
from tests.chat.played import EVENTS, JSON
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, Script, delta, sse
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.conversing import metric
from tests.service.api.sessions.replicas import running_replicas
from tests.serving import client_of, events_of, service
from tests.waiting import until


def obedient(request: PlayedRequest) -> Answer:
    """A model that sets an alarm at the time which is the question."""
    last = request.body["messages"][-1]
    return alarm_at(last["content"]) if last["role"] == "user" else SAID


@asynccontextmanager
async def two_replicas(
    script: Script = obedient,
) -> AsyncGenerator[tuple[list[httpx.AsyncClient], OpenAIPlayer, RedisServer], None]:
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisServer())
        player = await stack.enter_async_context(OpenAIPlayer(script))
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url}
        yield [await stack.enter_async_context(service(**variables)) for _ in range(2)], player, redis


async def post(client: httpx.AsyncClient, time: str, **headers: str) -> httpx.Response:
    return await client.post("/tool/alarm", json={"query": time}, headers=key(**headers))


async def test_another_replica_replays_the_answer_and_sets_no_alarm() -> None:
    async with two_replicas() as ((here, there), player, _):
        first = await post(here, "PT1H", **JSON)
        again = [await post(there, "PT1H", **form) for form in (JSON, {}, EVENTS)]
        other = await post(there, "PT2H")
        assert len(await alarms(here)) == 1
    assert [each.headers["idempotency-replayed"] for each in again] == ["true"] * 3
    for part in ("answer", "tool_calls", "rounds", "usage", "model", "finish_reason"):
        assert again[0].json()[part] == first.json()[part]
    names = [event.name for event in events_of(again[2].text)]
    assert names == ["tool_call_started", "tool_call_finished", "delta", "usage", "done"]
    assert (other.status_code, other.json()["code"], len(player.requests)) == (422, "validation", 2)


async def test_an_alarm_due_during_a_store_outage_is_fired_afterwards() -> None:
    async with two_replicas() as ((here, _), _, redis):
        await post(here, "PT0.5S")
        redis.freeze()

        async def is_away() -> bool:
            return await metric(here, "state_store_up", kind="redis") == 0

        await until(is_away)
        for answer in (await here.get("/tool/alarms"), await post(here, "PT1H", name="k-2")):
            assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
        redis.thaw()

        async def has_fired() -> bool:
            listed = await here.get("/tool/alarms")
            return listed.status_code == 200 and [each["status"] for each in listed.json()] == ["fired"]

        await until(has_fired)


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
