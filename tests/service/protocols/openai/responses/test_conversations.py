"""OpenAI's conversations: created, shown, continued by responses, listed as items, and deleted; each is a session."""

from typing import Any

import httpx
import pytest

from tests.service.protocols.openai.asking import RESPONSES, ask, asks, call, error_of, output_of, played, says, user

CONVERSATIONS = "/v1/conversations"
TOKYO = '{"timeZoneId":"Asia/Tokyo"}'


async def created(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(CONVERSATIONS, json=fields)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), answer.text
    document: dict[str, Any] = answer.json()
    return document


async def listed(client: httpx.AsyncClient, identifier: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"{CONVERSATIONS}/{identifier}/items", params={"order": "asc", **query})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("rounds", ["false", "true"])
async def test_a_conversation_is_a_session_that_lists_what_was_said_and_called_once(rounds: str) -> None:
    script = [asks(call("getCityTimeFunction", TOKYO)), says("Noon."), says("Hello.")]
    async with played(script, MEMORY_TOOL_ROUNDS=rounds) as (client, player):
        begun = await created(client, metadata={"a": "b"})
        assert (await listed(client, begun["id"]))["data"] == []
        await ask(client, "The time?", conversation=begun["id"])
        await ask(client, "Hi", conversation={"id": begun["id"]})
        items = (await listed(client, begun["id"]))["data"]
        shown = (await client.get(f"{CONVERSATIONS}/{begun['id']}")).json()
        kept = (await client.get(f"/chat/{begun['id']}")).json()
    assert shown == begun
    assert (begun["object"], begun["metadata"]) == ("conversation", {"a": "b"})
    assert [each["type"] for each in items] == ["message", "mcp_call", "message", "message", "message"]
    assert [each["content"][0]["text"] for each in items if "content" in each] == ["The time?", "Noon.", "Hi", "Hello."]
    assert (items[1]["name"], items[1]["status"], items[1]["error"]) == ("getCityTimeFunction", "completed", None)
    assert "Asia/Tokyo" in items[1]["arguments"]
    assert "Asia/Tokyo" in items[1]["output"]
    assert kept["turns"] == 2
    told = [each["role"] for each in player.requests[-1].body["messages"] if each["content"]]
    assert told == ["system", "user", *["tool"] * (rounds == "true"), "assistant", "user"]


ROLLED = [
    user("Roll"),
    {"type": "function_call", "call_id": "c", "name": "roll", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "4"},
]


