"""What a principal makes by an MCP host is its own, and what it may not use is not there."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.access.principals import as_, principals
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.protocols.mcp_server.folders.workshop import Seen
from tests.protocols.mcp_server.host import FOLDERS, Host, asked
from tests.serving import service

SWITCH: dict[str, Any] = {"name": "switchLight", "arguments": {"on": True}}
ACCEPTED = {"consent": {"action": "accept", "content": {}}}
PLAN = {"items": [{"id": "1", "text": "a secret", "status": "pending"}]}


@pytest.fixture(scope="module")
async def played(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    keys = principals(tmp_path_factory.mktemp("keys"))
    async with (
        OpenAIPlayer(sensible_model({"timeZoneId": "Asia/Shanghai"})) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url, ALLOW_ANONYMOUS="true", **keys) as client,
    ):
        yield client, player


@pytest.fixture
def client(played: tuple[httpx.AsyncClient, OpenAIPlayer]) -> httpx.AsyncClient:
    return played[0]


async def called(
    client: httpx.AsyncClient, headers: dict[str, str], name: str, query: str = "", **arguments: Any
) -> dict[str, Any]:
    """The result of a call."""
    body, own = Host(client).request("tools/call", name=name, arguments=arguments)
    answer = await client.post(f"/mcp{query}", json=body, headers={**own, **headers})
    result: dict[str, Any] = answer.json()["result"]
    return result


def text_of(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


async def test_a_key_is_the_tenant_whatever_the_header_says(client: httpx.AsyncClient) -> None:
    told = [
        text_of(await called(client, as_(name, **{"X-Tenant-ID": "acme"}), "whose", "?sessionId=desk"))
        for name in ("alice", "")
    ]
    assert told == ["alice alice/desk", "acme desk"]


@pytest.mark.parametrize(("owner", "other"), [("alice", "bob"), ("alice", ""), ("", "alice")])
async def test_what_a_tool_keeps_for_a_conversation_of_one_is_not_there_for_another(
    owner: str, other: str, client: httpx.AsyncClient
) -> None:
    query = f"?sessionId=desk{owner}-{other}"
    await called(client, as_(owner), "todoUpdate", query, **PLAN)
    read = [text_of(await called(client, as_(name), "todoRead", query)) for name in (other, owner)]
    assert ["a secret" in each for each in read] == [False, True]


@pytest.mark.parametrize(("owner", "other"), [("alice", "bob"), ("alice", ""), ("", "alice")])
async def test_a_conversation_of_ask_is_not_there_for_another(
    owner: str, other: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]
) -> None:
    client, player = played
    first = await called(client, as_(owner), "ask", question="my secret")
    session, given = first["structuredContent"]["session_id"], []
    assert "/" not in session
    assert (await client.get(f"/chat/{session}", headers=as_(other))).status_code == 404
    for name in (other, owner):
        await called(client, as_(name), "ask", question="hello", sessionId=session)
        given.append([each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"])
    assert given == [["hello"], ["my secret", "hello"]]


async def test_only_who_was_asked_consents(client: httpx.AsyncClient) -> None:
    host, before = Host(client, elicitation={}), Seen.switched
    state = (await host.ask("tools/call", as_("alice"), **SWITCH)).json()["result"]["requestState"]
    brought = {"inputResponses": ACCEPTED, "requestState": state}
    # Who has no key may call himself alice, and is not she.
    for other in (as_("bob"), as_(""), as_("", **{"X-Tenant-ID": "alice"})):
        assert await host.error("tools/call", other, **SWITCH, **brought) == (400, -32602)
    assert Seen.switched == before
    answer = await host.ask("tools/call", as_("alice"), **SWITCH, **brought)
    assert (text_of(answer.json()["result"]), Seen.switched) == ("on", before + 1)


async def test_a_tool_that_a_key_may_not_use_is_neither_listed_nor_run(client: httpx.AsyncClient) -> None:
    host = Host(client)
    tools = (await host.ask("tools/list", as_("narrow"))).json()["result"]["tools"]
    assert [each["name"] for each in tools] == ["getCityTimeFunction", "ask"]
    assert tools[1]["annotations"]["readOnlyHint"] is True  # of what it may use, nothing writes
    told = []
    for name in ("switchLight", "notThere"):
        answer = await host.ask("tools/call", as_("narrow"), name=name, arguments={"on": True})
        told.append((answer.status_code, answer.json()["error"]["message"].replace(name, "…")))
    assert told == [(400, "Unknown tool: …")] * 2
    assert "error" not in (await host.ask("tools/call", as_("alice"), name="quotes", arguments={})).json()


async def test_a_question_is_offered_the_tools_that_its_key_may_use_and_names_no_others(
    played: tuple[httpx.AsyncClient, OpenAIPlayer],
) -> None:
    client, player = played
    await called(client, as_("narrow"), "ask", question="What time is it?")
    assert [each["function"]["name"] for each in player.requests[-1].body["tools"]] == ["getCityTimeFunction"]
    named = await called(client, as_("narrow"), "ask", question="?", tools=["todoRead"])
    assert named["isError"] is True
    assert "todoUpdate" not in text_of(named)


async def test_who_is_not_let_in_is_told_before_a_message_is_read(tmp_path: Path) -> None:
    async with service(**principals(tmp_path, bob='roles = ["operate"]')) as client:
        answers = [
            await client.request(method, "/mcp", content=b"no message", headers=as_(name))
            for method in ("POST", "GET", "DELETE")
            for name in ("", "wrong", "bob")
        ]
    assert [each.status_code for each in answers] == [401, 401, 403] * 3
    assert {each.json()["code"] for each in answers} == {"unauthorized", "forbidden"}
    assert answers[0].headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("token", [{}, {"progressToken": 1}], ids=["whole", "streamed"])
async def test_a_call_counts_under_the_quotas_and_a_listing_does_not(token: dict[str, int], tmp_path: Path) -> None:
    keys = principals(tmp_path, alice="requests_per_minute = 1")
    async with service(FOLDERS, CHAT_PROVIDER="offline", **keys) as client:
        host, call = Host(client), {"name": "count", "arguments": {"to": 1}, "_meta": token}
        answers = [await host.ask("tools/call", as_("alice"), **call) for _ in range(2)]
        listed = await host.ask("tools/list", as_("alice"))
        other = await host.ask("tools/call", as_("bob"), **call)
    assert [each.status_code for each in (*answers, listed, other)] == [200, 429, 200, 200]
    assert answers[0].headers["ratelimit"].startswith('"minute";r=0')
    error = answers[1].json()["error"]
    assert (error["code"], error["data"]["code"]) == (-32603, "quota-exceeded")
    assert int(answers[1].headers["retry-after"]) > 0


async def test_a_decision_of_another_key_is_not_taken(client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with asked(client, **SWITCH, headers=as_("alice")) as call:
        identifier = (await call.message())["id"]
        assert [await call.respond(identifier, **as_(name)) for name in ("bob", "alice")] == [400, 202]
        assert (await call.message())["result"]["content"][0]["text"] == "on"
    assert Seen.switched == before + 1
