"""A turn that waits for approval: outside the conversation until it is approved, and then whole."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.chat.played import asks
from tests.command_line import ROOT, started
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.sessions.conversing import EVENTS, JSON, ask, conversation, faults, questions, reply, sociable
from tests.sessions.test_interrupted_turns import go_on

LIGHT = '''"""A switch."""

from typing import Annotated

from app.tool_calling.function_callback import tool
from app.tools.module import ToolModule


@tool(requires_approval=True)
async def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    return "on" if on else "off"


module = ToolModule(functions=(switchLight,), default_query="Switch the light on")
'''


def careful(request: PlayedRequest) -> Answer:
    """A sociable model that switches the light when it is asked to."""
    last = request.body["messages"][-1]
    if last["role"] == "user" and last["content"].startswith("light"):
        return whole(message("tool_calls", **asks(("switchLight", {"on": True}))))
    return whole(message(content=f"It is {last['content']}.")) if last["role"] == "tool" else sociable(request)


@asynccontextmanager
async def service_with_light(tmp_path: Path) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    shutil.copytree(ROOT / "app", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "app" / "tools" / "light").mkdir()
    (tmp_path / "app" / "tools" / "light" / "__init__.py").write_text(LIGHT)
    async with OpenAIPlayer(careful) as player:
        variables = {"PYTHONPATH": str(tmp_path), "OPENAI_BASE_URL": player.base_url, "MEMORY_TOOL_ROUNDS": "true"}
        with started(cwd=tmp_path, **variables) as (_, url):
            async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
                yield client, player


async def test_a_turn_that_waits_for_approval_is_kept_whole_once_it_is_approved_and_not_before(tmp_path: Path) -> None:
    """Another turn of the session may come between: it does not know of the one that waits, nor break it."""
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


async def test_a_turn_that_waits_is_neither_run_by_a_reconnection_nor_kept_beyond_its_conversation(
    tmp_path: Path,
) -> None:
    """A browser that reconnects decides nothing, and forgetting the conversation forgets what waits in it."""
    async with service_with_light(tmp_path) as (client, player):
        waiting = (await ask(client, "light", **JSON)).json()["approval"]
        path, call = f"/approvals/{waiting['id']}", waiting["calls"][0]["id"]
        decisions = {"decisions": {call: {"approved": True}}}
        again = await client.post(path, json=decisions, headers=EVENTS | {"Last-Event-ID": "1"})
        assert (again.status_code, len(player.requests)) == (204, 1)
        assert (await client.post(path, json=decisions, headers=JSON)).json()["answer"] == "It is on."

        waiting = (await ask(client, "light", **JSON)).json()["approval"]
        assert (await client.delete("/chat/s-1")).status_code == 204
        asked = len(player.requests)
        gone = await client.post(f"/approvals/{waiting['id']}", json=decisions, headers=JSON)
        assert (gone.status_code, len(player.requests), await conversation(client)) == (404, asked, [])