async def test_added_items_reach_the_model_and_are_listed_page_by_page() -> None:
    async with played([says("ok")]) as (client, player):
        begun = await created(client, items=ROLLED)
        path = f"{CONVERSATIONS}/{begun['id']}/items"
        added = (await client.post(path, json={"items": [{"role": "assistant", "content": "A 4."}]})).json()
        newest = (await client.get(path, params={"limit": 1})).json()
        rest = await listed(client, begun["id"], after=(await listed(client, begun["id"], limit=1))["last_id"])
        await ask(client, "And?", conversation=begun["id"])
    assert [each["role"] for each in player.requests[0].body["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "user")
    ]
    assert newest["data"] == added["data"]
    assert (newest["has_more"], rest["has_more"]) == (True, False)
    assert [each["type"] for each in rest["data"]] == ["function_call", "function_call_output", "message"]
    assert len({each["id"] for each in rest["data"]}) == 3


@pytest.mark.parametrize(
    ("items", "param"),
    [
        (ROLLED[:2], "items"),
        (ROLLED[2:], "items[0].call_id"),
        ([user(" ")], "items[0].content"),
        ([user("?")] * 21, "items"),
        ([user("a " * 200_000)], "items"),
        ([{"role": "user"}], "items[0]"),
        ("hi", "items"),
    ],
)
async def test_items_that_no_model_could_read_again_are_refused(
    items: Any, param: str, offline: httpx.AsyncClient
) -> None:
    assert error_of(await offline.post(CONVERSATIONS, json={"items": items}))[::2] == (400, param)


async def test_a_deleted_conversation_is_gone_with_its_session() -> None:
    async with played([says("ok"), says("ok")]) as (client, _):
        identifier = (await created(client))["id"]
        await ask(client, "first", conversation=identifier)
        deleted = await client.delete(f"{CONVERSATIONS}/{identifier}")
        gone = [
            await client.get(f"{CONVERSATIONS}/{identifier}"),
            await client.get(f"{CONVERSATIONS}/{identifier}/items"),
            await client.post(f"{CONVERSATIONS}/{identifier}/items", json={"items": [user("?")]}),
            await client.delete(f"{CONVERSATIONS}/{identifier}"),
            await client.post(RESPONSES, json={"model": "toolchat", "input": "?", "conversation": identifier}),
        ]
        session = await client.get(f"/chat/{identifier}")
    assert deleted.json() == {"id": identifier, "object": "conversation.deleted", "deleted": True}
    assert [error_of(each)[:2] for each in gone] == [(404, "not_found")] * 5
    assert session.status_code == 404


async def test_an_added_call_of_the_service_is_listed_as_such(offline: httpx.AsyncClient) -> None:
    ran = {"type": "mcp_call", "id": "mcp_1", "name": "f", "server_label": "toolchat", "arguments": "{}", "output": "4"}
    items = (await listed(offline, (await created(offline, items=[*ROLLED, ran]))["id"]))["data"]
    assert [each["type"] for each in items] == ["message", "function_call", "function_call_output", "mcp_call"]
    assert {**items[3], "id": "mcp_1"}.items() >= ran.items()


@pytest.mark.parametrize(("rounds", "kinds"), [("true", ["function_call", "function_call_output"]), ("false", [])])
async def test_calls_of_the_client_are_listed_if_the_session_stores_tool_rounds(rounds: str, kinds: list[str]) -> None:
    async with played([asks(call("roll")), says("A 4.")], MEMORY_TOOL_ROUNDS=rounds) as (client, _):
        begun = await created(client)
        fields = {"conversation": begun["id"], "tools": [{"type": "function", "name": "roll"}]}
        called = (await ask(client, "Roll", **fields))["output"][0]
        assert (await listed(client, begun["id"]))["data"] == []
        await ask(client, [user("Roll"), called, output_of(called["call_id"])], **fields)
        items = (await listed(client, begun["id"]))["data"]
    assert [each["type"] for each in items] == ["message", *kinds, "message"]


async def test_an_empty_body_creates_a_conversation_and_what_is_no_json_none(offline: httpx.AsyncClient) -> None:
    answer = await offline.post(CONVERSATIONS, headers={"Content-Type": "application/json"})
    refused = await offline.post(CONVERSATIONS, content="{}", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["metadata"], error_of(refused)[0]) == (200, {}, 415)


async def test_the_metadata_of_a_conversation_is_replaced(offline: httpx.AsyncClient) -> None:
    begun = await created(offline, metadata={"a": "b"})
    path = f"{CONVERSATIONS}/{begun['id']}"
    changed = await offline.post(path, json={"metadata": {"c": "d"}})
    assert changed.json() == (await offline.get(path)).json() == begun | {"metadata": {"c": "d"}}
    assert error_of(await offline.post(path, json={})) == (400, "invalid_value", "metadata")
    assert error_of(await offline.post(f"{CONVERSATIONS}/conv_1", json={"metadata": {}}))[0] == 404


async def test_an_item_is_shown_by_its_id_and_is_not_deleted_alone(offline: httpx.AsyncClient) -> None:
    path = f"{CONVERSATIONS}/{(await created(offline, items=ROLLED))['id']}/items"
    items = (await offline.get(path)).json()["data"]
    for each in items:
        assert (await offline.get(f"{path}/{each['id']}")).json() == each
    assert error_of(await offline.get(f"{path}/msg_1"))[0] == 404
    refused = await offline.delete(f"{path}/{items[0]['id']}")
    assert error_of(refused)[0] == 400
    assert "delete the conversation" in refused.json()["error"]["message"]
    assert (await offline.get(path)).json()["data"] == items


@pytest.mark.parametrize(
    "path", ["{0}/", "/{0}", "{0}/ID/", "{0}//ID", "{0}/ID/items/", "{0}//ID/items", "{0}/ID//items"]
)
async def test_a_slash_too_many_changes_no_answer(path: str, offline: httpx.AsyncClient) -> None:
    identifier = (await created(offline))["id"]
    given = path.format(CONVERSATIONS).replace("ID", identifier)
    clean = CONVERSATIONS if "ID" not in path else f"{CONVERSATIONS}/{identifier}{'/items' * ('items' in path)}"
    for method in ("GET", "POST"):
        answers = [await offline.request(method, each, json={"metadata": {}}) for each in (given, clean)]
        assert answers[0].status_code == answers[1].status_code
        assert answers[0].json().keys() == answers[1].json().keys()
