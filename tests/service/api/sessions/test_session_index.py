"""The list of sessions, and all turns of one in pages: whose they are, what is in them, and when they change."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.access.principals import as_, principals
from tests.service.api.guarded import guarded_service
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
        assert (await client.get("/sessions/dark", headers=as_("bob"))).status_code == 404
        (turn,) = (await client.get("/sessions/dark", headers=as_("alice"))).json()["turns"]
        assert [each["approved_by"] for each in turn["messages"][-1]["tool_calls"]] == ["alice"]


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


@pytest.fixture(scope="module")
async def long_session() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(CHAT_PROVIDER="offline", MEMORY_MAX_MESSAGES="6") as client:
        for number in range(5):
            await client.post("/chat", json={"query": f"hello {number}", "sessionId": "long"})
        yield client


async def page(long_session: httpx.AsyncClient, **parameters: Any) -> tuple[list[tuple[int, str]], str]:
    answer = await long_session.get("/sessions/long", params=parameters)
    assert answer.status_code == 200, answer.text
    shown = [(each["turn"], each["messages"][0]["text"]) for each in answer.json()["turns"]]
    return shown, answer.json()["next"]


async def test_all_turns_are_shown_the_newest_first_in_pages(long_session: httpx.AsyncClient) -> None:
    every = [(number, f"hello {number}") for number in (4, 3, 2, 1, 0)]
    assert await page(long_session) == (every, "")
    assert await page(long_session, limit=2) == (every[:2], "3")
    assert await page(long_session, limit=2, before="3") == (every[2:4], "1")
    assert await page(long_session, limit=2, before="1") == (every[4:], "")
    assert await page(long_session, before="0") == ([], "")
    assert await page(long_session, before="999") == (every, "")


async def test_a_turn_says_whether_the_model_receives_it(long_session: httpx.AsyncClient) -> None:
    document = (await long_session.get("/sessions/long")).json()
    is_in_window = [each["is_in_window"] for each in document["turns"]]
    assert (document["total"], document["title"]) == (5, "hello 0")
    assert is_in_window == sorted(is_in_window, reverse=True)
    assert set(is_in_window) == {True, False}


@pytest.mark.parametrize(
    ("query", "status"),
    [("limit=0", 422), ("limit=101", 422), ("before=-1", 422), ("before=x", 422), ("before=1", 200)],
)
async def test_an_impossible_page_is_rejected(query: str, status: int, long_session: httpx.AsyncClient) -> None:
    assert (await long_session.get(f"/sessions/long?{query}")).status_code == status
