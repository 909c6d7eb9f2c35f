"""Requests of hosts in both lanes, their results, and malformed and hostile messages."""

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic_core import from_json, to_json

from tests.application import create_sandbox
from tests.players.openai_player import OpenAIPlayer, sensible_model, whole
from tests.service.protocols.mcp_server.host import ACCEPT, FOLDERS, LEGACY, MODERN, PREFIX, Host, meta
from tests.serving import client_of, configured, service, serving
from tests.waiting import until
from toolchat.service.api.schemas import ChatAnswer
from toolchat.service.main import create_app
from toolchat.state.base import StateStore

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


async def test_an_object_is_returned_as_structured_content(modern: Host) -> None:
    result = await modern.call("quote", price=1.5)
    assert result["structuredContent"] == {"price": 1.5, "note": "fresh"}
    assert from_json(result["content"][0]["text"]) == result["structuredContent"]


async def test_other_results_are_returned_as_text(modern: Host) -> None:
    result = await modern.call("quotes")
    assert "structuredContent" not in result
    assert [each["price"] for each in from_json(result["content"][0]["text"])] == [1, 2]


async def test_what_a_tool_returns_for_the_client_is_structured_content_and_part_of_the_trace() -> None:
    async with service(FOLDERS, CHAT_PROVIDER="offline") as client:
        host = Host(client, MODERN)
        listed = {tool["name"]: tool for tool in (await host.result("tools/list"))["tools"]}
        drawn = [await host.call("draw", size=3) for _ in range(2)]
        anything = await host.call("drawAnything")
        run = (await client.post("/tools/draw", json={"size": 3})).json()
        events = await client.post("/tools/draw", json={"size": 4}, headers={"Accept": "text/event-stream"})
    assert list(listed["draw"]["outputSchema"]["properties"]) == ["price", "note"]
    assert [(each["content"], each["structuredContent"]) for each in drawn] == [
        ([{"type": "text", "text": "drawn in 3"}], {"price": 3, "note": ""})
    ] * 2
    assert "outputSchema" not in listed["drawAnything"]
    assert anything["structuredContent"] == {"points": [[1, 2]], "at": "1.5"}
    assert anything["content"][0]["text"] == '{"said":1}'
    assert (run["result"], run["data"]) == ("drawn in 3", {"price": 3, "note": ""})
    assert '"data":{"price":4' in events.text


async def test_a_result_that_violates_the_output_schema_is_marked_and_readable(modern: Host) -> None:
    result = await modern.call("wrongQuote")
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert "dear" in result["content"][-1]["text"]


async def test_a_member_of_another_type_is_noticed_in_an_object_of_texts(modern: Host) -> None:
    right, wrong = [await modern.call("label", unit=unit) for unit in ("EUR", "")]
    assert right["structuredContent"] == {"name": "price", "unit": "EUR"}
    assert (wrong["isError"], "structuredContent" in wrong) == (True, False)


async def test_a_failure_has_a_hint_for_the_hosts_model(modern: Host) -> None:
    result = await modern.call("fail")
    assert result["isError"] is True
    error = from_json(result["content"][0]["text"])["error"]
    assert error == {"kind": "closed", "message": "the workshop is closed", "hint": "come back tomorrow"}


async def test_sandbox_data_is_marked() -> None:
    async with serving(create_sandbox()) as url, service(CHAT_PROVIDER="offline", SANDBOX_URL=url) as client:
        result = await Host(client).call("getWeatherFunction", city="Rome", days=1)
    assert "Sandbox data, not real" in result["content"][1]["text"]
    assert "Sandbox data, not real" in result["structuredContent"]["notice"]


@pytest.mark.parametrize(("version", "status"), [(MODERN, 503), (LEGACY[0], 200)])
async def test_an_overloaded_service_sends_retry_after(version: str, status: int) -> None:
    async with service(FOLDERS, CHAT_PROVIDER="offline", MAX_QUESTIONS="1") as client:
        host = Host(client, version)
        body, headers = host.request("tools/call", name="wait", arguments={}, _meta={"progressToken": 1})
        async with client.stream("POST", "/mcp", json=body, headers=headers) as first:
            await anext(first.aiter_lines())
            answer = await host.ask("tools/call", name="quotes", arguments={})
            streamed = await host.ask("tools/call", name="wait", arguments={}, _meta={"progressToken": 2})
    for refused in (answer, streamed):
        error = refused.json()["error"]
        assert (refused.status_code, refused.headers["retry-after"]) == (status, "1")
        assert (error["code"], error["data"]["code"]) == (-32603, "overloaded")
        assert refused.headers["content-type"] == "application/json"


