"""What a principal makes is its own and what it may not use is not there, through whichever door it comes."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.calling_as import calling_as
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.access.principals import alike, as_, principals
from tests.service.protocols.mcp_server.folders.workshop import Seen
from tests.service.protocols.mcp_server.host import FOLDERS, Host, asked
from tests.service.protocols.openai.asking import COMPLETIONS, RESPONSES, ROLL, call, error_of, result, user
from tests.serving import service
from toolchat.messages import AssistantMessage, ToolCall
from toolchat.service.access.keys import digest_of
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager

ARGUMENTS = {"getCityTimeFunction": {"timeZoneId": "Asia/Shanghai"}, "ship": {"number": 1}}
SWITCH: dict[str, Any] = {"name": "switchLight", "arguments": {"on": True}}
PAIRS = pytest.mark.parametrize(("owner", "other"), [("alice", "bob"), ("alice", ""), ("", "alice")])


def obedient(request: PlayedRequest) -> Answer:
    """A model that calls the tools that are named behind the word call, once, and then is done."""
    messages = request.body["messages"]
    words = messages[-1]["content"].split() if messages[-1]["role"] == "user" else []
    if words[:1] != ["call"]:
        return whole(message(content="Done."))
    calls = [call(name, json.dumps(ARGUMENTS.get(name, {})), f"call_{n}") for n, name in enumerate(words[1:])]
    return whole(message("tool_calls", content=None, tool_calls=calls))


@pytest.fixture(scope="module")
async def player() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(obedient) as player:
        yield player


@pytest.fixture(scope="module")
async def client(
    player: OpenAIPlayer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service with two principals, one who may not use much, and room for those without a key."""
    keys = principals(tmp_path_factory.mktemp("keys"))
    folders = ("tests.service.protocols.openai.folders", FOLDERS)
    async with service(*folders, OPENAI_BASE_URL=player.base_url, ALLOW_ANONYMOUS="true", **keys) as client:
        yield client


