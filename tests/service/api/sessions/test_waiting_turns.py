"""A turn that waits for approval: outside the conversation until it is approved, and then whole."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.chat.played import asks
from tests.command_line import started, with_tools
from tests.players.openai_player import Answer, PlayedRequest, message, whole
from tests.players.redis_server import RedisServer
from tests.service.api.guarded import LIGHT
from tests.service.api.sessions.conversing import (
    EVENTS,
    JSON,
    GatedPlayer,
    ask,
    faults,
    questions,
    reply,
    sociable,
)
from tests.service.api.sessions.test_interrupted_turns import go_on
from tests.serving import client_of
from tests.waiting import until


def careful(request: PlayedRequest) -> Answer:
    """A sociable model that switches the light when it is asked to."""
    last = request.body["messages"][-1]
    if last["role"] == "user" and last["content"].startswith("light"):
        return whole(message("tool_calls", **asks(("switchLight", {"on": True}))))
    return whole(message(content=f"It is {last['content']}.")) if last["role"] == "tool" else sociable(request)


@asynccontextmanager
async def service_with_light(
    tmp_path: Path, **variables: str
) -> AsyncGenerator[tuple[httpx.AsyncClient, GatedPlayer], None]:
    async with GatedPlayer(careful) as player:
        variables |= {"OPENAI_BASE_URL": player.base_url, "MEMORY_TOOL_ROUNDS": "true"}
        with started(cwd=tmp_path, **with_tools(tmp_path, {"light": LIGHT}), **variables) as (_, url):
            async with client_of(url) as client:
                yield client, player


async def test_a_paused_turn_is_stored_only_after_it_ends(tmp_path: Path) -> None:
    # Another turn of the session may come between: it does not know of the one that waits, nor break it.
    async with service_with_light(tmp_path) as (client, player):
        await ask(client, "before")
        waiting = (await ask(client, "light", **JSON)).json()
        assert (waiting["finish_reason"], waiting["session_id"]) == ("approval_required", "s-1")
        await go_on(client, player)

        (call,) = waiting["approval"]["calls"]
        decisions = {"decisions": {call["id"]: {"approved": True}}}
        approved = await client.post(f"/approvals/{waiting['approval']['id']}", json=decisions, headers=JSON)
        assert (approved.json()["answer"], approved.json()["session_id"]) == ("It is on.", "s-1")
        assert questions(player.requests[-1]) == ["before", "light"]
        assert faults(player.requests[-1].body["messages"]) == []

        await ask(client, "last")
        messages = player.requests[-1].body["messages"]
        assert faults(messages) == []
        assert [each["content"] for each in messages[1:]] == [
            "before", reply("before"), "after", reply("after"), "light", "", "on", "It is on.", "last"
        ]  # fmt: skip


async def test_a_paused_turn_is_not_run_by_a_browser_that_reconnects(tmp_path: Path) -> None:
    async with service_with_light(tmp_path) as (client, player):
        waiting = (await ask(client, "light", **JSON)).json()["approval"]
        path, call = f"/approvals/{waiting['id']}", waiting["calls"][0]["id"]
        decisions = {"decisions": {call: {"approved": True}}}
        again = await client.post(path, json=decisions, headers=EVENTS | {"Last-Event-ID": "1"})
        assert (again.status_code, len(player.requests)) == (204, 1)
        assert (await client.post(path, json=decisions, headers=JSON)).json()["answer"] == "It is on."


async def asked(player: GatedPlayer, times: int) -> None:
    async def reached() -> bool:
        return len(player.requests) == times

    await until(reached)


async def test_an_approval_rejected_before_anything_ran_can_be_repeated(tmp_path: Path) -> None:
    # While another question of the session runs, and while there is no room for a question at all.
    async with service_with_light(tmp_path, SESSION_WAIT="0.1", MAX_QUESTIONS="4") as (
        client,
        player,
    ):
        waiting = (await ask(client, "light", **JSON)).json()["approval"]
        path, decisions = f"/approvals/{waiting['id']}", {"decisions": {waiting["calls"][0]["id"]: {"approved": True}}}
        player.gate.clear()
        running = [asyncio.create_task(ask(client, "slow"))]
        await asked(player, 2)
        busy = await client.post(path, json=decisions, headers=JSON)
        running.append(asyncio.create_task(ask(client, "slow", "s-2")))
        await asked(player, 3)
        full = await client.post(path, json=decisions, headers=JSON)
        assert [(each.status_code, each.json()["code"]) for each in (busy, full)] == [
            (409, "session-busy"),
            (503, "overloaded"),
        ]
        player.gate.set()
        await asyncio.gather(*running)
        again = await client.post(path, json=decisions, headers=JSON)
        assert (again.status_code, again.json()["answer"]) == (200, "It is on.")
        assert (await client.post(path, json=decisions)).status_code == 404


async def test_an_approval_during_a_store_outage_can_be_repeated(tmp_path: Path) -> None:
    async with RedisServer() as redis, service_with_light(tmp_path, REDIS_URL=redis.url) as (client, _):
        waiting = (await ask(client, "light", **JSON)).json()["approval"]
        path, decisions = f"/approvals/{waiting['id']}", {"decisions": {waiting["calls"][0]["id"]: {"approved": True}}}
        redis.freeze()
        away = await client.post(path, json=decisions, headers=JSON)
        assert (away.status_code, away.json()["code"]) == (503, "store-unavailable")
        redis.thaw()

        async def back() -> bool:
            return bool((await client.get("/health/ready")).json()["state_store"]["available"])

        await until(back)
        again = await client.post(path, json=decisions, headers=JSON)
        assert (again.status_code, again.json()["answer"]) == (200, "It is on.")