async def test_a_failure_ends_the_request_if_so_configured() -> None:
    async with service(FOLDERS, CHAT_PROVIDER="offline", TOOL_THROW_EXCEPTION_ON_ERROR="true") as client:
        answer = await Host(client).ask("tools/call", name="fail", arguments={})
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (502, "tool-failed")


async def test_a_tool_named_ask_replaces_the_services_own(client: httpx.AsyncClient) -> None:
    names = [tool["name"] for tool in (await Host(client).result("tools/list"))["tools"]]
    async with service("tests.service.protocols.mcp_server.asking_folders", CHAT_PROVIDER="offline") as other:
        host = Host(other)
        asked = await host.call("ask")
        others = [tool["name"] for tool in (await host.result("tools/list"))["tools"]]
    assert asked["content"][0]["text"] == "my own"
    assert (names.count("ask"), others.count("ask")) == (1, 1)


async def test_a_question_is_answered_with_the_services_tools(modern: Host) -> None:
    result = await modern.call("ask", question="北京现在几点？")
    document = ChatAnswer.model_validate(result["structuredContent"])
    assert result["content"] == [{"type": "text", "text": document.answer}]
    assert [each.name for each in document.tool_calls] == ["getCityTimeFunction"]


async def test_a_question_uses_only_the_tools_that_it_names(modern: Host) -> None:
    result = await modern.call("ask", question="北京现在几点？", tools=["todoRead"])
    assert "getCityTimeFunction" not in [each["name"] for each in result["structuredContent"]["tool_calls"]]


async def test_a_question_without_a_session_is_answered_while_the_store_is_away(tmp_path: Path) -> None:
    read = configured(CHAT_PROVIDER="offline", STATE_URL=f"sqlite:///{tmp_path}/state.db")
    app = create_app(read)
    async with serving(app, read.settings) as url, client_of(url) as client:
        (tmp_path / "state.db").rename(tmp_path / "elsewhere.db")
        await until(lambda: is_away(app.state.service.store))
        host = Host(client)
        assert (await host.call("ask", question="hello"))["structuredContent"]["answer"]
        told = await host.ask("tools/call", name="ask", arguments={"question": "hello", "sessionId": "s"})
        assert told.json()["error"]["data"]["code"] == "store-unavailable"


async def is_away(store: StateStore) -> bool:
    return not store.available


