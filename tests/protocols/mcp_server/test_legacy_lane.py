"""Clients of the versions with a handshake, without a session id."""

from typing import Any

import httpx
import pytest

from tests.protocols.mcp_server.host import ACCEPT, LEGACY, Host

ANYWHERE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


async def test_a_client_initializes_and_calls_without_a_session_id(legacy: Host, client: httpx.AsyncClient) -> None:
    hello, _ = legacy.request("initialize", protocolVersion="2025-06-18", **ANYWHERE)
    answer = await client.post("/mcp", json=hello, headers=ACCEPT)  # no version has been agreed on before
    result = answer.json()["result"]
    assert (result["protocolVersion"], result["capabilities"]) == ("2025-06-18", {"tools": {"listChanged": False}})
    assert result["serverInfo"]["name"] == "toolchat"
    _, headers = legacy.request("ping")
    told = await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    assert (told.status_code, told.content) == (202, b"")
    assert await legacy.result("ping") == {}
    called = await legacy.call("getCityTimeFunction", timeZoneId="Asia/Shanghai")
    assert called["structuredContent"]["time_zone"] == "Asia/Shanghai"


@pytest.mark.parametrize(
    ("asked", "given"), [*zip(LEGACY, LEGACY, strict=True), ("2024-11-05", "2024-11-05"), ("2099-01-01", LEGACY[0])]
)
async def test_the_version_is_the_clients_own_or_the_newest_with_a_handshake(
    asked: str, given: str, legacy: Host
) -> None:
    result = await legacy.result("initialize", protocolVersion=asked, **ANYWHERE)
    assert result["protocolVersion"] == given


async def test_results_have_no_members_of_the_modern_lane(legacy: Host) -> None:
    for result in (await legacy.result("tools/list"), await legacy.call("fail")):
        assert result.keys().isdisjoint({"resultType", "ttlMs", "cacheScope", "_meta"})


async def test_both_lanes_list_the_same_tools(legacy: Host, modern: Host) -> None:
    assert (await legacy.result("tools/list"))["tools"] == (await modern.result("tools/list"))["tools"]


async def test_a_request_without_a_version_belongs_to_this_lane(client: httpx.AsyncClient) -> None:
    answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": "a", "method": "ping"}, headers=ACCEPT)
    assert (answer.status_code, answer.json()) == (200, {"jsonrpc": "2.0", "id": "a", "result": {}})


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("server/discover", {}, -32601),
        ("resources/list", {}, -32601),
        ("logging/setLevel", {"level": "info"}, -32601),
        ("tools/call", {"name": "nothing"}, -32602),
        ("tools/call", {"arguments": {}}, -32602),
        ("initialize", ANYWHERE, -32602),
        ("tools/list", {"cursor": "2"}, -32602),
    ],
)
async def test_an_error_does_not_look_like_the_end_of_a_session(
    method: str, params: dict[str, Any], code: int, legacy: Host, client: httpx.AsyncClient
) -> None:
    # Clients of these revisions take 404 for a session that is over, and other statuses for a broken connection.
    _, headers = legacy.request(method)
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await client.post("/mcp", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (200, code, 1)


@pytest.mark.parametrize("version", ["2024-10-07", "2099-01-01", "x" * 1000])
async def test_an_unknown_version_in_the_header_is_rejected(version: str, client: httpx.AsyncClient) -> None:
    for message in ({"id": 1, "method": "ping"}, {"method": "notifications/initialized"}):
        headers = {**ACCEPT, "MCP-Protocol-Version": version}
        answer = await client.post("/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32022)
