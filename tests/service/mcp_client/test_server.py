"""MCP servers over HTTP: the requests that they get, their sessions, and servers that go away or cannot be used."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.application import create_app
from tests.ports import reserved, silent_port
from tests.service.access.principals import as_, principals
from tests.service.mcp_client.player import McpPlayer
from tests.service.mcp_client.playing import hostile, ran, reaches, run, state, tools_of, written
from tests.service.observability.reading import figures_of
from tests.serving import client_of, configured, service, serving
from tests.waiting import PATIENCE, until
from toolchat.service.mcp_client import server
from toolchat.service.settings.service_settings import Tuning

Opened = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]
QUICK = Tuning(tool_list_refresh=0.1)


@pytest.fixture
async def player() -> McpPlayer:
    return McpPlayer()


@pytest.fixture
def opened(player: McpPlayer, tmp_path: Path) -> Opened:
    """Opens a service whose server ``far`` is played; takes what its entry says besides, and variables."""

    @asynccontextmanager
    async def open_(
        entry: Any = None, tuning: Tuning = Tuning(), **variables: str
    ) -> AsyncGenerator[httpx.AsyncClient, None]:
        async with serving(player.app) as url:
            file = written(tmp_path, far={"url": f"{url}/mcp", **(entry or {})})
            async with service(tuning, MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline", **variables) as client:
                yield client

    return open_


async def test_the_headers_of_the_file_are_sent_with_every_request(player: McpPlayer, opened: Opened) -> None:
    async with opened({"headers": {"Authorization": "Bearer ${TOKEN}"}}, TOKEN="s3cret") as client:
        assert await ran(client, "look") == ("ok", "seen")
    assert {"initialize", "tools/list", "tools/call"} <= set(player.methods())
    assert {each.headers.get("authorization") for each in player.received} == {"Bearer s3cret"}


async def test_only_listed_headers_are_forwarded_and_never_a_key_of_the_service(
    player: McpPlayer, opened: Opened, tmp_path: Path
) -> None:
    entry = {"forward_headers": {"X-Their-Token": "Authorization"}, "headers": {"X-Own": "1", "authorization": "ours"}}
    theirs = {"X-Their-Token": "Bearer hers", "X-Other": "other", "Cookie": "c=1"}
    async with opened(entry, **principals(tmp_path)) as client:
        with_token = await ran(client, "look", **as_("alice", **theirs))
        without = await ran(client, "look", **as_("alice"))
    assert with_token == without == ("ok", "seen")
    first, second = player.calls()
    assert first.headers["authorization"] == "Bearer hers"
    assert first.headers["x-own"] == "1"
    assert second.headers["authorization"] == "ours"
    for each in player.received:
        assert not {"x-api-key", "x-other", "cookie", "x-their-token"} & each.headers.keys()
        assert "alice" not in str(each)


async def test_calls_with_headers_of_different_users_never_share_a_session(player: McpPlayer, opened: Opened) -> None:
    async with opened({"forward_headers": ["X-User"]}) as client:
        await asyncio.gather(*(run(client, "look", **{"X-User": name}) for name in ("ann", "ben", "cem", "ann")))
    sessions = [each.headers["mcp-session-id"] for each in player.calls()]
    assert sorted(each.headers["x-user"] for each in player.calls()) == ["ann", "ann", "ben", "cem"]
    assert len(set(sessions)) == 4
    begun = [each.headers.get("x-user") for each in player.received if each.method == "initialize"]
    assert begun.count(None) == 1  # the one by which the list was asked for
    assert not player.sessions  # each was ended


async def test_a_rejected_header_fails_only_its_own_call(player: McpPlayer, opened: Opened) -> None:
    async with opened({"forward_headers": ["X-User"]}) as client:
        player.status = 401
        ended, told = await ran(client, "look", **{"X-User": "mallory"})
        player.status = 200
        assert (ended, json.loads(told)["error"]["message"]) == (
            "failed",
            "the server far refuses: it answers with status 401",
        )
        assert await ran(client, "look") == ("ok", "seen")


async def test_a_header_that_cannot_be_forwarded_fails_the_call(player: McpPlayer, opened: Opened) -> None:
    # Without it the call would be made in the name of the service.
    async with opened({"forward_headers": ["X-User"], "headers": {"X-User": "service"}}) as client:
        headers = [(b"X-User", "müller".encode())]
        failed = (await client.post("/tools/look", json={}, headers=headers)).json()
    assert failed["error_kind"] == "failed"
    assert player.calls() == []


@pytest.mark.parametrize("status", [401, 404, 405, 503])
async def test_a_server_that_refuses_at_startup_is_connected_later(
    status: int, player: McpPlayer, opened: Opened
) -> None:
    player.status = status
    sse = ": the url must be that of streamable HTTP, which often ends in /mcp; SSE is not supported"
    async with opened() as client:
        assert await state(client) == f"it answers with status {status}{sse if status in (404, 405) else ''}"
        refused = await client.get("/mcp/far/chat-tool-function")
        assert (refused.status_code, refused.json()["code"]) == (503, "tool-server-away")
        assert "Retry-After" in refused.headers
        assert "SECRET" not in refused.text
        player.status = 200
        await reaches(client, "registered")
        assert await ran(client, "look") == ("ok", "seen")


async def test_an_unavailable_server_is_noticed_without_a_call(player: McpPlayer, opened: Opened) -> None:
    async with opened(tuning=QUICK) as client:
        assert await _is_up(client) == 1
        player.status = 500
        await reaches(client, "it answers with status 500")
        assert [*await tools_of(client, "far")] == ["look"]
        assert await _is_up(client) == 0
        player.status = 200
        await reaches(client, "registered")
        assert await _is_up(client) == 1


async def test_a_server_that_never_answers_is_shown_as_away(tmp_path: Path) -> None:
    with reserved() as holder:
        holder.listen()
        file = written(tmp_path, far={"url": f"http://127.0.0.1:{holder.getsockname()[1]}/mcp"})
        async with service(Tuning(tool_server_wait=0.1), MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            assert await state(client) == "the server has not answered yet"
            assert await _is_up(client) == 0


async def _is_up(client: httpx.AsyncClient) -> float:
    return (await figures_of(client))["toolchat_mcp_server_up", (("server", "far"),)]


@pytest.mark.parametrize(
    "answer",
    [
        Response(b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * 5_000_000 + b'"}', media_type="application/json"),
        Response(gzip.compress(b"{}"), headers={"content-encoding": "gzip"}, media_type="application/json"),
        Response(b"<html>", media_type="text/html"),
        Response(b"{" * 5000, media_type="application/json"),
        Response(b"event: message\ndata: {\n\n", media_type="text/event-stream"),
        Response(b"", media_type="text/event-stream"),
        Response(status_code=202),
        Response(status_code=307, headers={"location": "http://127.0.0.1:9/elsewhere"}),
    ],
    ids=["too long", "packed", "html", "garbage", "garbage in a stream", "no event", "accepted", "redirect"],
)
async def test_an_unusable_response_fails_only_its_own_call(
    answer: Response, player: McpPlayer, opened: Opened
) -> None:
    async with opened() as client:
        player.answer = answer
        assert (await ran(client, "look"))[0] == "failed"
        assert await ran(client, "look") == ("ok", "seen")
        assert await state(client) == "registered"


@pytest.mark.parametrize(
    ("location", "logged"),
    [
        ("http://user:hush@inside.example/hush?key=hush", "http://inside.example"),
        ("/hush", "another path"),
        ("http://[hush", "another path"),
    ],
)
async def test_the_address_of_a_redirect_is_for_the_log_only(
    location: str, logged: str, player: McpPlayer, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as client:
        player.answer = Response(status_code=307, headers={"location": location})
        ended, result = await ran(client, "look")
    assert ended == "failed"
    assert "http" not in result
    redirects = [vars(each) for each in caplog.records if "redirect" in each.message]
    assert [each["to"] for each in redirects] == [logged]
    assert not [each for each in caplog.records if "hush" in str(vars(each))]


async def test_questions_are_answered_while_a_server_starts_and_its_tools_join_them(tmp_path: Path) -> None:
    file = written(tmp_path, far=hostile("silent"), near=hostile(include=["reads"]))
    configuration = configured(Tuning(tool_server_wait=PATIENCE), MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline")
    async with serving(create_app(configuration)) as url, client_of(url) as client:
        assert (await client.get("/time/chat-tool-function")).status_code == 200
        assert (await client.get("/mcp/far/chat-tool-function")).json()["code"] == "tool-server-away"
        await reaches(client, "registered", "near")
        assert [*await tools_of(client, "near")] == ["reads"]
        answer = await client.get("/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "starting")
    assert answer.json()["detail"] == "the tools of MCP far are not there yet"


async def test_the_service_is_ready_without_a_silent_server_after_a_time(tmp_path: Path) -> None:
    file = written(tmp_path, far=hostile("silent"), near=hostile(include=["reads"]))
    async with service(Tuning(tool_server_wait=0.1), MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
        assert (await client.get("/health/ready")).json()["tools"]["mcp-far"] is False
        assert await state(client) == "the server has not answered yet"
        assert (await client.get("/mcp/far/chat-tool-function")).status_code == 503
        assert (await client.get("/time/chat-tool-function")).status_code == 200


async def test_an_endless_list_of_tools_is_cut(player: McpPlayer, opened: Opened) -> None:
    player.is_endless = True
    async with opened() as client:
        assert len(await tools_of(client, "far")) == 256


async def test_a_list_whose_cursor_repeats_ends_there_with_one_warning(
    player: McpPlayer, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    player.is_circular = True

    async def is_listed_again() -> bool:
        return player.methods().count("tools/list") >= 6

    async with opened(tuning=QUICK) as client:
        await until(is_listed_again)
        assert [*await tools_of(client, "far")] == ["look"]
    assert [each.getMessage() for each in caplog.records if "cursor" in each.getMessage()] == [
        "the list of tools of the MCP server far repeats a cursor: it ends there"
    ]


async def test_tools_stand_in_the_same_order_however_their_server_lists_them(player: McpPlayer, opened: Opened) -> None:
    # https://github.com/openai/codex/pull/2611, https://github.com/maximhq/bifrost/issues/3362
    player.names.extend(("wind", "apple"))
    orders = set[tuple[str, ...]]()

    async def is_listed_in_all_orders() -> bool:
        orders.add(tuple(await tools_of(client, "far")))
        return player.methods().count("tools/list") > 6

    async with opened(tuning=QUICK) as client:
        await until(is_listed_in_all_orders)
    assert orders == {("apple", "look", "wind")}


async def test_the_tools_of_another_toolchat_are_offered_in_the_newest_revision(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = {"forward_headers": ["X-User"]}
    async with service(CHAT_PROVIDER="offline") as other:
        file = written(
            tmp_path, other={"url": f"{other.base_url}/mcp", "prefix": "far", "include": ["getCity*"]} | theirs
        )
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            assert [*await tools_of(client, "other")] == ["far_getCityTimeFunction"]
            asked = {"timeZoneId": "Asia/Tokyo"}
            shared = await ran(client, "far_getCityTimeFunction", asked)
            by_its_own_connection = await ran(client, "far_getCityTimeFunction", asked, **{"X-User": "ann"})
    for ended, result in (shared, by_its_own_connection):
        assert ended == "ok"
        assert result.startswith("The current time zone is Asia/Tokyo")
    (found,) = [each for each in caplog.records if each.message == "MCP server connected"]
    assert vars(found)["revision"] == "2026-07-28"


def error(code: int, message: str, status: int, identifier: str | None = None) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}, status)


def unavailable(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "is unavailable" in each.getMessage()]


REFUSALS = {
    "no body": Response(status_code=404),
    "html": Response("<html>gone</html>", 404, media_type="text/html"),
    "TypeScript SDK": error(-32001, "Session not found", 404),
    "Python SDK": error(-32600, "Session not found", 404),
    "server-everything": error(-32000, "Bad Request: No valid session ID provided", 400),
    "misleading text": error(-32000, "Connection closed", 400),
    "400 no body": Response(status_code=400),
    "another id": error(-32600, "no", 404, "server-error"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
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
    async with opened(tuning=QUICK) as client:
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
        *((status, -32602, "no such city") for status in (400, 404)),
        (404, -32602, "the booking session not found"),
        (400, -32000, "your session is full"),
        (200, -32001, "Request timed out"),
        (200, -32000, "Connection closed"),
        (200, -32600, "Session terminated"),
        (200, -32603, "the server did not answer in time"),
    ],
)
async def test_an_error_of_the_server_is_told_whatever_its_status_code_and_text_resemble_and_its_call_runs_once(
    status: int, code: int, message: str, player: McpPlayer, opened: Opened
) -> None:
    async with opened() as client:
        player.rejection = (status, {"code": code, "message": message})
        ended, told = await ran(client, "look")
        player.rejection = None
        assert (ended, json.loads(told)["error"]["message"]) == ("failed", message)
        assert await state(client) == "registered"
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


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize("headers", [{}, {"X-User": "ann"}], ids=["common session", "own session"])
async def test_a_call_finds_out_that_the_server_is_away(
    headers: dict[str, str], status: int, player: McpPlayer, opened: Opened
) -> None:
    async with opened({"forward_headers": ["X-User"]}) as client:
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


@asynccontextmanager
async def refusing_proxy(asked: list[str]) -> AsyncGenerator[int, None]:
    """A proxy that lets nobody through; gives its port."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_server_is_reached_by_the_proxy_of_the_environment_with_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    async with refusing_proxy(asked) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://someone:canary@127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "near.invalid")
        file = written(tmp_path, far={"url": "https://far.invalid/mcp"}, near={"url": "https://near.invalid/mcp"})
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            assert await state(client, "far") == "it cannot be reached (ProxyError)"
            assert await state(client, "near") == "it cannot be reached (ConnectError)"
    head = asked[0].lower()
    assert head.startswith("connect far.invalid:443 http/1.1\r\n")
    assert "\r\nproxy-authorization: basic c29tzw9uztpjyw5hcnk=\r\n" in head
    by_proxy, directly = sorted((vars(each)["cause"] for each in caplog.records if "cause" in vars(each)), reverse=True)
    assert by_proxy == f"refused by the proxy (403): far.invalid:443 through 127.0.0.1:{port}"
    assert directly.startswith("name not found (")
    assert directly.endswith("): near.invalid:443 directly (NO_PROXY)")


