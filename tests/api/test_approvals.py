"""Tools that need the user's consent, over HTTP."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from app.api.approvals import ApprovalStore
from app.api.schemas import ChatAnswer
from app.chat_models.base import ChatResponse
from app.errors import NotFound
from app.messages import AssistantMessage, Usage
from tests.chat.scripted import client_of, says
from tests.command_line import ROOT, started
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import events_of

JSON = {"Accept": "application/json"}
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


@asynccontextmanager
async def guarded_service(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service with a tool that needs approval, and a model that asks for it once."""
    shutil.copytree(ROOT / "app", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "app" / "tools" / "light").mkdir()
    (tmp_path / "app" / "tools" / "light" / "__init__.py").write_text(LIGHT)
    async with OpenAIPlayer(sensible_model({"on": True})) as player:
        with started(cwd=tmp_path, PYTHONPATH=str(tmp_path), OPENAI_BASE_URL=player.base_url) as (_, url):
            async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
                yield client


async def decided(client: httpx.AsyncClient, identifier: str, body: str) -> httpx.Response:
    return await client.post(f"/approvals/{identifier}", content=body, headers={"Content-Type": "application/json"})


async def test_a_guarded_call_waits_and_runs_only_after_consent(tmp_path: Path) -> None:
    async with guarded_service(tmp_path) as client:
        paused = (await client.get("/light/chat-tool-function", headers=JSON)).json()
        ChatAnswer.model_validate(paused)
        assert (paused["finish_reason"], paused["tool_calls"]) == ("approval_required", [])
        (call,) = paused["approval"]["calls"]
        assert (call["name"], call["arguments"]) == ("switchLight", {"on": True})
        decide = f"/approvals/{paused['approval']['id']}"
        answer = await client.post(decide, json={"decisions": {call["id"]: {"approved": True}}}, headers=JSON)
        assert answer.json()["tool_calls"][0]["result"] == "on"
        again = await client.post(decide, json={"decisions": {}})
        assert (again.status_code, again.json()["code"]) == (404, "not-found")

        text = await client.get("/light/chat-tool-function")
        assert text.text.startswith("Waiting for approval of switchLight: POST /approvals/")
        rejected = {"decisions": {call["id"]: {"approved": False, "reason": "it is late"}}}
        answer = await client.post(text.text.split("POST ")[1], json=rejected, headers=JSON)
        assert answer.json()["tool_calls"][0]["error_kind"] == "rejected"
        assert "it is late" in answer.json()["answer"]

        waiting = (await client.get("/light/chat-tool-function", headers=JSON)).json()["approval"]["id"]
        deep = "[" * 500 + "]" * 500
        changed_to = [f'"approved": true, "arguments": {{"on": {each}}}' for each in ("NaN", '"\\ud800"', deep)]
        for decision in ('"approved": 1', *changed_to):
            wrong = await decided(client, waiting, f'{{"decisions": {{"{call["id"]}": {{{decision}}}}}}}')
            assert (wrong.status_code, wrong.json()["code"]) == (422, "validation"), decision[:60]
        other = await decided(client, waiting, '{"decisions": {"call_99": {"approved": true}}}')
        assert call["id"] in other.json()["detail"]
        yes = {"decisions": {call["id"]: {"approved": True, "arguments": {}}}}
        assert (
            await client.post(f"/approvals/{waiting}", json=yes, headers={"Accept": "image/png"})
        ).status_code == 406
        emptied = await client.post(f"/approvals/{waiting}", json=yes, headers=JSON)
        assert emptied.json()["tool_calls"][0]["error_kind"] == "invalid-arguments"

        stream = await client.get("/light/chat-tool-function", headers={"Accept": "text/event-stream"})
        done = events_of(stream.text)[-1]
        changed = {"decisions": {call["id"]: {"approved": True, "arguments": {"on": False}}}}
        resumed = await client.post(
            f"/approvals/{done.data['approval']['id']}", json=changed, headers={"Accept": "text/event-stream"}
        )
        assert events_of(resumed.text)[-1].data["tool_calls"][0]["result"] == "off"

        wrong_bodies: list[dict[str, object]] = [
            {},
            {"decisions": {"a": {}}},
            {"decisions": 1},
            {"decisions": {}, "x": 1},
        ]
        for body in wrong_bodies:
            wrong = await client.post("/approvals/nothing", json=body)
            assert (wrong.status_code, wrong.json()["code"]) == (422, "validation")
        unread = await client.post("/approvals/x", content=b"{", headers={"Content-Type": "application/json"})
        assert (unread.status_code, unread.json()["code"]) == (400, "invalid-request")


def test_paused_turns_are_forgotten_after_their_time_and_beyond_their_number() -> None:
    paused = ChatResponse(AssistantMessage(), "approval_required", Usage(), "m")
    question = client_of(says("?"))[0].prompt("?")
    expired = ApprovalStore(ttl=-1)
    with pytest.raises(NotFound):
        expired.take(expired.keep(paused, question))
    small = ApprovalStore(limit=1)
    first, second = small.keep(paused, question), small.keep(paused, question)
    assert small.take(second).response is paused
    with pytest.raises(NotFound):
        small.take(first)
