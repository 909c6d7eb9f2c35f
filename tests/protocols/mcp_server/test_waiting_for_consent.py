"""Calls that wait for their user in the versions with a handshake: what ends the wait, and what does not."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.observability.reading import figures_of, grown
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.protocols.mcp_server.folders.workshop import Seen
from tests.protocols.mcp_server.host import FOLDERS, LEGACY, Host, asked, session_of
from tests.protocols.mcp_server.test_asked_consent import ASK, obedient
from tests.protocols.mcp_server.test_consent import CALL
from tests.serving import service
from tests.waiting import until
from toolchat.service.protocols.mcp_server import consent
from toolchat.service.server.http_protocol import LimitedProtocol


@pytest.fixture
async def replicas() -> AsyncGenerator[tuple[httpx.AsyncClient, httpx.AsyncClient], None]:
    """Two replicas that share a store."""
    async with (
        RedisServer() as redis,
        service(FOLDERS, CHAT_PROVIDER="offline", REDIS_URL=redis.url) as one,
        service(FOLDERS, CHAT_PROVIDER="offline", REDIS_URL=redis.url) as other,
    ):
        yield one, other


async def test_any_replica_receives_the_decision_and_the_first_one_counts(
    replicas: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    before, (one, other) = Seen.switched, replicas
    async with asked(one, **CALL) as call:
        response = {"jsonrpc": "2.0", "id": (await call.message())["id"]}
        results = [{**response, "result": {"action": action}} for action in ("decline", "accept")]
        sent = [(await other.post("/mcp", json=each)).status_code for each in results]
        result = (await call.message())["result"]
    assert (sent, result["isError"], Seen.switched) == ([202, 400], True, before)


async def test_a_media_type_may_have_capitals(client: httpx.AsyncClient) -> None:
    async with asked(client, **CALL, headers={"Accept": "Application/JSON, Text/Event-Stream"}) as call:
        assert (await call.message())["method"] == "elicitation/create"


async def test_the_result_ends_the_stream_that_asks(client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with asked(client, **CALL) as call:
        request = await call.message()
        assert (request["method"], Seen.switched) == ("elicitation/create", before)
        assert request["params"]["requestedSchema"] == {"type": "object", "properties": {}}
        assert await call.respond(request["id"]) == 202
        response = await call.message()
        with pytest.raises(AssertionError, match="has ended"):
            await call.message()
    assert (response["id"], response["result"]["content"][0]["text"]) == (1, "on")
    assert Seen.switched == before + 1


async def test_nothing_runs_after_the_host_has_disconnected(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    before = Seen.switched
    caplog.set_level("INFO", "toolchat.request")
    async with asked(client, **CALL) as call:
        identifier = (await call.message())["id"]
    await until(lambda: any(vars(each).get("outcome") == "client_gone" for each in caplog.records))
    await call.respond(identifier)
    assert await Host(client).result("tools/list")
    assert Seen.switched == before


async def test_without_a_decision_in_time_the_call_is_rejected(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Seen.switched
    monkeypatch.setattr(consent, "DECISION_SECONDS", 0.01)
    async with asked(client, **CALL) as call:
        identifier = (await call.message())["id"]
        result = (await call.message())["result"]
    await call.respond(identifier)
    assert (result["isError"], Seen.switched) == (True, before)
    assert '"kind":"rejected"' in result["content"][0]["text"]


@pytest.mark.parametrize("result", [{"action": "perhaps"}, {}, {"action": ["accept"]}], ids=str)
async def test_an_unknown_decision_is_no_consent(result: dict[str, Any], client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with asked(client, **CALL) as call:
        response = {"jsonrpc": "2.0", "id": (await call.message())["id"], "result": result}
        assert (await client.post("/mcp", json=response)).status_code == 202
        assert (await call.message())["result"]["isError"] is True
    assert Seen.switched == before


@pytest.mark.parametrize("identifier", ["0" * 32, "A" * 32, "0" * 33, "", 1, "é"], ids=str)
async def test_a_response_that_nobody_waits_for_is_rejected(identifier: Any, client: httpx.AsyncClient) -> None:
    for rest in ({"result": {"action": "accept"}}, {"error": {"code": 1, "message": "no"}}):
        answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": identifier, **rest})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"roots": {}}], ids=str)
async def test_only_a_host_that_shows_forms_is_asked(capabilities: dict[str, Any], client: httpx.AsyncClient) -> None:
    session = await session_of(client, **capabilities)
    one, other = [(await session_of(client, elicitation={}))["mcp-session-id"] for _ in range(2)]
    assert len({one, other, session["mcp-session-id"]}) == 3
    body, _ = Host(client, LEGACY[0]).request("tools/call", **CALL)
    answer = await client.post("/mcp", json=body, headers=session)
    assert "a person must decide" in answer.json()["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", LEGACY)
async def test_a_host_that_takes_no_events_is_not_asked(version: str, client: httpx.AsyncClient) -> None:
    session = {**await session_of(client, version, elicitation={"form": {}}), "Accept": "application/json"}
    body, _ = Host(client, version).request("tools/call", **CALL)
    result = (await client.post("/mcp", json=body, headers=session)).json()["result"]
    assert "a person must decide" in result["content"][0]["text"]


async def test_a_person_has_longer_than_an_answer_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    monkeypatch.setattr(LimitedProtocol, "abort_after", lambda _, seconds: limits.append(seconds))
    async with (
        OpenAIPlayer(obedient) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url, REQUEST_TIMEOUT="60") as client,
        asked(client, **ASK) as call,
    ):
        await call.message()
    assert limits[-1] >= consent.DECISION_SECONDS > limits[0]


async def test_the_time_of_a_person_is_not_that_of_the_service(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    async with asked(client, **CALL) as call:
        identifier = (await call.message())["id"]
        await asyncio.sleep(0.3)
        await call.respond(identifier)
        await call.message()

    async def took() -> list[float]:
        after = await figures_of(client)
        names = [f"toolchat_question_{each}_seconds_sum" for each in ("duration", "overhead")]
        return [sum(grown(before, after, name).values()) for name in names]

    async def is_counted() -> bool:
        return (await took())[0] > 0

    await until(is_counted)
    whole, overhead = await took()
    assert whole - overhead >= 0.3
