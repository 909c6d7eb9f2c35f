"""The list of sessions: whose it is, what is in it, and when it changes."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.access.principals import as_, principals
from tests.api.guarded import guarded_service
from tests.serving import service
from toolchat.chat.turns import MAX_TITLE


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx.AsyncClient, None]:
    keys = principals(tmp_path_factory.mktemp("keys"))
    async with service(ALLOW_ANONYMOUS="true", **keys) as client:
        yield client


async def ask(client: httpx.AsyncClient, name: str, session: str, question: str) -> None:
    asked = await client.post("/chat", json={"query": question, "sessionId": session}, headers=as_(name))
    assert asked.status_code == 200


async def listed(client: httpx.AsyncClient, name: str) -> list[tuple[str, str]]:
    found: list[dict[str, Any]] = (await client.get("/sessions", headers=as_(name))).json()
    return [(each["session_id"], each["title"]) for each in found]


async def test_a_key_lists_its_own_sessions_with_their_first_question_the_last_used_first(
    client: httpx.AsyncClient,
) -> None:
    await ask(client, "alice", "one", "What time is it in  Oslo?\n")
    await ask(client, "alice", "two", "x" * 200)
    await ask(client, "alice", "one", "And in Rome?")
    await ask(client, "bob", "one", "Hello")
    await ask(client, "", "three", "Hello")
    assert await listed(client, "alice") == [("one", "What time is it in Oslo?"), ("two", f"{'x' * (MAX_TITLE - 1)}…")]
    assert ("one", "Hello") in await listed(client, "bob")
    assert await listed(client, "") == []
    await client.delete("/chat/one", headers=as_("alice"))
    assert [session for session, _ in await listed(client, "alice")] == ["two"]


async def test_a_session_whose_first_question_waits_for_approval_is_listed_with_it_until_it_is_decided(
    tmp_path: Path,
) -> None:
    keys = principals(tmp_path)
    async with guarded_service(tmp_path, **keys) as client:
        asked = {"query": "Switch the light on", "sessionId": "dark"}
        answer = await client.post("/chat", json=asked, headers=as_("alice", Accept="application/json"))
        (call,) = (approval := answer.json()["approval"])["calls"]
        path = f"/approvals/{approval['id']}"

        async def seen(name: str) -> list[tuple[str, str, str]]:
            found = (await client.get("/sessions", headers=as_(name))).json()
            return [(each["session_id"], each["title"], each.get("approval", "")) for each in found]

        assert await seen("alice") == [("dark", "Switch the light on", approval["id"])]
        assert await seen("bob") == []
        waiting = (await client.get(path, headers=as_("alice"))).json()
        assert (waiting["question"], waiting["calls"]) == (
            "Switch the light on",
            [call | {"description": "Switch the light.", "may_edit": True}],
        )
        shown = await client.get("/chat/dark", headers=as_("alice"))
        assert (shown.status_code, shown.json()["turns"], shown.json()["messages"]) == (200, 0, [])
        assert (await client.get("/chat/dark", headers=as_("bob"))).status_code == 404

        await client.post(path, json={"decisions": {call["id"]: {"approved": True}}}, headers=as_("alice"))
        assert await seen("alice") == [("dark", "Switch the light on", "")]
        assert (await client.get("/chat/dark", headers=as_("alice"))).json()["turns"] == 1


async def test_a_long_question_is_accepted_by_post_only(client: httpx.AsyncClient) -> None:
    longest = (await client.get("/", headers=as_("alice"))).json()["question_max_chars"]
    assert longest == 32_000
    for length, status in ((longest, 200), (longest + 1, 422)):
        asked = await client.post("/chat", json={"query": "字" * length}, headers=as_("bob"))
        assert asked.status_code == status
    by_get = await client.get("/chat", params={"query": "x" * 4001}, headers=as_("alice"))
    assert by_get.json()["detail"] == (
        "query: must have at most 4000 characters, and has 4001; send a longer text in the JSON body of a POST"
    )


async def test_a_question_can_replace_the_newest_turns(client: httpx.AsyncClient) -> None:
    for question, replaced in (("One", 0), ("Two", 0), ("Three", 0), ("Four", 2), ("Five", 1), ("Six", 3)):
        body = {"query": question, "sessionId": "edited", "replaceTurns": replaced}
        assert (await client.post("/chat", json=body, headers=as_("bob"))).status_code == 200
        stored = (await client.get("/chat/edited", headers=as_("bob"))).json()["messages"]
        asked = [each["text"] for each in stored if each["role"] == "user"]
        if question == "Five":
            assert asked == ["One", "Five"]
    assert asked == ["Six"]


@pytest.mark.parametrize("value", [-1, 1001, 1.5, "x", "", True, None, [1], 10**30, "1" * 5000])
async def test_an_invalid_number_of_turns_is_rejected(client: httpx.AsyncClient, value: object) -> None:
    answer = await client.post("/chat", json={"query": "Hi", "replaceTurns": value}, headers=as_("bob"))
    assert (answer.status_code, answer.json()["detail"][:21]) == (422, "replaceTurns: must be")
