"""Requests of the version without sessions, which carry all their metadata."""

import base64
from typing import Any

import httpx
import pytest

from tests.protocols.mcp_server.host import ACCEPT, MODERN, PREFIX, Host, meta

TIME: dict[str, Any] = {"name": "getCityTimeFunction", "arguments": {"timeZoneId": "Asia/Shanghai"}}
MISMATCH, MISSING, UNSUPPORTED, UNKNOWN_METHOD = (400, -32020), (400, -32602), (400, -32022), (404, -32601)


async def test_a_host_discovers_the_server(modern: Host) -> None:
    result = await modern.result("server/discover")
    assert (result["resultType"], result["supportedVersions"]) == ("complete", [MODERN])
    assert (result["capabilities"], result["cacheScope"]) == ({"tools": {"listChanged": False}}, "public")
    assert result["ttlMs"] > 0
    assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "toolchat"


async def test_the_list_has_every_tool_once_in_the_same_order_each_time(modern: Host) -> None:
    first, second = [await modern.result("tools/list") for _ in range(2)]
    names = [tool["name"] for tool in first["tools"]]
    assert first == second
    assert len(set(names)) == len(names)
    assert {"getCityTimeFunction", "todoUpdate", "count"} < set(names)
    assert "getCityTimeMethod" not in names
    assert names[-1] == "ask"
    assert (first["resultType"], first["cacheScope"]) == ("complete", "private")
    assert first["ttlMs"] > 0


async def test_annotations_reflect_the_tools_metadata(modern: Host) -> None:
    listed = (await modern.result("tools/list"))["tools"]
    hints = {tool["name"]: tool["annotations"] for tool in listed}
    assert hints["getCityTimeFunction"] == {"readOnlyHint": True}
    assert hints["switchLight"] == {"readOnlyHint": False, "destructiveHint": True}
    assert hints["quote"] == {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
    assert hints["ask"]["readOnlyHint"] is False


async def test_only_tools_with_object_results_have_an_output_schema(modern: Host) -> None:
    listed = {tool["name"]: tool for tool in (await modern.result("tools/list"))["tools"]}
    assert set(listed["quote"]["outputSchema"]["properties"]) == {"price", "note"}
    assert [name for name in ("quotes", "fail") if "outputSchema" in listed[name]] == []
    assert all(tool["inputSchema"]["type"] == "object" for tool in listed.values())


async def test_a_result_has_text_and_structured_content(modern: Host) -> None:
    result = await modern.result("tools/call", **TIME)
    assert result["resultType"] == "complete"
    assert result["structuredContent"]["time_zone"] == "Asia/Shanghai"
    (content,) = result["content"]
    assert content["type"] == "text"
    assert result["structuredContent"]["time"] in content["text"]
    assert "isError" not in result


async def test_a_tool_without_parameters_needs_no_arguments(modern: Host) -> None:
    result = await modern.result("tools/call", name="quotes")
    assert result["content"][0]["text"].startswith("[{")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"MCP-Protocol-Version": None}, MISMATCH),
        ({"MCP-Protocol-Version": "2025-11-25"}, MISMATCH),
        ({"MCP-Protocol-Version": "1900-01-01"}, MISMATCH),
        ({"Mcp-Method": None}, MISMATCH),
        ({"Mcp-Method": "tools/list"}, MISMATCH),
        ({"Mcp-Method": "Tools/Call"}, MISMATCH),
        ({"Mcp-Name": None}, MISMATCH),
        ({"Mcp-Name": "getWeatherFunction"}, MISMATCH),
        ({"Mcp-Name": "=?base64?!?="}, MISMATCH),
        ({"Mcp-Name": "=?base64?/w==?="}, MISMATCH),
    ],
    ids=lambda changed: str(changed)[:40],
)
async def test_headers_must_be_present_and_match_the_body(
    changed: dict[str, str | None], expected: tuple[int, int], modern: Host, client: httpx.AsyncClient
) -> None:
    body, headers = modern.request("tools/call", **TIME)
    given = {name: value for name, value in {**headers, **changed}.items() if value is not None}
    answer = await client.post("/mcp", json=body, headers=given)
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert answer.json()["id"] == 1


async def test_a_repeated_header_is_rejected(modern: Host, client: httpx.AsyncClient) -> None:
    body, headers = modern.request("tools/call", **TIME)
    answer = await client.post("/mcp", json=body, headers=[*headers.items(), ("Mcp-Name", "getCityTimeFunction")])
    assert (answer.status_code, answer.json()["error"]["code"]) == MISMATCH


