"""An answer that waits for approval waits at every replica, and goes on at one, once."""

import asyncio
from collections import Counter

import httpx
import pytest

from app.tools.todo.advisors import PLANNING, REMINDER
from tests.chat.played import EVENTS, JSON, asks, clock, says, turns, update
from tests.models.openai.test_responses_wire import CALL, REASONING, response, text_item
from tests.players.openai_player import whole
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.conversing import metric
from tests.service.api.sessions.deciding import LIGHTS, approve, replicas, waiting
from tests.serving import events_of
from tests.waiting import PATIENCE, until


async def test_a_paused_turn_resumes_at_another_replica_with_all_its_parts() -> None:
    async with replicas(LIGHTS) as ((here, there), player, _):
        answer = await approve(there, *await waiting(here))
    assert answer.json()["answer"] == "It is on in the attic. (signed)"
    first, second = [each.body for each in player.requests]
    assert [(each["temperature"], each["max_tokens"]) for each in (first, second)] == [(0.5, 7)] * 2
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2]["reasoning_content"] == "It is dark."
    assert [each["role"] for each in second["messages"]] == ["system", "user", "assistant", "tool"]


async def test_encrypted_reasoning_goes_on_at_another_replica() -> None:
    # Models with the Responses API refuse a call without the reasoning that led to it.
    call = CALL | {"name": "switchLight", "arguments": '{"on": true}'}
    script = [whole(response(REASONING, call)), whole(response(text_item("It is on.")))]
    async with replicas(LIGHTS, script=script, OPENAI_API="responses") as ((here, there), player, _):
        answer = await approve(there, *await waiting(here, "/chat", userInput="Light, please"))
    assert answer.json()["answer"] == "It is on."
    reasoning, called, output = player.requests[-1].body["input"][-3:]
    assert (reasoning["encrypted_content"], called["call_id"]) == (REASONING["encrypted_content"], "call_1")
    assert (output["type"], output["call_id"]) == ("function_call_output", "call_1")


async def test_a_turn_that_pauses_again_elsewhere_resumes_here() -> None:
    async with replicas(LIGHTS) as ((here, there), _, _):
        place, call = await waiting(here, "/light/chat-tool-function", query="Light, please, and another, please")
        again = (await approve(there, place, call)).json()["approval"]
        done = await approve(here, f"/approvals/{again['id']}", again["calls"][0]["id"])
        assert done.json()["answer"] == "It is on in the hall and on in the hall."
        assert [(await approve(there, each, call)).status_code for each in (place, f"/approvals/{again['id']}")] == [
            404,
            404,
        ]


async def test_a_paused_plan_resumes_at_another_replica_as_a_plan() -> None:
    # With its instructions, its reminder, the events of its list, and repairs of broken calls.
    looks = [asks(clock(zone)) for zone in ("Asia/Tokyo", "Europe/Paris")]
    broken = asks(("getCityTimeFunction", '{"timeZoneId": '))
    script = turns(asks(("switchLight", {"on": True})), *looks, broken, asks(update(("a", "pending"))), says("done"))
    async with replicas(LIGHTS, script=script) as ((here, there), player, _):
        place, call = await waiting(here, "/todo/chat", query="Plan", sessionId="s-1")
        events = events_of((await approve(there, place, call, **EVENTS)).text)
    assert [str(each.body).count(PLANNING[:40]) for each in player.requests] == [1] * 6
    assert [REMINDER in str(each.body) for each in player.requests] == [False, False, False, True, True, False]
    assert [each.data["total"] for each in events if each.name == "todo"] == [1]
    assert [each["outcome"] for each in events[-1].data["tool_calls"]] == ["ok"] * 4


async def test_a_replica_without_the_tool_rejects_and_the_turn_stays_paused() -> None:
    async with replicas() as ((here, there), player, _):
        place, call = await waiting(here)
        refused = await approve(there, place, call)
        assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (409, "part-missing", True)
        assert "switchLight" in refused.json()["detail"]
        assert len(player.requests) == 1
        assert (await approve(here, place, call)).json()["answer"] == "It is on in the attic. (signed)"