async def completed(client: httpx.AsyncClient, name: str, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {"model": "toolchat", "messages": messages, **fields}
    return await client.post(COMPLETIONS, json=body, headers=as_(name))


async def called(client: httpx.AsyncClient, headers: dict[str, str], name: str, query: str = "", **given: Any) -> Any:
    """The result of a call by a host."""
    body, own = Host(client).request("tools/call", name=name, arguments=given)
    return (await client.post(f"/mcp{query}", json=body, headers={**own, **headers})).json()["result"]


async def asks(client: httpx.AsyncClient, door: str, name: str, text: str, session: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "/chat": {"query": text, "sessionId": session},
        COMPLETIONS: {"model": "toolchat", "messages": [user(text)]},
        RESPONSES: {"model": "toolchat", "input": text, "conversation": session},
    }
    if door == "/mcp":
        assert not (await called(client, as_(name), "ask", question=text, sessionId=session)).get("isError")
        return
    more = {"X-Session-ID": session} if door == COMPLETIONS else {}
    assert (await client.post(door, json=bodies[door], headers=as_(name, **more))).status_code == 200


@PAIRS
@pytest.mark.parametrize("door", ["/chat", COMPLETIONS, RESPONSES, "/mcp"])
async def test_a_conversation_of_one_is_not_there_for_another(
    door: str, owner: str, other: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    session, given = f"trip{door.replace('/', '-')}-{owner}-{other}".strip("-"), []
    await asks(client, door, owner, "my secret", session)
    foreign, unknown = [await client.get(f"/chat/{each}", headers=as_(other)) for each in (session, session[::-1])]
    assert (foreign.status_code, alike(foreign)) == (404, alike(unknown))
    assert (await client.delete(f"/chat/{session}", headers=as_(other))).status_code == 204
    for name in (other, owner):
        await asks(client, door, name, "hello", session)
        messages = player.requests[-1].body["messages"]
        given.append([each["content"] for each in messages if each["role"] == "user"])
    assert given == [["hello"], ["my secret", "hello"]]


@PAIRS
async def test_saved_partial_turns_belong_to_their_principal(
    owner: str, other: str, client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    question = user("call getCityTimeFunction roll")
    first = (await completed(client, owner, question, tools=[ROLL])).json()["choices"][0]["message"]
    (rolled,) = first["tool_calls"]
    known = []
    for name in (other, owner):
        await completed(client, name, question, first, result(rolled["id"], "4"), tools=[ROLL])
        said = next(each for each in player.requests[-1].body["messages"] if each["role"] == "assistant")
        known.append([each["function"]["name"] for each in said["tool_calls"]])
    assert known == [["roll"], ["getCityTimeFunction", "roll"]]


@PAIRS
async def test_stored_responses_and_conversations_belong_to_their_principal(
    owner: str, other: str, client: httpx.AsyncClient
) -> None:
    body = {"model": "toolchat", "input": "a"}
    first = (await client.post(RESPONSES, json=body, headers=as_(owner))).json()
    items = {"items": [user("my secret")]}
    conversation = (await client.post("/v1/conversations", json=items, headers=as_(owner))).json()["id"]
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    asked: list[tuple[str, str, Any, int]] = [
        ("GET", f"{RESPONSES}/{first['id']}", None, 404),
        ("GET", f"{RESPONSES}/{first['id']}/input_items", None, 404),
        ("POST", f"{RESPONSES}/{first['id']}/cancel", None, 404),
        ("DELETE", f"{RESPONSES}/{first['id']}", None, 404),
        ("POST", RESPONSES, body | {"previous_response_id": first["id"]}, 400),
        ("POST", RESPONSES, body | {"input": [reference]}, 400),
        ("GET", f"/v1/conversations/{conversation}", None, 404),
        ("GET", f"/v1/conversations/{conversation}/items", None, 404),
        ("POST", f"/v1/conversations/{conversation}/items", items, 404),
        ("DELETE", f"/v1/conversations/{conversation}", None, 404),
        ("POST", RESPONSES, body | {"conversation": conversation}, 404),
    ]
    for method, path, json_body, status in asked:
        refused = await client.request(method, path, json=json_body, headers=as_(other))
        assert (refused.status_code, path) == (status, path)
    for path in (f"{RESPONSES}/{first['id']}", f"/v1/conversations/{conversation}/items"):
        assert (await client.get(path, headers=as_(owner))).status_code == 200


@pytest.mark.parametrize(("owner", "other"), [("alice", "bob"), ("", "alice")])
async def test_what_a_tool_keeps_for_a_conversation_of_one_is_not_there_for_another(
    owner: str, other: str, client: httpx.AsyncClient
) -> None:
    query, items = f"?sessionId=desk{owner}-{other}", [{"id": "1", "text": "a secret", "status": "pending"}]
    await called(client, as_(owner), "todoUpdate", query, items=items)
    read = [(await called(client, as_(name), "todoRead", query))["content"][0]["text"] for name in (other, owner)]
    assert ["a secret" in each for each in read] == [False, True]


async def test_only_who_asked_sees_the_calls_that_wait_and_decides(client: httpx.AsyncClient) -> None:
    waiting = await completed(client, "alice", user("call ship"))
    place, unknown = f"/approvals/{waiting.headers['x-approval-id']}", "/approvals/AAAAAAAAAAAAAAAAAAAAAA"
    decisions = {"decisions": {"call_0": {"approved": True}}}
    for name in ("bob", ""):
        missing = await client.get(unknown, headers=as_(name))
        told = [await client.get(place, headers=as_(name))]
        told.append(await client.post(place, json=decisions, headers=as_(name)))
        assert [(each.status_code, alike(each)) for each in told] == [(404, alike(missing))] * 2
    assert (await client.get(place, headers=as_("alice"))).status_code == 200
    assert (await client.post(place, json=decisions, headers=as_("alice"))).status_code == 200


async def test_only_who_was_asked_by_a_host_consents(client: httpx.AsyncClient) -> None:
    host, before = Host(client, elicitation={}), Seen.switched
    state = (await host.ask("tools/call", as_("alice"), **SWITCH)).json()["result"]["requestState"]
    brought = {"inputResponses": {"consent": {"action": "accept", "content": {}}}, "requestState": state}
    # Who has no key may call himself alice, and is not she.
    for other in (as_("bob"), as_(""), as_("", **{"X-Tenant-ID": "alice"})):
        assert await host.error("tools/call", other, **SWITCH, **brought) == (400, -32602)
    assert Seen.switched == before
    assert "error" not in (await host.ask("tools/call", as_("alice"), **SWITCH, **brought)).json()
    async with asked(client, **SWITCH, headers=as_("alice")) as streamed:
        identifier = (await streamed.message())["id"]
        assert [await streamed.respond(identifier, **as_(name)) for name in ("bob", "alice")] == [400, 202]
        assert (await streamed.message())["result"]["content"][0]["text"] == "on"
    assert Seen.switched == before + 2


async def test_one_idempotency_key_means_something_else_to_each(client: httpx.AsyncClient) -> None:
    for name in ("alice", "bob", ""):
        headers = as_(name, **{"Idempotency-Key": "one", "X-Tenant-ID": "alice"})
        for replayed in (False, True):
            ran = await client.post("/tools/switchLight", json={"on": True}, headers=headers)
            assert (ran.status_code, "idempotency-replayed" in ran.headers) == (200, replayed), ran.text


async def test_a_key_is_the_tenant_whatever_the_header_says(client: httpx.AsyncClient) -> None:
    headers = {"X-Tenant-ID": "acme"}
    told = [await called(client, as_(name, **headers), "whose", "?sessionId=desk") for name in ("alice", "")]
    assert [each["content"][0]["text"] for each in told] == ["alice alice/desk", "acme desk"]


async def test_no_page_names_a_tool_that_the_key_may_not_use(client: httpx.AsyncClient) -> None:
    folders = (await client.get("/tools", headers=as_("alice"))).json()
    names = {each["name"] for folder in folders for each in folder["tools"]}
    hidden = {each for each in names if not each.startswith("getCityTime") and each != each.lower()}  # no usual words
    assert {"todoRead", "switchLight"} < hidden
    for path in ("/", "/openapi.json", "/tools", "/v1/models"):
        text = (await client.get(path, headers=as_("narrow"))).text
        assert [name for name in (*hidden, "/todo/chat") if name in text] == [], path
    document = (await client.get("/openapi.json", headers=as_("narrow"))).json()
    assert {"/tools/getCityTimeFunction", "/time/chat-tool-function", "/chat"} < document["paths"].keys()
    listed = (await Host(client).ask("tools/list", as_("narrow"))).json()["result"]["tools"]
    assert [each["name"] for each in listed] == ["getCityTimeFunction", "ask"]
    assert listed[1]["annotations"]["readOnlyHint"] is True  # of what it may use, nothing writes


async def test_a_tool_that_a_key_may_not_use_is_unknown_at_every_door(
    client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    by_hand, never = [
        await client.post(f"/tools/{each}", json={}, headers=as_("narrow")) for each in ("todoRead", "never")
    ]
    assert [(each.status_code, each.json()["code"]) for each in (by_hand, never)] == [(404, "not-found")] * 2
    assert "todoRead" not in never.json()["detail"]
    chosen = await client.get("/chat", params={"query": "hi", "tools": "todoRead"}, headers=as_("narrow"))
    named = await called(client, as_("narrow"), "ask", question="?", tools=["todoRead"])
    assert (chosen.status_code, "todoUpdate" in chosen.text) == (422, False)
    assert (named["isError"], "todoUpdate" in str(named)) == (True, False)
    for name in ("switchLight", "notThere"):
        answer = await Host(client).ask("tools/call", as_("narrow"), name=name, arguments={"on": True})
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, f"Unknown tool: {name}")
    await completed(client, "narrow", user("call todoRead"), tools=[ROLL])
    offered = {each["function"]["name"] for each in player.requests[-2].body["tools"]}
    assert offered == {"getCityTimeFunction", "roll"}
    assert '"kind":"unknown-tool"' in player.requests[-1].body["messages"][-1]["content"].replace(" ", "")


async def test_a_model_without_usable_tools_is_hidden(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/v1/models", headers=as_("narrow"))).json()["data"]
    assert {each["id"] for each in listed} == {"toolchat", "toolchat-plain", "toolchat-time"}
    for model in ("toolchat-todo", "toolchat-none"):
        one = await client.get(f"/v1/models/{model}", headers=as_("narrow"))
        refused = await completed(client, "narrow", user("hi"), model=model)
        assert [error_of(each)[:2] for each in (one, refused)] == [(404, "model_not_found")] * 2
        assert (await client.get(f"/v1/models/{model}", headers=as_("alice"))).is_success is (model == "toolchat-todo")


async def test_a_call_of_a_tool_that_was_never_offered_is_refused_where_calls_are_run() -> None:
    manager, tool = ToolCallingManager(), FunctionToolCallback.from_function(secret)
    call_of_it = AssistantMessage("", (ToolCall("a", "secret", "{}"),))
    with calling_as("narrow", tools=("other*",)):
        refused = await manager.execute_tool_calls((), call_of_it, (tool,))
    allowed = await manager.execute_tool_calls((), call_of_it, (tool,))
    assert [each.executions[0].error_kind for each in (refused, allowed)] == ["unknown-tool", None]
    assert "available: none" in refused.executions[0].result


async def secret() -> str:
    """Tell a secret."""
    return "told"


@pytest.mark.parametrize(("keys", "status"), [({}, 200), ({"API_KEYS": f"alice={digest_of('alice')}"}, 401)])
async def test_metrics_name_principals_to_operators_only(keys: dict[str, str], status: int) -> None:
    async with service(ALLOW_ANONYMOUS="true", **keys) as client:
        assert (await client.get("/chat?query=hello")).status_code == 200
        assert (await client.get("/metrics")).status_code == status
        assert (await client.get("/metrics", headers={"X-API-Key": "alice"})).status_code == 200


async def test_who_is_not_let_in_is_told_so_in_the_words_of_the_door(tmp_path: Path) -> None:
    async with service(**principals(tmp_path, bob='roles = ["operate"]')) as client:
        for method, path in (("GET", "/v1/models"), ("POST", COMPLETIONS)):
            answers = [await client.request(method, path, headers=as_(name)) for name in ("", "wrong", "bob")]
            codes = [(401, "invalid_api_key", None)] * 2 + [(403, "forbidden", None)]
            assert [error_of(each) for each in answers] == codes
            assert {each.headers["x-should-retry"] for each in answers} == {"false"}
        for method in ("POST", "GET", "DELETE"):  # before a message is read
            answers = [await client.request(method, "/mcp", content=b"?", headers=as_(each)) for each in ("", "bob")]
            assert [(each.status_code, each.json()["code"]) for each in answers] == [
                (401, "unauthorized"),
                (403, "forbidden"),
            ]
            assert answers[0].headers["www-authenticate"].startswith("Bearer")


async def test_cross_site_and_misdirected_requests_get_openais_error_format() -> None:
    async with service() as client:
        body = {"model": "toolchat", "messages": [user("hi")]}
        page = await client.post(COMPLETIONS, json=body, headers={"Origin": "https://evil.example"})
        name = await client.get("/v1/models", headers={"Host": "evil.example"})
    assert [error_of(each)[:2] for each in (page, name)] == [(403, "cross_site"), (421, "misdirected")]
