"""Responses in the background: accepted, polled, streamed from any event on, cancelled."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, sensible_model, whole
from tests.protocols.openai.asking import events_of
from tests.serving import service
from tests.waiting import until

RESPONSES = "/v1/responses"


@pytest.fixture(scope="module")
async def player() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer() as player:
        yield player


@pytest.fixture(scope="module")
async def module_client(player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(OPENAI_BASE_URL=player.base_url) as client:
        yield client


@pytest.fixture
def client(module_client: httpx.AsyncClient, player: OpenAIPlayer) -> httpx.AsyncClient:
    player.follow(sensible_model({"timeZoneId": "Asia/Tokyo"}))
    return module_client


async def accepted(client: httpx.AsyncClient) -> str:
    body = {"model": "toolchat-time", "input": "What time is it?", "background": True}
    document = (await client.post(RESPONSES, json=body)).json()
    assert (document["status"], document["background"], document["output"]) == ("queued", True, [])
    return f"{RESPONSES}/{document['id']}"


async def ended(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    async def has_ended() -> bool:
        return (await client.get(path)).json()["status"] not in ("queued", "in_progress")

    await until(has_ended)
    document: dict[str, Any] = (await client.get(path)).json()
    return document


async def test_a_response_is_polled_and_continued_by_its_id(client: httpx.AsyncClient) -> None:
    path = await accepted(client)
    document = await ended(client, path)
    assert (document["status"], document["background"]) == ("completed", True)
    assert path.endswith(document["id"])
    assert [each["type"] for each in document["output"]] == ["mcp_call", "message"]
    again = {"model": "toolchat-time", "input": "And now?", "previous_response_id": document["id"]}
    assert (await client.post(RESPONSES, json=again)).json()["status"] == "completed"
    assert len((await client.get(f"{path}/input_items")).json()["data"]) == 1


async def test_its_stream_is_continued_behind_any_event(client: httpx.AsyncClient) -> None:
    body = {"model": "toolchat-time", "input": "What time is it?", "background": True, "stream": True}
    first = events_of((await client.post(RESPONSES, json=body)).text)
    assert [each["sequence_number"] for each in first] == list(range(len(first)))
    assert (first[0]["type"], first[-1]["type"]) == ("response.created", "response.completed")
    path = f"{RESPONSES}/{first[0]['response']['id']}"
    rest = events_of((await client.get(path, params={"stream": "true", "starting_after": 3})).text)
    assert rest == first[4:]


async def test_a_cancelled_response_is_cancelled_and_stays_so(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    player.follow(lambda _: Answer(is_silent=True, ending="hang"))
    path = await accepted(client)
    await asyncio.wait_for(player.asked.wait(), 60)
    for _ in range(2):
        assert (await client.post(f"{path}/cancel")).json()["status"] == "cancelled"
    assert (await client.get(path)).json()["status"] == "cancelled"


async def test_a_response_that_fails_says_why(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    player.follow(lambda _: whole({"error": {"message": "no", "type": "x", "code": None}}, 401))
    document = await ended(client, await accepted(client))
    assert document["status"] == "failed"
    assert document["error"]["code"] == "server_error"
