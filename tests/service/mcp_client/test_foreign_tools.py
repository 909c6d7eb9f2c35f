"""The listing of an MCP server as tools: none is left out because of its name or of an odd schema."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from mcp_types import Tool

from tests.service.mcp_client.playing import run, tools_of
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.service.mcp_client.foreign_tools import remote_tools
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError

ENTRY = ServerEntry.model_validate({"command": "x"})
LONGEST_NAME = "a_name_with____" + "z" * 40 + "_503ccd64"


async def echo(tool: str, arguments: Mapping[str, Any], _: ToolContext) -> str:
    return json.dumps([tool, arguments], ensure_ascii=False)


def offered(*listed: tuple[str, dict[str, Any]]) -> list[ToolCallback]:
    tools = [Tool(name=name, input_schema={"type": "object", **schema}) for name, schema in listed]
    return remote_tools("far", ENTRY, tools, echo)


async def test_names_of_other_characters_stay_different_and_reach_their_own_tool() -> None:
    names = ["天气查询", "时间查询", "orders.find", "orders_find", "a/b", "a.b"]
    tools = offered(*((name, {}) for name in names))
    assert [json.loads(await each.call("{}", ToolContext()))[0] for each in tools] == names
    assert len({each.definition.name for each in tools}) == len(names)


async def test_a_draft_4_schema_is_offered_in_the_newest_draft_and_applied() -> None:
    price = {"type": "number", "multipleOf": 0.01, "minimum": 0, "exclusiveMinimum": True, "required": True}
    (tool,) = offered(("pay", {"properties": {"price": price, "tags": {"type": "array"}}}))
    assert tool.definition.input_schema == {
        "type": "object",
        "properties": {
            "price": {"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0},
            "tags": {"type": "array", "items": {}},
        },
        "required": ["price"],
    }
    assert await tool.call('{"price": 19.99}', ToolContext()) == '["pay", {"price": 19.99}]'
    with pytest.raises(ToolArgumentsError) as refused:
        await tool.call('{"price": 0}', ToolContext())
    assert [each["field"] for each in refused.value.fields] == ["price"]


@pytest.mark.parametrize("schema", [{}, {"additionalProperties": False}], ids=str)
def test_a_tool_without_parameters_has_properties(schema: dict[str, Any]) -> None:
    (tool,) = offered(("ping", schema))
    assert tool.definition.input_schema["properties"] == {}


async def test_a_pattern_is_shown_to_the_model_and_applied_by_the_server() -> None:
    (tool,) = offered(("find", {"properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}}}))
    assert tool.definition.input_schema["properties"]["id"]["pattern"] == "^[a-z]+$"
    assert await tool.call('{"id": "5"}', ToolContext()) == '["find", {"id": "5"}]'


async def test_a_duplicate_name_is_prefixed_with_the_server(client: httpx.AsyncClient) -> None:
    first, twin = await tools_of(client, "first"), await tools_of(client, "twin")
    assert {"echo", "first_getCityTimeFunction", "first_ask", LONGEST_NAME} < first.keys()
    assert {"twin_echo", "twin_getCityTimeFunction", "hidden_one"} < twin.keys()
    assert max(map(len, [*first, *twin])) == 64
    assert (await run(client, "getCityTimeFunction", {"timeZoneId": "Asia/Tokyo"})).json()["outcome"] == "ok"