async def test_a_server_that_cannot_be_used_is_reported_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with silent_port() as port:
        file = written(
            tmp_path,
            homeless=hostile(cwd=str(tmp_path / "nowhere")),
            nameless={"command": str(tmp_path / "no-such-program")},
            chatty={"command": "echo", "args": ["Listening\x1b[2J on port 5"]},
            closed={"url": f"http://127.0.0.1:{port}/mcp"},
        )
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            assert await state(client, "homeless") == "its cwd is not a usable folder (NotADirectoryError)"
            assert await state(client, "nameless") == "its command cannot be started (FileNotFoundError)"
            assert await state(client, "closed") == "it cannot be reached (ConnectError)"
            told = "its standard output is not MCP; the first line is: Listening[2J on port 5"
            await reaches(client, told, "chatty")  # its end may be noticed before its output
            ready = (await client.get("/health/ready")).json()
    assert (ready["status"], ready["tools"]["mcp-closed"]) == ("ok", False)
    causes = [vars(each)["cause"] for each in caplog.records if "cause" in vars(each)]
    assert causes == [f"connection refused: 127.0.0.1:{port}"]  # clients see no address, operators do


async def test_a_pattern_without_a_match_is_logged_with_the_available_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = written(tmp_path, far=hostile(include=["echo", "get-*"]))
    async with service(MCP_SERVERS_FILE=file) as client:
        await reaches(client, "registered")
    told = [each.getMessage() for each in caplog.records if each.getMessage().startswith("include: ")]
    beginning = "include: get-* matches no tool of the MCP server far, which has: "
    assert [(each.startswith(beginning), ", ask, backtracking, " in each) for each in told] == [(True, True)]


async def test_a_server_that_stays_away_is_tried_less_and_less_often(
    player: McpPlayer, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(min(seconds, 0.001))

    sleep = asyncio.sleep
    monkeypatch.setattr(server, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": pause}))
    monkeypatch.setattr("random.uniform", lambda *_: 1)
    player.status = 503
    async with opened():
        await until(lambda: len(pauses) > 9)
    assert pauses[:10] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]
