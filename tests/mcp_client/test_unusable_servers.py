"""MCP servers that cannot be used as configured: the reason helps to fix the file."""

from pathlib import Path

import pytest

from tests.mcp_client.playing import hostile, reaches, state, written
from tests.ports import silent_port
from tests.serving import service


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
    assert [each[:83] for each in told] == [
        "include: get-* matches no tool of the MCP server far, which has: echo, backtracking"
    ]
