"""Consent in the versions with a handshake, asked in the stream of the call, by the client of the official SDK."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, ErrorData

from tests.players.openai_player import OpenAIPlayer
from tests.protocols.mcp_server.folders.workshop import Seen
from tests.protocols.mcp_server.host import FOLDERS, LEGACY
from tests.protocols.mcp_server.test_asked_consent import ASK, obedient
from tests.serving import service

Answers = Callable[[], ElicitResult | ErrorData]
ASKED = 'Run switchLight with {"on":true}?'


def answering(*actions: str) -> Answers:
    """A user who decides one call after the other."""
    left = list(actions)
    return lambda: ElicitResult.model_validate({"action": left.pop(0), "content": {}})


@pytest.fixture(params=LEGACY)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version that the SDK's client begins with."""
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", request.param)
    return str(request.param)


@pytest.fixture(scope="module")
async def asking() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of a service whose model switches lights."""
    async with OpenAIPlayer(obedient) as player, service(FOLDERS, OPENAI_BASE_URL=player.base_url) as client:
        yield client


@asynccontextmanager
async def sdk(client: httpx.AsyncClient, answers: Answers) -> AsyncGenerator[tuple[ClientSession, list[str]], None]:
    """The SDK's client, and what its user was asked."""
    asked: list[str] = []

    async def decide(context: Any, params: Any) -> ElicitResult | ErrorData:
        asked.append(params.message)
        return answers()

    async with (
        streamable_http_client(f"{client.base_url}/mcp") as (incoming, outgoing),
        ClientSession(incoming, outgoing, elicitation_callback=decide) as session,
    ):
        await session.initialize()
        yield session, asked


def text_of(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    return "".join(getattr(each, "text", "") for each in result.content)


async def test_an_accepted_call_runs_once(version: str, client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with sdk(client, answering("accept")) as (session, asked):
        assert session.protocol_version == version
        result = await session.call_tool("switchLight", {"on": True})
    assert (text_of(result), asked, Seen.switched) == ("on", [ASKED], before + 1)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_rejected_call_does_not_run(action: str, version: str, client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with sdk(client, answering(action)) as (session, asked):
        result: Any = await session.call_tool("switchLight", {"on": True})
    assert (result.is_error, len(asked), Seen.switched) == (True, 1, before)
    assert '"kind":"rejected"' in text_of(result)


async def test_an_error_of_the_host_is_no_consent(client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with sdk(client, lambda: ErrorData(code=-32603, message="no window")) as (session, asked):
        result: Any = await session.call_tool("switchLight", {"on": True})
    assert (result.is_error, asked, Seen.switched) == (True, [ASKED], before)


async def test_calls_of_the_services_model_are_asked_about_one_by_one(
    version: str,
    asking: httpx.AsyncClient,
) -> None:
    before = Seen.switched
    async with sdk(asking, answering("accept", "decline")) as (session, asked):
        result = await session.call_tool(**ASK)
    assert (text_of(result), asked, Seen.switched) == ("done refused", [ASKED] * 2, before + 1)
