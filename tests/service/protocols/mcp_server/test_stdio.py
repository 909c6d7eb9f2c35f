"""MCP over standard input and output, as desktop hosts start it; tests/clients/test_mcp.py has what the SDK does."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from tests.command_line import ROOT, application, environment, with_tools
from tests.service.protocols.mcp_server.host import meta
from tests.waiting import PATIENCE

WORKSHOP = str(Path(__file__).parent / "folders")


def call(identifier: object, name: str, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": meta()}
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}


class Desktop:
    """A desktop host, and the process that it has started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout

    def call(self, identifier: object, name: str, **arguments: Any) -> None:
        self.send(call(identifier, name, **arguments))

    def send(self, message: object) -> None:
        self._in.write((message if isinstance(message, bytes) else to_json(message)) + b"\n")

    async def read(self) -> dict[str, Any]:
        message: dict[str, Any] = from_json(await asyncio.wait_for(self._out.readline(), PATIENCE))
        return message

    async def end(self) -> list[dict[str, Any]]:
        """Close the input; what still comes, until the process has ended in order."""
        self._in.close()
        rest = await asyncio.wait_for(self._out.read(), PATIENCE)
        assert await asyncio.wait_for(self._process.wait(), PATIENCE) == 0
        return [from_json(line) for line in rest.splitlines()]


@asynccontextmanager
async def desktop(cwd: Path = ROOT, **variables: str) -> AsyncGenerator[Desktop, None]:
    variables = {"CHAT_PROVIDER": "offline", **variables}
    process = await asyncio.create_subprocess_exec(
        *application(),
        "mcp",
        cwd=str(cwd),
        env=environment(variables),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield Desktop(process)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def test_a_process_serves_a_host_without_a_handshake() -> None:
    async with desktop() as host:
        host.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}})
        assert (await host.read())["result"]["supportedVersions"] == ["2026-07-28"]
        for line in (b"no json", b"[]", b"", b'{"jsonrpc":"2.0","id":1,"method":5}'):
            host.send(line)  # is ignored, and the process goes on
        host.call(2, "ask", question="What time is it in Rome?")
        answer = await host.read()
    assert (answer["id"], "Rome" in answer["result"]["content"][0]["text"]) == (2, True)


BABBLE = '''"""Prints."""

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool
def babble() -> str:
    """Print something."""
    print("babble")
    return "done"


module = ToolModule(functions=(babble,))
'''


async def test_what_a_tool_prints_does_not_reach_the_host(tmp_path: Path) -> None:
    async with desktop(tmp_path, **with_tools(tmp_path, {"babble": BABBLE})) as host:
        host.call(1, "babble")
        assert (await host.read())["result"]["content"][0]["text"] == "done"
        assert await host.end() == []


async def test_a_configuration_error_goes_to_standard_error_only() -> None:
    process = await asyncio.create_subprocess_exec(
        *application(),
        "mcp",
        cwd=ROOT,
        env={**os.environ, "SERVER_PORT": "none"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, complained = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, told) == (2, b"")
    assert b"SERVER_PORT" in complained


async def test_requests_run_concurrently_and_report_progress_until_they_are_cancelled() -> None:
    async with desktop(TOOLS_PATH=WORKSHOP) as host:
        waiting = call("slow", "wait")
        waiting["params"]["_meta"]["progressToken"] = "t"
        host.send(waiting)
        progress = {"progressToken": "t", "progress": 1}
        assert await host.read() == {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        host.call(1, "waiting")
        assert (await host.read())["result"]["content"][0]["text"] == "1 waiting, 0 cancelled"
        for identifier in ("other", None, [1], "slow"):
            host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identifier}})
        host.call(2, "waiting")
        answer = await host.read()  # the cancelled call gets none
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (2, "0 waiting, 1 cancelled")


async def test_a_failure_of_the_service_has_its_problem_document() -> None:
    async with desktop(TOOLS_PATH=WORKSHOP, TOOL_THROW_EXCEPTION_ON_ERROR="true") as host:
        host.call(1, "fail")
        error = (await host.read())["error"]
    assert (error["code"], error["data"]["code"]) == (-32603, "tool-failed")
