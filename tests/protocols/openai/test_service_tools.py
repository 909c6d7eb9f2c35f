"""The tools of the service as an MCP server that a request of Responses lists, restricts and chooses from."""

from typing import Any

import httpx
import pytest

from tests.protocols.openai.asking import RESPONSES, ask, error_of, played, says

TOOLS = {"type": "mcp", "server_label": "toolchat", "server_url": "http://unused"}


@pytest.mark.parametrize("allowed", [["getCityTimeFunction"], {"tool_names": ["getCityTimeFunction"]}], ids=str)
async def test_a_part_of_the_services_tools_can_be_allowed(allowed: object) -> None:
    async with played([says("Hello.")]) as (client, player):
        await ask(client, "Hello", tools=[{**TOOLS, "allowed_tools": allowed}])
    assert [each["function"]["name"] for each in player.requests[0].body["tools"]] == ["getCityTimeFunction"]


@pytest.mark.parametrize("approval", [None, "never", {"never": {"tool_names": ["ship"]}}], ids=str)
async def test_a_tool_of_the_service_can_be_chosen_by_its_name(approval: object) -> None:
    choice = {"type": "mcp", "server_label": "toolchat", "name": "getCityTimeFunction"}
    async with played([says("Noon.")]) as (client, player):
        await ask(client, "Hello", tools=[{**TOOLS, "require_approval": approval}], tool_choice=choice)
    assert player.requests[0].body["tool_choice"]["function"] == {"name": "getCityTimeFunction"}


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"tools": [TOOLS | {"require_approval": "always"}]}, "tools[0].require_approval", "only never"),
        (
            {"tools": [TOOLS | {"require_approval": {"always": {"tool_names": ["ship"]}}}]},
            "tools[0].require_approval",
            "only never",
        ),
        ({"tools": [TOOLS | {"allowed_tools": {"read_only": True}}]}, "tools[0].allowed_tools", "send tool_names"),
        ({"tools": [TOOLS | {"allowed_tools": "ship"}]}, "tools[0].allowed_tools", "array"),
        ({"tool_choice": {"type": "mcp", "server_label": "toolchat"}}, "tool_choice", "mcp is not supported"),
        ({"tool_choice": {"type": "mcp", "server_label": "a", "name": "b"}}, "tool_choice", "mcp is not supported"),
    ],
)
async def test_what_the_service_would_not_heed_is_refused(
    fields: dict[str, Any], param: str, words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(RESPONSES, json={"model": "toolchat", "input": "?", **fields})
    assert error_of(answer) == (400, "invalid_value", param)
    assert words in answer.json()["error"]["message"]
