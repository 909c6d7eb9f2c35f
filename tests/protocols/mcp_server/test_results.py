"""Results of calls."""

import httpx
import pytest
from pydantic_core import from_json

from tests.protocols.mcp_server.host import FOLDERS, LEGACY, MODERN, Host
from tests.serving import service, serving
from tests.upstreams import create_sandbox


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
    async with service("tests.protocols.mcp_server.asking_folders", CHAT_PROVIDER="offline") as other:
        host = Host(other)
        asked = await host.call("ask")
        others = [tool["name"] for tool in (await host.result("tools/list"))["tools"]]
    assert asked["content"][0]["text"] == "my own"
    assert (names.count("ask"), others.count("ask")) == (1, 1)
