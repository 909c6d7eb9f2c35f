"""Sessions over HTTP that end, and servers that go away: told by the signs of the protocol, never by a text."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.mcp_client.player import McpPlayer
from tests.mcp_client.playing import ran, reaches, state, written
from tests.serving import service, serving
from tests.waiting import until
from toolchat.service.settings.service_settings import Tuning

Opened = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
async def player() -> McpPlayer:
    return McpPlayer()


@pytest.fixture
def opened(player: McpPlayer, tmp_path: Path) -> Opened:
    """Opens a service whose server ``far`` is played; takes the seconds between two listings of its tools."""

    @asynccontextmanager
    async def open_(refresh: float = 600, **entry: Any) -> AsyncGenerator[httpx.AsyncClient, None]:
        async with serving(player.app) as url:
            file = written(tmp_path, far={"url": f"{url}/mcp", **entry})
            tuning = Tuning(tool_list_refresh=refresh)
            async with service(tuning, MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
                yield client

    return open_


def error(code: int, message: str, status: int) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


def unavailable(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "is unavailable" in each.getMessage()]


@pytest.mark.parametrize(
    "refusal",
    [
        Response(status_code=404),
        Response("<html>gone</html>", 404, media_type="text/html"),
        error(-32001, "Session not found", 404),
        error(-32600, "Session not found", 404),
        error(-32000, "Bad Request: No valid session ID provided", 400),
        error(-32000, "Connection closed", 400),
        Response(status_code=400),
        JSONResponse({"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "no"}}, 404),
    ],
    ids=[
        "no body",
        "html",
        "TypeScript SDK",
        "Python SDK",
        "server-everything",
        "misleading text",
        "400 no body",
        "another id",
    ],
)
async def test_a_call_in_a_forgotten_session_runs_in_a_new_one_whatever_the_refusal_says(
    refusal: Response, player: McpPlayer, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    player.refusal = refusal
    async with opened() as client:
        player.sessions.clear()
        assert await ran(client, "look") == ("ok", "seen")
        assert [each.headers["mcp-session-id"] for each in player.calls()] == ["session-0", "session-1"]

        async def is_renewed() -> bool:
            return player.sessions == {"session-2"}  # the one of the call was ended

        await until(is_renewed)
        assert await ran(client, "look") == ("ok", "seen")
        assert player.calls()[-1].headers["mcp-session-id"] == "session-2"
        assert await state(client) == "registered"
    assert not unavailable(caplog)


async def test_calls_of_the_same_moment_all_survive_a_forgotten_session(player: McpPlayer, opened: Opened) -> None:
    async with opened() as client:
        player.sessions.clear()
        results = await asyncio.gather(*(ran(client, "look") for _ in range(5)))

        async def is_renewed() -> bool:
            return len(player.sessions) == 1

        await until(is_renewed)
        assert await ran(client, "look") == ("ok", "seen")
    assert results == [("ok", "seen")] * 5
    assert player.methods().count("initialize") == 7  # the common session begins again once, not for each call


async def test_a_listing_in_a_forgotten_session_begins_a_new_one_unnoticed(
    player: McpPlayer, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(refresh=0.1) as client:
        player.sessions.clear()

        async def is_renewed() -> bool:
            assert await state(client) == "registered"
            return "session-1" in player.sessions

        await until(is_renewed)
        assert await ran(client, "look") == ("ok", "seen")
    assert not unavailable(caplog)


async def test_a_server_that_knows_no_session_is_unavailable(player: McpPlayer, opened: Opened) -> None:
    player.forgets = True
    async with opened() as client:
        assert (await state(client)).startswith("it answers with status 404")


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (400, -32602, "no such city"),
        (404, -32602, "no such city"),
        (404, -32602, "the booking session not found"),
        (400, -32000, "your session is full"),
    ],
)
async def test_an_answer_with_a_refusing_status_stays_one_and_its_call_runs_once(
    status: int, code: int, message: str, player: McpPlayer, opened: Opened
) -> None:
    async with opened() as client:
        player.rejection = (status, {"code": code, "message": message})
        ended, told = await ran(client, "look")
        player.rejection = None
        assert (ended, json.loads(told)["error"]["message"]) == ("failed", message)
        assert await ran(client, "look") == ("ok", "seen")
    assert [each.headers["mcp-session-id"] for each in player.calls()] == ["session-0", "session-0"]


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (404, -32001, "Session not found"),
        (404, -32600, "Not Found: Invalid or expired session ID"),
        (400, -32000, "Bad Request: No valid session ID provided"),
    ],
)
async def test_a_forgotten_session_is_one_although_the_refusal_has_the_id_of_the_call(
    status: int, code: int, message: str, player: McpPlayer, opened: Opened
) -> None:
    async with opened() as client:
        player.rejection = (status, {"code": code, "message": message})
        await ran(client, "look")
    assert [each.headers["mcp-session-id"] for each in player.calls()] == ["session-0", "session-1"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32001, "Request timed out"),
        (-32000, "Connection closed"),
        (-32600, "Session terminated"),
        (-32603, "the server did not answer in time"),
    ],
)
async def test_an_error_of_the_server_is_told_whatever_its_code_and_text_resemble(
    code: int, message: str, player: McpPlayer, opened: Opened
) -> None:
    async with opened() as client:
        player.rejection = (200, {"code": code, "message": message})
        ended, told = await ran(client, "look")
        assert (ended, json.loads(told)["error"]["message"]) == ("failed", message)
        assert len(player.calls()) == 1
        assert await state(client) == "registered"


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize("headers", [{}, {"X-User": "ann"}], ids=["common session", "own session"])
async def test_a_call_finds_out_that_the_server_is_away(
    headers: dict[str, str], status: int, player: McpPlayer, opened: Opened
) -> None:
    async with opened(forward_headers=["X-User"]) as client:
        player.status = status
        assert (await ran(client, "look", **headers))[0] == "tool-server-away"
        assert len(player.calls()) <= 1  # it may have run
        await reaches(client, f"it answers with status {status}")
        player.status = 200
        await reaches(client, "registered")


async def test_a_call_whose_response_breaks_off_may_have_run(player: McpPlayer, opened: Opened) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b": here it comes\n\n"
        raise ConnectionAbortedError

    async with opened() as client:
        player.answer = StreamingResponse(broken(), media_type="text/event-stream")
        assert (await ran(client, "look"))[0] == "tool-server-away"
        assert len(player.calls()) == 1
        assert await ran(client, "look") == ("ok", "seen")
        assert await state(client) == "registered"
