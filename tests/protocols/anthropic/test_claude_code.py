"""Recorded requests of Claude Code, answered as it needs them."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic_core import from_json

from tests.players.openai_player import delta, finish, sse
from tests.protocols.anthropic.asking import MESSAGES, events_of, result, said
from tests.protocols.openai.asking import call, played
from toolchat.service.access.keys import digest_of

RECORDED: dict[str, Any] = from_json((Path(__file__).parent / "recorded" / "claude_code.json").read_bytes())
KEYS = {"API_KEYS": f"agent={digest_of('key')}"}
DONE = sse(delta(content="Done."), finish("stop"))
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
BASH = call("Bash", '{"command":"echo hi"}', "call_bash")


async def play(client: httpx.AsyncClient, kind: str, **changed: Any) -> list[dict[str, Any]]:
    """Send a recorded request; it must succeed. Returns its events."""
    body = RECORDED[kind] | ({"tools": RECORDED["tools"]} if RECORDED[kind]["tools"] else {}) | changed
    headers = RECORDED["headers"] | {"x-api-key": "key"}
    answer = await client.post(MESSAGES, params={"beta": "true"}, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return events_of(answer.text)


@pytest.mark.parametrize("kind", ["title", "first", "results"])
async def test_every_recorded_request_is_answered(kind: str) -> None:
    async with played([DONE], **KEYS) as (client, player):
        events = await play(client, kind)
    assert (events[0]["message"]["model"], events[-1]["type"]) == ("claude-opus-4-8", "message_stop")
    told = player.requests[0].body
    assert ("response_format" in told) == (kind == "title")
    assert ("Bash" in {each["function"]["name"] for each in told["tools"]}) == (kind != "title")


async def test_its_own_tool_runs_beside_the_services_and_the_turn_goes_on() -> None:
    both = [{"index": number, **each} for number, each in enumerate((TIME, BASH))]
    calls = sse(delta(content="Wait."), delta(tool_calls=both), finish("tool_calls"))
    async with played([calls, DONE], **KEYS) as (client, player):
        events = await play(client, "first")
        blocks = [each["content_block"] for each in events if each["type"] == "content_block_start"]
        bash = {**blocks[-1], "input": {"command": "echo hi"}}
        told = [*RECORDED["first"]["messages"], said(*blocks[:-1], bash), {"role": "user", "content": [result("x")]}]
        told[-1]["content"][0]["tool_use_id"] = bash["id"]
        await play(client, "first", messages=told)
    assert [each["type"] for each in blocks] == ["text", "mcp_tool_use", "mcp_tool_result", "tool_use"]
    roles = [(each["role"], len(each.get("tool_calls", ()))) for each in player.requests[1].body["messages"]]
    assert roles[-3:] == [("assistant", 2), ("tool", 0), ("tool", 0)]