async def test_an_unreadable_paused_turn_is_rejected_and_stays_paused() -> None:
    async with replicas(LIGHTS) as ((here, there), player, redis):
        place, call = await waiting(here)
        (key,) = await kept(redis)
        no_answer = '{"version": 1, "messages": [{"role": "user", "text": ""}]}'
        for record in ("{}", '{"version": 1, "messages": []}', no_answer, "[", "[1]", "null"):
            await redis.run("SET", key, record)
            refused = await approve(there, place, call)
            assert (refused.status_code, refused.json()["code"]) == (409, "part-missing"), record
        assert (len(player.requests), await kept(redis)) == (1, [key])


async def test_all_paused_turns_of_a_conversation_are_deleted_with_it_at_any_replica() -> None:
    async with replicas(LIGHTS) as ((here, there), player, redis):
        asking = {"userInput": "Light, please", "sessionId": "s-1"}
        gone = [await waiting(each, "/chat", **asking) for each in (here, there, here)]
        other = await waiting(here, "/chat", **asking | {"sessionId": "s-2"})
        assert (await there.delete("/chat/s-1")).status_code == 204
        assert len(await kept(redis)) == 1
        assert [(await approve(here, *each)).status_code for each in gone] == [404] * 3
        assert len(player.requests) == 4
        assert (await approve(here, *other)).status_code == 200


async def test_a_turn_stays_paused_if_the_client_disconnects_during_its_decision() -> None:
    async with replicas(LIGHTS) as ((here, there), player, redis):
        place, call = await waiting(here)
        while not await left_in_time(there, place, call, redis):
            place, call = await waiting(here)
        asked = len(player.requests)

        async def is_taken() -> bool:
            return (await approve(here, place, call)).status_code == 200

        await until(is_taken)
        assert len(player.requests) == asked + 1


async def left_in_time(client: httpx.AsyncClient, place: str, call: str, redis: RedisServer) -> bool:
    """Leave while Redis holds back what takes the turn up; whether that was before the service gave Redis up."""

    async def is_held() -> bool:
        clients = await redis.run("CLIENT", "LIST")
        assert isinstance(clients, bytes)
        return b"cmd=evalsha" in clients

    given_up = await metric(client, "state_store_failures_total", kind="redis")
    await redis.run("CLIENT", "PAUSE", str(round(1000 * PATIENCE)), "WRITE")
    leaving = asyncio.create_task(approve(client, place, call))
    await until(lambda: is_held() if not leaving.done() else leaving)
    leaving.cancel()
    await redis.run("CLIENT", "UNPAUSE")
    await asyncio.wait({leaving})
    return await metric(client, "state_store_failures_total", kind="redis") == given_up


async def kept(redis: RedisServer) -> list[str]:
    """The keys of the turns that wait."""
    keys = await redis.run("KEYS", "toolchat:approval:*")
    assert isinstance(keys, list)
    return [each.decode() for each in keys]


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/light/chat-tool-function", {"query": "Light, please"}),
        ("/chat", {"userInput": "Light, please", "sessionId": "s-1"}),
    ],
    ids=["alone", "in a session"],
)
async def test_of_many_decisions_about_one_turn_at_two_replicas_one_is_carried_out(
    path: str, parameters: dict[str, str]
) -> None:
    async with replicas(LIGHTS) as ((here, there), player, redis):
        statuses = Counter([503])
        while statuses[503]:  # the machine was too busy to ask Redis in time
            place, call = await waiting(here, path, **parameters)
            asked = len(player.requests)
            statuses = await decide_at_once([here, there] * 6, place, call, redis)
        assert statuses == {200: 1, 404: 11}
        assert len(player.requests) == asked + 1


async def decide_at_once(clients: list[httpx.AsyncClient], place: str, call: str, redis: RedisServer) -> Counter[int]:
    """Hold all writes in Redis back until every request has found the turn; the statuses of the answers."""

    async def have_found() -> bool:
        statistics = await redis.run("INFO", "commandstats")
        assert isinstance(statistics, dict)
        return "cmdstat_get" in statistics and statistics["cmdstat_get"]["calls"] >= len(clients)

    await redis.run("CONFIG", "RESETSTAT")
    await redis.run("CLIENT", "PAUSE", str(round(1000 * PATIENCE)), "WRITE")
    forms: tuple[dict[str, str], ...] = ({}, JSON, EVENTS)
    decisions = [approve(each, place, call, **forms[number % 3]) for number, each in enumerate(clients)]
    answers = asyncio.gather(*decisions)
    await until(have_found)
    await redis.run("CLIENT", "UNPAUSE")
    return Counter(each.status_code for each in await answers)
