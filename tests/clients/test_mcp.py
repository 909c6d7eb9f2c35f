"""The official SDK of MCP, over HTTP and as the host of a process, in every version that it supports."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult

from tests.command_line import ROOT, with_tools

PATIENCE = 60.0
PYTHON = os.environ.get("TOOLCHAT_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
"""The interpreter that has the service's packages; this one has the clients'."""
MODES = ["2026-07-28", "auto", "legacy"]
VARIABLES = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CHAT_PROVIDER": "offline", "PYTHONUTF8": "1"}

LIGHT = '''"""A switch."""

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(requires_approval=True)
async def switchLight(on: bool) -> str:
    """Switch the light."""
    return "on" if on else "off"


module = ToolModule(functions=(switchLight,))
'''


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tool that requires approval."""
    folder = tmp_path_factory.mktemp("project")
    with_tools(folder, {"light": LIGHT})
    return folder


@pytest.fixture(scope="module")
def url(project: Path) -> Iterator[str]:
    variables = {**VARIABLES, "SERVER_PORT": "0"}
    command = [PYTHON, "-m", "app"]
    with subprocess.Popen(command, cwd=project, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield next(f"{found[1]}/mcp" for line in process.stderr if (found := re.search(r"toolchat on (\S+)", line)))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


@pytest.fixture(params=["http", "stdio"])
def server(request: pytest.FixtureRequest, project: Path) -> Any:
    """The target that the SDK connects to."""
    if request.param == "http":
        return request.getfixturevalue("url")
    return StdioServerParameters(command=PYTHON, args=["-m", "app", "mcp"], env=VARIABLES, cwd=project)


def text_of(result: CallToolResult) -> str:
    """What a result's first block says."""
    first: Any = result.content[0]
    return str(first.text)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_lists_and_calls_the_tools(mode: str, server: Any) -> None:
    async with Client(server, mode=mode, read_timeout_seconds=PATIENCE) as client:
        expected = "2025-11-25" if mode == "legacy" else "2026-07-28"
        assert client.protocol_version == expected
        listed = (await client.list_tools()).tools
        tools = {tool.name: tool for tool in listed}
        called: Any = await client.call_tool("getCityTimeFunction", {"timeZoneId": "Asia/Shanghai"})
        failed = await client.call_tool("getCityTimeFunction", {"timeZoneId": "Atlantis"})
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nothing", {})
    annotations = tools["getCityTimeFunction"].annotations
    assert annotations is not None
    assert annotations.read_only_hint is True
    assert listed[-1].name == "ask"
    assert called.structured_content["time_zone"] == "Asia/Shanghai"
    assert called.is_error is False
    assert failed.is_error is True


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_asks_a_question_and_receives_progress(mode: str, server: Any) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with Client(server, mode=mode, read_timeout_seconds=PATIENCE) as client:
        answer: Any = await client.call_tool("ask", {"question": "北京现在几点？"}, progress_callback=hear)
    assert "北京现在是" in text_of(answer)
    assert answer.structured_content["tool_calls"][0]["name"] == "getCityTimeFunction"
    assert heard == ["getCityTimeFunction runs", "getCityTimeFunction has ended"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_the_sdk_asks_its_user_before_a_guarded_call(action: Any, mode: str, server: Any) -> None:
    asked: list[str] = []

    async def decide(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async with Client(server, mode=mode, elicitation_callback=decide, read_timeout_seconds=PATIENCE) as client:
        result: Any = await client.call_tool("switchLight", {"on": True})
    assert asked == ['Run switchLight with {"on":true}?']
    assert (text_of(result), result.is_error) == ("on", False) if action == "accept" else result.is_error


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_asks_its_user_about_calls_of_the_services_model(mode: str, server: Any) -> None:
    asked: list[str] = []

    async def decide(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    question = {"question": "Switch the light on", "tools": ["switchLight"]}
    async with Client(server, mode=mode, elicitation_callback=decide, read_timeout_seconds=PATIENCE) as client:
        result: Any = await client.call_tool("ask", question)
    assert asked == ['Run switchLight with {"on":true}?']
    assert result.structured_content["tool_calls"][0]["result"] == "on"


@pytest.mark.anyio
async def test_without_a_callback_the_model_learns_only_that_a_person_must_decide(server: Any) -> None:
    async with Client(server, mode="legacy", read_timeout_seconds=PATIENCE) as client:
        result: Any = await client.call_tool("switchLight", {"on": True})
    assert result.is_error is True
    assert "a person must decide about switchLight" in text_of(result)
