"""MCP servers that cannot be used as configured: the reason helps to fix the file."""

from functools import partial
from pathlib import Path

import httpx
import pytest

from app.settings.tuning import Tuning
from tests.mcp_client.playing import described, hostile, written
from tests.serving import service
from tests.waiting import until


async def is_tried(client: httpx.AsyncClient, server: str, word: str) -> bool:
    return word in (await described(client, server)).get("reason", "")


async def test_a_server_that_cannot_be_started_or_parsed_is_reported_with_the_reason(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        homeless=hostile(cwd=str(tmp_path / "nowhere")),
        nameless={"command": str(tmp_path / "no-such-program")},
        chatty={"command": "echo", "args": ["Listening\x1b[2J on port 5"]},
    )
    async with service(Tuning(tool_server_wait=0), MCP_SERVERS_FILE=file) as client:
        await until(partial(is_tried, client, "homeless", "its cwd is not a usable folder"))
        await until(partial(is_tried, client, "nameless", "its command cannot be started"))
        told = "its standard output is not MCP; the first line is: Listening[2J on port 5"
        await until(partial(is_tried, client, "chatty", told))


async def test_a_pattern_without_a_match_is_logged_with_the_available_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = written(tmp_path, far=hostile(include=["echo", "get-*"]))
    async with service(MCP_SERVERS_FILE=file) as client:
        await until(partial(_is_registered, client))
    told = [each.getMessage() for each in caplog.records if each.getMessage().startswith("include: ")]
    assert [each[:83] for each in told] == [
        "include: get-* matches no tool of the MCP server far, which has: echo, backtracking"
    ]


async def _is_registered(client: httpx.AsyncClient) -> bool:
    return bool((await described(client, "far"))["registered"])
