"""``MCP_SERVERS_FILE``: valid contents, and the one line that reports a mistake."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.application import read_configuration
from tests.command_line import environment, run
from tests.service.mcp_client.playing import hostile, written
from toolchat.errors import ConfigurationError
from toolchat.service.composition.configuration import Configuration

pytestmark = pytest.mark.usefixtures("tmp_path")  # for the file

WEB = {"url": "https://example.com/mcp"}
SSE = 'SSE is not supported; use streamable HTTP: "type": "http", with the url of that transport'
PROCESS = {"command": "npx", "args": ["-y", "server"]}


def read(monkeypatch: pytest.MonkeyPatch, content: str) -> Configuration:
    Path("mcp.json").write_text(content, encoding="utf-8")
    monkeypatch.setenv("MCP_SERVERS_FILE", "mcp.json")
    return read_configuration()


def refusal(monkeypatch: pytest.MonkeyPatch, content: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(monkeypatch, content)
    return str(caught.value)


def test_each_server_is_a_tool_module_in_the_order_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = {"web": WEB, "process": PROCESS, "off": {"disabled": True, "url": "${NOT_SET}"}}
    modules = [each.module for each in read(monkeypatch, json.dumps({"mcpServers": servers})).modules]
    assert [(each.name, each.path) for each in modules if each.name.startswith("mcp-")] == [
        ("mcp-web", "/mcp/web"),
        ("mcp-process", "/mcp/process"),
    ]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({}, ": must have either url or command"),
        ({**WEB, **PROCESS}, ": must have either url or command"),
        ({**WEB, "args": ["x"]}, ": args does not go with url"),
        ({**PROCESS, "headers": {"A": "b"}}, ": headers does not go with command"),
        ({**PROCESS, "forward_headers": ["A"]}, ": forward_headers does not go with command"),
        ({**WEB, "type": "stdio"}, ": type does not fit: stdio goes with command, http with url"),
        ({**WEB, "type": "ftp"}, ".type: Input should be 'stdio', 'http', 'streamable-http' or 'streamableHttp'"),
        *[({**WEB, key: type_}, f".{key}: {SSE}") for key in ("type", "transport") for type_ in ("sse", "SSE")],
        ({"url": "ftp://example.com"}, ".url: must be a URL in ASCII that starts with http:// or https://"),
        ({"url": "https://me:SECRET@example.com"}, ".url: must have no user or password; put them into headers"),
        ({**WEB, "headers": {"A": "${NOT_SET}"}}, ".headers.A: the variable NOT_SET is not set"),
        ({**PROCESS, "args": ["a", "${NOT_SET}"]}, ".args[1]: the variable NOT_SET is not set"),
        (
            {**WEB, "headers": {"A": "${EMPTY}"}},
            ".headers.A: the variable EMPTY is empty; write ${EMPTY:-} if it may be",
        ),
        ({**WEB, "headers": {"A": "SECRET\n"}}, ".headers.A: must be printable ASCII without line breaks"),
        ({**WEB, "headers": {"Host": "SECRET"}}, ".headers.Host: is set by the service itself"),
        ({**WEB, "headers": {"Mcp-Session-Id": "1"}}, ".headers.Mcp-Session-Id: is set by the service itself"),
        ({**WEB, "headers": {"A": 5}}, ".headers.A: Input should be a valid string"),
        ({**WEB, "exlude": ["*"]}, ".exlude: unknown key; did you mean exclude?"),
        ({**WEB, "alwaysAllow": []}, ".alwaysAllow: unknown key"),
        ({**WEB, "approver": "a b"}, ".approver: String should match pattern '^([A-Za-z][A-Za-z0-9_.:/-]{0,63})?$'"),
        ({**WEB, "timeout": 0}, ".timeout: Input should be greater than 0"),
        ({**WEB, "prefix": "a b"}, ".prefix: String should match pattern '^[A-Za-z0-9_-]{0,32}$'"),
        (["SECRET"], ": Input should be a valid dictionary or instance of ServerEntry"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_file_and_key_but_no_value(
    entry: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", "")
    told = refusal(monkeypatch, json.dumps({"mcpServers": {"far": entry}}))
    assert told == f"MCP_SERVERS_FILE: mcp.json: mcpServers.far{line}"


@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "Proxy-Authorization", "X-Approval-Token"])
def test_keys_of_this_service_cannot_be_forwarded(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = refusal(monkeypatch, json.dumps({"mcpServers": {"far": {**WEB, "forward_headers": [header]}}}))
    assert f"forward_headers.{header}: carries keys of this service, which are never forwarded" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", 'must be an object with "mcpServers", an object of servers by name'),
        ('{"servers": {}}', 'must be an object with "mcpServers", an object of servers by name'),
        ('{"mcpServers": {}, "inputs": []}', "inputs: unknown key; did you mean mcpServers?"),
        (
            '{"mcpServers": {"a b": {"command": "x"}}}',
            "mcpServers.a b: a name must be 1–32 letters, digits, _ or -, starting with a letter or a digit",
        ),
        (
            '{"mcpServers": {"far": {"disabled": true}, "far": {"disabled": true}}}',
            "far: duplicate key in one object",
        ),
    ],
)
def test_an_invalid_file_is_rejected_with_the_reason(content: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(monkeypatch, content) == f"MCP_SERVERS_FILE: mcp.json: {told}"


def test_a_byte_order_mark_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    read_file = read(monkeypatch, "\ufeff" + json.dumps({"mcpServers": {"web": WEB}}))
    assert "mcp-web" in [each.module.name for each in read_file.modules]


def test_a_missing_file_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_SERVERS_FILE", "none.json")
    with pytest.raises(ConfigurationError, match=r"^MCP_SERVERS_FILE: none.json: cannot be read: No such file"):
        read_configuration()


def test_a_variable_of_the_file_may_come_from_dotenv_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "NOBODYS_VARIABLE"):
        monkeypatch.setenv(name, "")  # counts as not set, and is what remains
    Path(".env").write_text("GITHUB_TOKEN=abc\nNOBODYS_VARIABLE=x\n", encoding="utf-8")
    servers = {"far": {**WEB, "headers": {"A": "Bearer ${GITHUB_TOKEN}", "B": "${NONE:-else}", "C": "${NONE:-}"}}}
    warnings = read(monkeypatch, json.dumps({"mcpServers": servers})).warnings
    assert [each.split(":")[0] for each in warnings] == ["NOBODYS_VARIABLE"]


LOADED = """
import asyncio, sys
from toolchat.service.composition.configuration import read_configuration
from toolchat.service.composition.lifespan import open_service

async def main():
    async with open_service(read_configuration()):
        print(sorted({name.split(".")[0] for name in sys.modules} & {"mcp", "mcp_types", "httpx2", "jsonschema"}))

asyncio.run(main())
"""


def test_without_an_enabled_server_the_sdk_is_not_imported(tmp_path: Path) -> None:
    file = written(tmp_path, off=hostile(disabled=True))
    variables = {"CHAT_PROVIDER": "offline", "MCP_SERVERS_FILE": file}
    command = [sys.executable, "-c", LOADED]
    told = subprocess.run(command, cwd=tmp_path, env=environment(variables), capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_the_command_line_runs_the_tools_and_leaves_no_process(tmp_path: Path) -> None:
    file = written(tmp_path, far=hostile("stubborn", include=["echo", "destroys"]))
    done = run("tools", "run", "echo", "text=hello", cwd=tmp_path, MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline")
    assert json.loads(done.stdout) == {"name": "echo", "given": {"text": "hello"}}
    # It ignores the end of its input and SIGTERM.
    pid = int((tmp_path / "stubborn.pid").read_text())
    assert not Path(f"/proc/{pid}").exists()
