"""MCP over standard input and output, as desktop hosts start it."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from app.composition.configuration import read_configuration
from app.composition.lifespan import open_service
from app.protocols.mcp_server.stdio_server import StdioServer
from app.tools.discovery import ConfiguredModule, discover
from tests.command_line import ROOT, copy_of_the_app, environment
from tests.protocols.mcp_server.folders.workshop import Seen
from tests.protocols.mcp_server.host import FOLDERS, PREFIX, meta
from tests.waiting import PATIENCE, until

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
COMMAND = (sys.executable, "-m", "app", "mcp")


def call(identifier: object, name: str, modern: bool = True, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments} | ({"_meta": meta()} if modern else {})
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}


class Desktop:
    """A desktop host, and the process that it has started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout

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
    variables = {"CHAT_PROVIDER": "offline", "PYTHONPATH": str(cwd), **variables}
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
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
            process.kill()
            await process.wait()


async def test_one_process_serves_both_lanes_and_exits_with_its_input() -> None:
    async with desktop() as host:
        host.send(HELLO)
        assert (await host.read())["result"]["protocolVersion"] == "2025-11-25"
        host.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        host.send(call("a", "getCityTimeFunction", modern=False, timeZoneId="Asia/Shanghai"))
        legacy = await host.read()
        assert (legacy["id"], legacy["result"]["structuredContent"]["time_zone"]) == ("a", "Asia/Shanghai")
        host.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}})
        assert (await host.read())["result"]["supportedVersions"] == ["2026-07-28"]
        for line in (b"no json", b"[]", b"", b'{"jsonrpc":"2.0","id":1,"method":5}'):
            host.send(line)
        codes = [(await host.read())["error"]["code"] for _ in range(3)]
        assert codes == [-32700, -32600, -32600]
        host.send(call(2, "ask", question="What time is it in Rome?"))
        (last,) = await host.end()
    assert last["id"] == 2
    assert "Rome" in last["result"]["content"][0]["text"]


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
    copy_of_the_app(tmp_path, {"babble": BABBLE})
    async with desktop(tmp_path) as host:
        host.send(call(1, "babble"))
        assert [each["result"]["content"][0]["text"] for each in await host.end()] == ["done"]


async def test_a_configuration_error_goes_to_standard_error_only() -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        cwd=ROOT,
        env={**os.environ, "SERVER_PORT": "none"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, complained = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, told) == (2, b"")
    assert b"SERVER_PORT" in complained


class Wire:
    """What a line server is sent and what it writes, in this process."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()

    def send(self, message: object) -> None:
        self._lines.put_nowait(to_json(message))

    def end(self) -> None:
        self._lines.put_nowait(b"")

    async def lines(self) -> AsyncIterator[bytes]:
        while line := await self._lines.get():
            yield line

    def write(self, message: bytes) -> None:
        self.written.append(from_json(message))


@asynccontextmanager
async def wired() -> AsyncGenerator[Wire, None]:
    """A line server with the tools of the workshop."""
    configuration = read_configuration()
    more = [ConfiguredModule.read(module) for module in discover(FOLDERS)]
    wire = Wire()
    async with open_service(replace(configuration, modules=(*configuration.modules, *more))) as (state, _):
        serving = asyncio.create_task(StdioServer(state, wire.write).serve(wire.lines()))
        yield wire
        wire.end()
        await asyncio.wait_for(serving, PATIENCE)


async def test_a_cancelled_call_ends_without_a_response() -> None:
    async with wired() as wire:
        before = Seen.cancelled
        wire.send(call("slow", "wait"))
        await until(lambda: Seen.waiting)
        for identifier in ("other", None, [1], "slow"):
            wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identifier}})
        await until(lambda: Seen.cancelled == before + 1)
        wire.send({"jsonrpc": "2.0", "id": "next", "method": "ping"})
        await until(lambda: wire.written)
    assert wire.written == [{"jsonrpc": "2.0", "id": "next", "result": {}}]


async def test_requests_run_concurrently_and_report_progress() -> None:
    async with wired() as wire:
        wire.send(call(1, "wait"))
        await until(lambda: Seen.waiting)
        counting = call(2, "count", to=20)
        counting["params"]["_meta"]["progressToken"] = "t"
        wire.send(counting)
        await until(lambda: any(each.get("id") == 2 for each in wire.written))
        *progress, response = wire.written
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert progress[-1]["params"] == {"progressToken": "t", "progress": 20, "total": 20, "message": "at 20"}
    assert response["result"]["content"][0]["text"] == "counted to 20"


async def test_a_running_id_is_not_accepted_twice() -> None:
    async with wired() as wire:
        for _ in range(2):
            wire.send(call(1, "wait"))
        await until(lambda: Seen.waiting)
        await until(lambda: wire.written)
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert [each["error"]["code"] for each in wire.written] == [-32600]


async def test_consent_is_requested_over_standard_input_as_well() -> None:
    async with wired() as wire:
        asking = call(1, "switchLight", on=True)
        asking["params"]["_meta"][f"{PREFIX}clientCapabilities"] = {"elicitation": {}}
        wire.send(asking)
        await until(lambda: wire.written)
        state = wire.written[0]["result"]["requestState"]
        answered = {**asking, "id": 2}
        answered["params"] |= {"requestState": state, "inputResponses": {"consent": {"action": "accept"}}}
        wire.send(answered)
        await until(lambda: len(wire.written) == 2)
    assert wire.written[1]["result"]["content"][0]["text"] == "on"
