"""What a principal makes is its own: to everybody else it is not there."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.access.principals import alike, as_, principals
from tests.calling_as import calling_as
from tests.chat.played import JSON
from tests.players.openai_player import OpenAIPlayer
from tests.serving import service
from tests.sessions.deciding import LIGHTS, approve, careful
from toolchat.messages import AssistantMessage, ToolCall
from toolchat.service.access.keys import digest_of
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service with two principals, one who may not use much, and room for those without a key."""
    keys = principals(tmp_path_factory.mktemp("keys"))
    async with (
        OpenAIPlayer(careful) as player,
        service(LIGHTS, OPENAI_BASE_URL=player.base_url, ALLOW_ANONYMOUS="true", **keys) as client,
    ):
        yield client


@pytest.mark.parametrize(("owner", "other"), [("alice", "bob"), ("alice", ""), ("", "alice")])
async def test_a_conversation_of_one_is_not_there_for_another(
    shared: httpx.AsyncClient, owner: str, other: str
) -> None:
    session = f"trip-{owner}-{other}".strip("-")
    asked = await shared.get("/chat", params={"query": "hello", "sessionId": session}, headers=as_(owner))
    assert (asked.status_code, asked.headers["x-session-id"]) == (200, session)
    kept = await shared.get(f"/chat/{session}", headers=as_(owner))
    assert (kept.json()["session_id"], kept.json()["turns"]) == (session, 1)
    unknown = await shared.get("/chat/never-there", headers=as_(other))
    foreign = await shared.get(f"/chat/{session}", headers=as_(other))
    assert (foreign.status_code, alike(foreign)) == (404, alike(unknown))
    assert (await shared.delete(f"/chat/{session}", headers=as_(other))).status_code == 204
    assert (await shared.get(f"/chat/{session}", headers=as_(owner))).status_code == 200


async def test_two_principals_can_use_one_session_id_independently(shared: httpx.AsyncClient) -> None:
    for name, words in (("alice", "hello from alice"), ("bob", "hello from bob")):
        await shared.get("/chat", params={"query": words, "sessionId": "same"}, headers=as_(name))
    shown = (await shared.get("/chat/same", headers=as_("bob"))).text
    assert "hello from bob" in shown
    assert "hello from alice" not in shown


async def test_only_the_requesting_principal_can_decide_an_approval(shared: httpx.AsyncClient) -> None:
    answer = await shared.get("/light/attic", params={"query": "please"}, headers=as_("alice", **JSON))
    approval = answer.json()["approval"]
    place, call = f"/approvals/{approval['id']}", approval["calls"][0]["id"]
    unknown = await approve(shared, "/approvals/AAAAAAAAAAAAAAAAAAAAAA", call, **as_("bob"))
    for other in ("bob", ""):
        foreign = await approve(shared, place, call, **as_(other))
        assert (foreign.status_code, alike(foreign)) == (404, alike(unknown))
    assert (await approve(shared, place, call, **as_("alice"))).status_code == 200


async def test_one_idempotency_key_means_something_else_to_each(shared: httpx.AsyncClient) -> None:
    for name in ("alice", "bob", ""):
        headers = as_(name, **{"Idempotency-Key": "one", "X-Tenant-ID": "alice"})
        for replayed in (False, True):
            ran = await shared.post("/tools/switchLight", json={"on": True}, headers=headers)
            assert (ran.status_code, "idempotency-replayed" in ran.headers) == (200, replayed), ran.text


async def test_a_tool_that_a_key_may_not_use_is_hidden_on_every_route(
    shared: httpx.AsyncClient,
) -> None:
    folders = (await shared.get("/tools", headers=as_("narrow"))).json()
    listed = {tool["name"] for folder in folders for tool in folder["tools"]}
    assert listed == {"getCityTimeFunction", "getCityTimeMethod"}
    by_hand = await shared.post("/tools/todoRead", json={}, headers=as_("narrow"))
    unknown = await shared.post("/tools/never", json={}, headers=as_("narrow"))
    assert (
        (by_hand.status_code, by_hand.json()["code"])
        == (unknown.status_code, unknown.json()["code"])
        == (404, "not-found")
    )
    assert "todoRead" not in unknown.json()["detail"]
    chosen = await shared.get("/chat", params={"query": "hi", "tools": "todoRead"}, headers=as_("narrow"))
    assert (chosen.status_code, "todoUpdate" in chosen.text) == (422, False)


async def test_a_call_of_a_tool_that_was_never_offered_is_refused_where_calls_are_run() -> None:
    manager, tool = ToolCallingManager(), FunctionToolCallback.from_function(secret)
    message = AssistantMessage("", (ToolCall("a", "secret", "{}"),))
    with calling_as("narrow", tools=("other*",)):
        refused = await manager.execute_tool_calls((), message, (tool,))
    allowed = await manager.execute_tool_calls((), message, (tool,))
    assert [each.executions[0].error_kind for each in (refused, allowed)] == ["unknown-tool", None]
    assert "available: none" in refused.executions[0].result


async def secret() -> str:
    """Tell a secret."""
    return "told"


async def test_no_page_names_a_tool_that_the_key_may_not_use(shared: httpx.AsyncClient) -> None:
    folders = (await shared.get("/tools", headers=as_("alice"))).json()
    hidden = {each["name"] for folder in folders for each in folder["tools"] if "getCityTime" not in each["name"]}
    assert {"todoRead", "switchLight"} < hidden
    for path in ("/", "/openapi.json", "/tools", "/v1/models"):
        text = (await shared.get(path, headers=as_("narrow"))).text
        assert [name for name in (*hidden, "/light/attic", "/todo/chat") if name in text] == [], path
    document = (await shared.get("/openapi.json", headers=as_("narrow"))).json()
    assert {"/tools/getCityTimeFunction", "/time/chat-tool-function", "/chat"} < document["paths"].keys()
    assert "/tools/switchLight" in (await shared.get("/openapi.json", headers=as_("alice"))).json()["paths"]


@pytest.mark.parametrize(("keys", "status"), [({}, 200), ({"API_KEYS": f"alice={digest_of('alice')}"}, 401)])
async def test_metrics_name_principals_to_operators_only(keys: dict[str, str], status: int) -> None:
    async with service(ALLOW_ANONYMOUS="true", **keys) as client:
        assert (await client.get("/chat?query=hello")).status_code == 200
        assert (await client.get("/metrics")).status_code == status
        assert (await client.get("/metrics", headers={"X-API-Key": "alice"})).status_code == 200