async def test_a_question_continues_the_conversation_of_an_earlier_answer() -> None:
    async with (
        OpenAIPlayer(sensible_model({"timeZoneId": "Asia/Shanghai"})) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        host = Host(client)
        first = await host.call("ask", question="What time is it in Shanghai?")
        session = first["structuredContent"]["session_id"]
        await host.call("ask", question="And now?", sessionId=session)
    asked = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
    assert asked == ["What time is it in Shanghai?", "And now?"]


@pytest.mark.parametrize("token", [{}, {"progressToken": 1}], ids=["whole", "streamed"])
async def test_a_model_that_fails_is_an_error_of_the_service(token: dict[str, int]) -> None:
    async with (
        OpenAIPlayer([whole({"error": {"message": "no"}}, 401)] * 4) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        answer = await Host(client).ask("tools/call", name="ask", arguments={"question": "?"}, _meta=token)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["data"]["code"]) == (503, -32603, "provider-auth")
    assert error["data"]["request_id"] == answer.headers["x-request-id"]


async def test_only_answers_of_a_model_name_the_model(modern: Host, client: httpx.AsyncClient) -> None:
    asked = await modern.ask("tools/call", name="ask", arguments={"question": "hello"})
    called = await modern.ask("tools/call", name="quotes", arguments={})
    streamed = await modern.ask("tools/call", name="count", arguments={"to": 1}, _meta={"progressToken": 1})
    assert asked.headers["x-chat-model"] == "offline"
    assert [answer for answer in (called, streamed) if "x-chat-model" in answer.headers] == []


JSON = {**ACCEPT, "Content-Type": "application/json"}
PING = b'"jsonrpc":"2.0","method":"ping"'
PARSE, INVALID = (400, -32700), (400, -32600)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", PARSE),
        (b"hello", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', PARSE),
        (b'{%b,"id":1,"params":{"x":NaN}}' % PING, PARSE),
        (b'{%b,"id":1,"params":{"x":Infinity}}' % PING, PARSE),
        (b'{%b,"id":"\\ud800"}' % PING, PARSE),
        (b'{%b,"id":"\xff"}' % PING, PARSE),
        (b'{%b,"id":1,"params":{"x":%b}}' % (PING, b"[" * 5000 + b"]" * 5000), PARSE),
        (b'[{%b,"id":1}]' % PING, INVALID),
        (b"[]", INVALID),
        (b"null", INVALID),
        (b'"ping"', INVALID),
        (b'{%b,"id":null}' % PING, INVALID),
        (b'{%b,"id":true}' % PING, INVALID),
        (b'{%b,"id":1.5}' % PING, INVALID),
        (b'{%b,"id":[1]}' % PING, INVALID),
        (b'{"id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', INVALID),
        (b'{%b,"id":1,"params":[]}' % PING, INVALID),
    ],
    ids=lambda value: value[:60].decode("latin-1") if isinstance(value, bytes) else "",
)
async def test_malformed_messages_are_rejected(
    body: bytes, expected: tuple[int, int], client: httpx.AsyncClient
) -> None:
    answer = await client.post("/mcp", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert (answer.json()["jsonrpc"], answer.json()["id"]) == ("2.0", None)


@pytest.mark.parametrize("identifier", [0, -1, 10**30, "", "a\u0000b", "時", "x" * 10_000])
async def test_every_id_is_returned_unchanged(identifier: Any, client: httpx.AsyncClient) -> None:
    answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": identifier, "method": "ping"}, headers=JSON)
    assert answer.json()["id"] == identifier


async def test_the_last_of_repeated_keys_counts_and_must_match_the_headers(
    modern: Host, client: httpx.AsyncClient
) -> None:
    body, headers = modern.request("tools/call", name="quotes", arguments={})
    twice = to_json(body).replace(b'"name":"quotes"', b'"name":"fail","name":"quotes"')
    answer = await client.post("/mcp", content=twice, headers={**JSON, **headers})
    assert answer.json()["result"]["content"][0]["text"].startswith("[{")
    other = await client.post("/mcp", content=twice, headers={**JSON, **headers, "Mcp-Name": "fail"})
    assert (other.status_code, other.json()["error"]["code"]) == (400, -32020)


async def test_a_message_that_is_too_long_is_rejected_unread(modern: Host) -> None:
    answer = await modern.ask("tools/call", name="quote", arguments={"price": "1" * 400_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_an_html_form_cannot_send_a_message(media_type: str, client: httpx.AsyncClient) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    answer = await client.post("/mcp", content=body, headers={**JSON, "Content-Type": media_type})
    assert (answer.status_code, answer.json()["error"]["code"]) == INVALID


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("quote", {"price": "dear"}),
        ("quote", {}),
        ("quote", {"price": 1, "__proto__": {}}),
        ("ask", {}),
        ("ask", {"question": ""}),
        ("ask", {"question": "x" * 4001}),
        ("ask", {"question": "?", "tools": ["nothing"]}),
        ("ask", {"question": "?", "sessionId": "a/b"}),
    ],
)
async def test_invalid_arguments_are_reported_to_the_hosts_model(
    name: str, arguments: dict[str, Any], modern: Host
) -> None:
    result = await modern.call(name, **arguments)
    assert result["isError"] is True
    assert '"kind":"invalid-arguments"' in result["content"][0]["text"]


@pytest.mark.parametrize("meta", [[], "x", {"io.modelcontextprotocol/protocolVersion": None}])
async def test_an_invalid_meta_is_rejected(meta: Any, client: httpx.AsyncClient) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}
    answer = await client.post("/mcp", json=body, headers=JSON)
    # A meta that does not name a version leaves the request in the legacy lane.
    expected = (400, -32602) if isinstance(meta, dict) else (200, -32602)
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
