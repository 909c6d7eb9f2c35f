"""Two versions of the service share a store while one replaces the other: each reads the other's records."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from app.tools.todo.advisors import PLANNING
from tests.chat.played import asks, says, update
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.serving import service
from tests.sessions import older_version
from tests.sessions.deciding import LIGHTS, approve
from tests.sessions.older_version import CALLER, VARIABLES, Left, Model, ask, complete, leave, run, set_alarm
from tests.sessions.replicas import needs_redis
from toolchat.state.base import RECORD_VERSION

pytestmark = needs_redis

_LATER = {
    "Again": (says("hello again"),),
    # The second call is broken, which an advisor of the paused turn repairs.
    "Plan": (asks(update(("a", "completed"))), asks(("getCityTimeFunction", '{"timeZoneId": ')), says("done")),
    "Both": (says("both"),),
}


@asynccontextmanager
async def shared() -> AsyncGenerator[tuple[RedisServer, OpenAIPlayer, Model, dict[str, str]], None]:
    """A Redis and a model, and the settings of services that use them."""
    model = Model()
    async with RedisServer() as redis, OpenAIPlayer(model) as player:
        yield redis, player, model, VARIABLES | {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url}


async def continues(client: httpx.AsyncClient, left: Left, player: OpenAIPlayer) -> None:
    """Check that a version finds, continues and deletes what the other one has left."""
    player.requests.clear()
    await ask(client, "/chat", "Again", "talk")
    talk = (await client.get("/chat/talk", headers=CALLER)).json()
    assert [each["text"] for each in talk["messages"]] == ["Hello", "hello", "Again", "hello again"]
    assert [each["content"] for each in player.requests.pop().body["messages"][1:]] == ["Hello", "hello", "Again"]

    assert (await client.get("/todo/plan", headers=CALLER)).json()["total"] == 1
    plan = (await approve(client, f"/approvals/{left.plan}", "c0", **CALLER)).json()
    assert (plan["answer"], plan["session_id"]) == ("done", "plan")
    assert [each["name"] for each in plan["tool_calls"]] == ["switchLight", "todoUpdate"]
    assert [str(each.body).count(PLANNING[:40]) for each in player.requests] == [1, 1, 1]
    assert (await client.get("/todo/plan", headers=CALLER)).json()["completed"] == 1
    assert (await approve(client, f"/approvals/{left.plan}", "c0", **CALLER)).status_code == 404

    assert (await client.delete("/chat/light", headers=CALLER)).status_code == 204
    assert (await approve(client, f"/approvals/{left.light}", "c0", **CALLER)).status_code == 404

    again = await set_alarm(client)
    assert (again.json()["answer"], again.headers.get("idempotency-replayed")) == ("set", "true")
    (alarm,) = (await client.get("/tool/alarms", headers=CALLER)).json()
    assert (await client.delete(f"/tool/alarms/{alarm['id']}", headers=CALLER)).status_code == 200
    assert (await run(client)).json() | {"request_id": ""} == left.run | {"request_id": ""}

    own, found = await client_results(client, left, player)
    assert "Asia/Tokyo" in own
    assert found == "found"


async def client_results(client: httpx.AsyncClient, left: Left, player: OpenAIPlayer) -> list[str]:
    """Send the result of the client's tool; gives all results that the model reads then."""
    calls = {"role": "assistant", "content": None, "tool_calls": [left.call]}
    await complete(client, calls, {"role": "tool", "tool_call_id": left.call["id"], "content": "found"})
    return [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "tool"]


async def test_the_records_of_the_version_before_are_read() -> None:
    document = json.loads(older_version.RECORDS.read_text(encoding="utf-8"))
    async with shared() as (redis, player, model, variables), service(LIGHTS, **variables) as client:
        for key, value in document["records"].items():
            await redis.run("SET", key, value)
        model.play(_LATER)
        await continues(client, Left(**document["left"]), player)


if older_version.in_history():  # a shallow clone has the recorded ones only

    @pytest.mark.slow
    @pytest.mark.parametrize("older_first", [True, False])
    async def test_two_versions_side_by_side_read_each_others_records(tmp_path: Path, *, older_first: bool) -> None:
        async with AsyncExitStack() as stack:
            _, player, model, variables = await stack.enter_async_context(shared())
            older = await stack.enter_async_context(older_version.running(tmp_path, **variables))
            newer = await stack.enter_async_context(service(LIGHTS, **variables))
            left = await leave(older if older_first else newer)
            model.play(_LATER)
            await continues(newer if older_first else older, left, player)


async def test_the_records_of_a_newer_version_are_refused_and_stay() -> None:
    async with shared() as (redis, player, model, variables), service(LIGHTS, **variables) as client:
        left = await leave(client)
        written, newer = f'"version":{RECORD_VERSION}', f'"version":{RECORD_VERSION + 1}'
        before = await older_version.records(redis)
        for key, value in before.items():
            await redis.run("SET", key, value.replace(written, newer).replace('"role":', '"part":'))
        before = await older_version.records(redis)
        answers = [
            await client.get("/chat/talk", headers=CALLER),
            await client.get("/chat", params={"query": "Hello", "sessionId": "talk"}, headers=CALLER),
            await client.get("/todo/plan", headers=CALLER),
            await approve(client, f"/approvals/{left.plan}", "c0", **CALLER),
            await set_alarm(client),
            await client.get("/tool/alarms", headers=CALLER),
            await run(client),
        ]
        after = await older_version.records(redis)
        model.play(_LATER)
        results = await client_results(client, left, player)

    assert {(each.status_code, each.json()["code"], each.headers["retry-after"]) for each in answers} == {
        (503, "store-unavailable", "1")
    }
    assert {"newer version" in each.json()["detail"] for each in answers} == {True}
    assert after == before
    assert results == ["found"]  # without what the service knows, the client's own messages make the conversation