async def test_a_name_may_be_encoded_in_base64(modern: Host) -> None:
    disguised = base64.b64encode(b"getCityTimeFunction").decode()
    answer = await modern.ask("tools/call", {"Mcp-Name": f"=?base64?{disguised}?="}, **TIME)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({f"{PREFIX}clientCapabilities": None}, MISSING),
        ({f"{PREFIX}clientCapabilities": []}, MISSING),
        ({f"{PREFIX}protocolVersion": 5}, MISMATCH),
        ({"progressToken": 1.5}, MISSING),
    ],
    ids=str,
)
async def test_required_metadata_is_checked(said: dict[str, Any], expected: tuple[int, int], modern: Host) -> None:
    assert await modern.error("tools/call", _meta=said, **TIME) == expected


async def test_a_modern_header_requires_modern_metadata(modern: Host, client: httpx.AsyncClient) -> None:
    body, headers = modern.request("tools/list")
    del body["params"]["_meta"]
    answer = await client.post("/mcp", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == MISSING


async def test_an_unknown_version_is_answered_with_the_supported_ones(modern: Host) -> None:
    answer = await modern.ask(
        "tools/list", {"MCP-Protocol-Version": "1900-01-01"}, _meta={f"{PREFIX}protocolVersion": "1900-01-01"}
    )
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == UNSUPPORTED
    discovered = await modern.result("server/discover")
    assert error["data"] == {"supported": discovered["supportedVersions"], "requested": "1900-01-01"}


@pytest.mark.parametrize("body", [{}, {"params": {"_meta": {}}}, {"params": {"_meta": meta()}}], ids=str)
async def test_a_ping_of_older_versions_is_told_what_to_send_instead(
    body: dict[str, Any], client: httpx.AsyncClient
) -> None:
    headers = {**ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": "ping"}
    answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping", **body}, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == UNKNOWN_METHOD
    assert "MCP 2026-07-28 has no ping: any other request, such as server/discover" in error["message"]


@pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "prompts/list", "x" * 1000])
async def test_an_unsupported_method_is_not_found(method: str, modern: Host) -> None:
    assert await modern.error(method) == UNKNOWN_METHOD


async def test_an_unknown_method_is_named_before_what_its_request_lacks(client: httpx.AsyncClient) -> None:
    headers = {**ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": "nothing"}
    answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "nothing"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == UNKNOWN_METHOD


@pytest.mark.parametrize(
    "params",
    [
        {"name": "nothing", "arguments": {}},
        {"name": "getWeatherFunction", "arguments": {}},
        {"name": "quotes", "arguments": []},
    ],
    ids=["unknown", "not configured", "list"],
)
async def test_a_malformed_call_is_a_protocol_error(params: dict[str, Any], modern: Host) -> None:
    assert await modern.error("tools/call", **params) == MISSING


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_other_http_methods_are_not_allowed(method: str, client: httpx.AsyncClient) -> None:
    answer = await client.request(method, "/mcp", headers={"Mcp-Session-Id": "x", "Last-Event-ID": "1"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_session_ids_are_neither_required_nor_issued(modern: Host) -> None:
    answer = await modern.ask("tools/call", {"Mcp-Session-Id": "x", "Last-Event-ID": "1"}, **TIME)
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null", "http://[", ""])
async def test_a_page_of_another_origin_is_rejected(origin: str, modern: Host) -> None:
    answer = await modern.ask("tools/call", {"Origin": origin}, **TIME)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross-site")


async def test_a_page_of_the_service_itself_is_allowed(modern: Host, client: httpx.AsyncClient) -> None:
    answer = await modern.ask("tools/call", {"Origin": str(client.base_url).rstrip("/")}, **TIME)
    assert answer.status_code == 200


async def test_a_notification_is_accepted_without_a_response(client: httpx.AsyncClient) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": meta()}}
    answer = await client.post("/mcp", json=body, headers={**ACCEPT, "MCP-Protocol-Version": MODERN})
    assert (answer.status_code, answer.content) == (202, b"")


async def test_a_call_uses_the_tenant_and_the_conversation_of_the_request(
    modern: Host, client: httpx.AsyncClient
) -> None:
    body, headers = modern.request("tools/call", name="whose", arguments={})
    answer = await client.post("/mcp?sessionId=desk", json=body, headers={**headers, "X-Tenant-ID": "acme"})
    assert answer.json()["result"]["content"][0]["text"] == "acme desk"
    assert (await modern.call("whose"))["content"][0]["text"] == "zh None"


@pytest.mark.parametrize(("query", "tenant"), [("?sessionId=a/b", "zh"), ("", "not a name"), ("", "x" * 65)])
async def test_an_invalid_conversation_or_tenant_is_rejected(
    query: str, tenant: str, modern: Host, client: httpx.AsyncClient
) -> None:
    body, headers = modern.request("tools/call", name="whose", arguments={})
    answer = await client.post(f"/mcp{query}", json=body, headers={**headers, "X-Tenant-ID": tenant})
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")


async def test_the_route_is_documented(client: httpx.AsyncClient) -> None:
    operation = (await client.get("/openapi.json")).json()["paths"]["/mcp"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["example"]["method"] == "tools/list"
