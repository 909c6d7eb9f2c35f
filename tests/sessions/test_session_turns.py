"""All turns of a session in pages, which of them the model receives, and who approved what."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.access.principals import as_, principals
from tests.api.guarded import guarded_service
from tests.chat.played import JSON
from tests.serving import service


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(CHAT_PROVIDER="offline", MEMORY_MAX_MESSAGES="6") as client:
        for number in range(5):
            await client.post("/chat", json={"query": f"hello {number}", "sessionId": "long"})
        yield client


async def page(client: httpx.AsyncClient, **parameters: Any) -> tuple[list[tuple[int, str]], str]:
    answer = await client.get("/sessions/long", params=parameters)
    assert answer.status_code == 200, answer.text
    shown = [(each["turn"], each["messages"][0]["text"]) for each in answer.json()["turns"]]
    return shown, answer.json()["next"]


async def test_all_turns_are_shown_the_newest_first_in_pages(client: httpx.AsyncClient) -> None:
    every = [(number, f"hello {number}") for number in (4, 3, 2, 1, 0)]
    assert await page(client) == (every, "")
    assert await page(client, limit=2) == (every[:2], "3")
    assert await page(client, limit=2, before="3") == (every[2:4], "1")
    assert await page(client, limit=2, before="1") == (every[4:], "")
    assert await page(client, before="0") == ([], "")
    assert await page(client, before="999") == (every, "")


async def test_a_turn_says_whether_the_model_receives_it(client: httpx.AsyncClient) -> None:
    document = (await client.get("/sessions/long")).json()
    is_in_window = [each["is_in_window"] for each in document["turns"]]
    assert (document["total"], document["title"]) == (5, "hello 0")
    assert is_in_window == sorted(is_in_window, reverse=True)
    assert set(is_in_window) == {True, False}


@pytest.mark.parametrize(
    ("query", "status"),
    [("limit=0", 422), ("limit=101", 422), ("before=-1", 422), ("before=x", 422), ("before=1", 200)],
)
async def test_an_impossible_page_is_rejected(query: str, status: int, client: httpx.AsyncClient) -> None:
    assert (await client.get(f"/sessions/long?{query}")).status_code == status


async def test_only_the_session_of_the_client_itself_is_shown(tmp_path: Path) -> None:
    async with guarded_service(tmp_path, **principals(tmp_path)) as client:
        asked = {"query": "Switch the light on", "sessionId": "dark"}
        answer = await client.post("/chat", json=asked, headers=as_("alice", **JSON))
        shown = await client.get("/sessions/dark", headers=as_("alice"))
        assert (shown.status_code, shown.json()["turns"]) == (200, [])
        (call,) = (approval := answer.json()["approval"])["calls"]
        decisions = {"decisions": {call["id"]: {"approved": True}}}
        await client.post(f"/approvals/{approval['id']}", json=decisions, headers=as_("alice"))
        (turn,) = (await client.get("/sessions/dark", headers=as_("alice"))).json()["turns"]
        assert [each["approved_by"] for each in turn["messages"][-1]["tool_calls"]] == ["alice"]
        assert (await client.get("/sessions/dark", headers=as_("bob"))).status_code == 404
