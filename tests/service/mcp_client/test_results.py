"""Results of MCP servers: what the model reads, and what MCP hosts of this service get."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.mcp_client.player import McpPlayer
from tests.service.mcp_client.playing import ran, run, written
from tests.service.protocols.mcp_server.host import LEGACY, MODERN, Host
from tests.serving import service, serving

player = McpPlayer(
    more={
        "outputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"content": {"type": "string", "pattern": "^(?!x)", "description": "Read\u202e me"}},
            "additionalProperties": False,
        }
    }
)
IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "annotations": {"audience": ["user"]}}
NOTE = "[image: image/png, 9 bytes, not shown]"
ADA = {"name": "Ada", "kind": "person"}


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with serving(player.app) as url:
        file = written(tmp_path_factory.mktemp("servers"), far={"url": f"{url}/mcp"})
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            yield client


def texts(*each: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in each]


@pytest.mark.parametrize(
    ("content", "structured", "read"),
    [
        (texts("a line\n"), {"content": "a line\n"}, "a line\n"),
        (texts("a line\n"), {"content": "a line"}, "a line\n"),
        (texts('[{"kind": "person", "name": "Ada"}]'), {"entities": [ADA]}, '[{"kind": "person", "name": "Ada"}]'),
        (texts('{"name": "Ada",\n "kind": "person"}'), ADA, '{"name": "Ada",\n "kind": "person"}'),
        (texts("one", "two"), {"result": ["one", "two"]}, "one\ntwo"),
        (texts("one", "two"), {"content": "one\ntwo"}, "one\ntwo"),
        (texts('{"n": 1}', '{"n": 2}'), {"items": [{"n": 1}, {"n": 2}]}, '{"n": 1}\n{"n": 2}'),
        (texts("[1,", "2]"), {"items": [1, 2]}, "[1,\n2]"),
        (texts("5"), {"result": 5}, "5"),
        (texts("one", '{"n": 1}'), {"n": 1}, 'one\n{"n": 1}'),
        ([IMAGE], {"content": [IMAGE]}, NOTE),
        ([], {"result": []}, '{"result":[]}'),
        ([], {}, "{}"),
        (texts("5"), {"result": 6}, '5\n{"result":6}'),
        (texts("5"), {"result": 5, "unit": "m"}, '5\n{"result":5,"unit":"m"}'),
        (texts("Ada"), ADA, 'Ada\n{"name":"Ada","kind":"person"}'),
        (texts('{"b": 1}'), {"a": 1}, '{"b": 1}\n{"a":1}'),
        (texts("one"), {"result": ["one", "two"]}, 'one\n{"result":["one","two"]}'),
    ],
)
async def test_the_model_reads_the_structured_content_unless_the_texts_say_the_same(
    content: list[dict[str, Any]], structured: Any, read: str, client: httpx.AsyncClient
) -> None:
    player.result = {"content": content, "structuredContent": structured}
    assert await ran(client, "look") == ("ok", read)


@pytest.mark.parametrize(
    "result",
    [
        {"content": [*texts("a picture"), IMAGE], "structuredContent": {"content": "xyz", "long": "y" * 100_000}},
        {"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
        {"content": [{"type": "resource_link", "name": "map", "uri": "a://map"}]},
        {"content": [{"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA", "mimeType": "a/b"}}]},
        {"content": texts("only text")},
    ],
    ids=["structured and image", "audio", "link", "resource", "text"],
)
@pytest.mark.parametrize("version", [MODERN, *LEGACY])
async def test_hosts_of_the_service_get_the_result_as_it_came(
    result: dict[str, Any], version: str, client: httpx.AsyncClient
) -> None:
    player.result = result
    received = await Host(client, version).call("look")
    assert {name: each for name, each in received.items() if name in ("content", "structuredContent")} == result
    assert not received.get("isError")


async def test_hosts_see_the_output_schema_as_it_came_without_invisible_characters(client: httpx.AsyncClient) -> None:
    listed = {each["name"]: each for each in (await Host(client).result("tools/list"))["tools"]}
    expected = player.more["outputSchema"]
    described = expected["properties"]["content"] | {"description": "Read me"}
    assert listed["look"]["outputSchema"] == expected | {"properties": {"content": described}}


async def test_clients_of_the_service_find_the_result_in_the_data_of_the_call(client: httpx.AsyncClient) -> None:
    player.result = {"content": [IMAGE], "structuredContent": {"content": "x"}}
    assert (await run(client, "look")).json()["data"] == {"mcp_result": player.result}


@pytest.mark.parametrize(
    "schema",
    [{"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}, 5],
    ids=["too long", "no schema"],
)
async def test_an_unusable_output_schema_is_left_out(schema: Any, tmp_path: Path) -> None:
    async with serving(McpPlayer(more={"outputSchema": schema}).app) as url:
        file = written(tmp_path, far={"url": f"{url}/mcp"})
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            listed = {each["name"]: each for each in (await Host(client).result("tools/list"))["tools"]}
    assert "outputSchema" not in listed.get("look", {})
