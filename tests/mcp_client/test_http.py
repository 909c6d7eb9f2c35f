"""MCP servers over HTTP: the requests that they get, and reconnects."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from tests.access.principals import as_, principals
from tests.mcp_client.player import McpPlayer
from tests.mcp_client.playing import hostile, ran, reaches, run, state, tools_of, written
from tests.observability.reading import figures_of
from tests.serving import service, serving
from tests.waiting import until
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


async def test_the_startup_waits_for_a_silent_server_until_its_timeout(tmp_path: Path) -> None:
    file = written(tmp_path, far=hostile("silent"), near=hostile(include=["reads"]))
    async with service(Tuning(tool_server_wait=0.1), MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
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
