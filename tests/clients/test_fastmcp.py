"""FastMCP's client, over HTTP, in the versions of the protocol that it chooses."""

from typing import Any

import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from tests.clients.conftest import PATIENCE, TIME, Model, calls, says


@pytest.fixture(params=["auto", "legacy"])
def client(request: pytest.FixtureRequest, base_url: str) -> Client[Any]:
    return Client(f"{base_url.removesuffix('/v1')}/mcp", mode=request.param, timeout=PATIENCE)


async def test_it_lists_and_calls_the_tools(client: Client[Any]) -> None:
    async with client:
        names = [tool.name for tool in await client.list_tools()]
        called = await client.call_tool(TIME["name"], {"timeZoneId": "Asia/Shanghai"})
        with pytest.raises(ToolError, match="Atlantis"):
            await client.call_tool(TIME["name"], {"timeZoneId": "Atlantis"})
    assert {TIME["name"], "ask"} <= set(names)
    assert called.data.time_zone == "Asia/Shanghai"


async def test_it_asks_a_question_and_receives_progress(client: Client[Any], model: Model) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    model.plays(calls(TIME), says("It is noon."))
    async with client:
        answer = await client.call_tool("ask", {"question": "What time is it?"}, progress_handler=hear)
    assert answer.content[0].text == "It is noon."
    assert heard[0] == "getCityTimeFunction runs"
