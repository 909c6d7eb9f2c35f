"""Published MCP servers as tools: two from PyPI, and npm's reference server over both transports."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.conftest import PACKAGES, PATIENCE, ROOT, Model, calls, node_program, says, started

JSON = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def everything() -> list[str]:
    """The command of npm's reference server, without the word for the way that it is asked."""
    return [node_program(), str(PACKAGES / "@modelcontextprotocol/server-everything/dist/index.js")]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "new.txt").write_text("new", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
    return number


@pytest.fixture(scope="module")
def client(
    everything: list[str],
    repository: Path,
    port: int,
    _played: tuple[Model, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[httpx.Client]:
    servers = {
        "clock": {"command": sys.executable, "args": ["-m", "mcp_server_time"], "include": ["get_*"]},
        "git": {"command": sys.executable, "args": ["-m", "mcp_server_git", "--repository", str(repository)]},
        "here": {"command": everything[0], "args": [everything[1], "stdio"]},
        "far": {"url": f"http://127.0.0.1:{port}/mcp", "prefix": "far"},
    }
    folder = tmp_path_factory.mktemp("service")
    (folder / "servers.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    more = {"MCP_SERVERS_FILE": "servers.json"}
    with started(ROOT, folder, _played[1], **more) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        # The one over HTTP starts only in its own test.
        _until(lambda: all(folder_of(client, each)["registered"] for each in servers if each != "far"))
        yield client


def run(client: httpx.Client, tool: str, **arguments: Any) -> str:
    answer = client.post(f"/tools/{tool}", json=arguments).json()
    assert answer.get("outcome") == "ok", answer
    return str(answer["result"])


def folder_of(client: httpx.Client, server: str) -> dict[str, Any]:
    folders: list[dict[str, Any]] = client.get("/tools").json()
    return next(each for each in folders if each["name"] == f"mcp-{server}")


def names(client: httpx.Client, server: str) -> list[str]:
    return [each["name"] for each in folder_of(client, server)["tools"]]


def test_a_model_is_offered_the_clock_of_pypi_and_answers_from_it(client: httpx.Client, model: Model) -> None:
    asked = {"name": "get_current_time", "arguments": '{"timezone": "Asia/Tokyo"}'}
    model.plays(calls(asked), says("It is late."))
    answer = client.get("/mcp/clock/chat-tool-function", params={"query": "How late is it?"}, headers=JSON).json()
    (call,) = answer["tool_calls"]
    assert json.loads(call["result"])["timezone"] == "Asia/Tokyo"
    assert [each["function"]["name"] for each in model.requests[0].body["tools"]] == ["get_current_time"]
    assert names(client, "clock") == ["get_current_time"]  # the other one is not included


def test_the_git_server_of_pypi_reads_and_marks_tools_that_write(client: httpx.Client, repository: Path) -> None:
    assert "new.txt" in run(client, "git_status", repo_path=str(repository))
    tools = {each["name"]: each for each in folder_of(client, "git")["tools"]}
    assert tools["git_status"]["read_only"]
    assert not tools["git_add"]["read_only"]


def test_the_reference_server_returns_text_structures_images_and_links(client: httpx.Client) -> None:
    assert run(client, "get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
    assert json.loads(run(client, "get-structured-content", location="Chicago")).keys() >= {"temperature"}
    assert re.search(r"\[image: image/png, \d+ bytes, not shown\]", run(client, "get-tiny-image"))
    assert "demo://resource/" in run(client, "get-resource-links", count=2)
    refused = client.post("/tools/get-sum", json={"a": "two"})
    assert refused.status_code == 422


def test_the_reference_server_inherits_no_variable_of_the_service(client: httpx.Client) -> None:
    variables = json.loads(run(client, "get-env"))
    assert "PATH" in variables
    assert not {"OPENAI_BASE_URL", "MCP_SERVERS_FILE", "SERVER_PORT"} & variables.keys()


def test_the_reference_server_reports_progress(client: httpx.Client) -> None:
    events = {"Accept": "text/event-stream"}
    stream = client.post("/tools/trigger-long-running-operation", json={"duration": 1, "steps": 2}, headers=events)
    told = re.findall(r"event: tool_call_progress\ndata: (.*)", stream.text)
    assert [(json.loads(each)["done"], json.loads(each)["of"]) for each in told][-1] == (2, 2)


def test_the_reference_server_over_http_is_connected_and_reconnected(
    client: httpx.Client, everything: list[str], port: int
) -> None:
    assert folder_of(client, "far")["reason"] == "it cannot be reached (ConnectError)"
    for _ in range(2):
        environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
        with subprocess.Popen([*everything, "streamableHttp"], env=environment) as process:
            try:
                _until_it_is_there(client)
                assert run(client, "far_get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
            finally:
                process.kill()
        lost = client.post("/tools/far_get-sum", json={"a": 2, "b": 3})
        assert "tool-server-away" in lost.text


def test_the_reference_server_over_http_may_be_restarted_between_two_calls(
    client: httpx.Client, everything: list[str], port: int
) -> None:
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    for _ in range(2):
        with subprocess.Popen([*everything, "streamableHttp"], env=environment) as process:
            try:
                _until(lambda: _listens(port))
                _until_it_is_there(client)  # at once the second time: nobody has called meanwhile
                assert run(client, "far_get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
                assert folder_of(client, "far")["registered"]
            finally:
                process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_of_the_newest_version_reports_changed_tools(way: str, port: int, tmp_path: Path) -> None:
    script = str(ROOT / "tests" / "clients" / "growing_mcp_server.py")
    command = [sys.executable, script, *([str(port)] if way == "http" else [])]
    far = {"command": command[0], "args": command[1:]} if way == "stdio" else {"url": f"http://127.0.0.1:{port}/mcp"}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"far": far}}), encoding="utf-8")
    more = {"MCP_SERVERS_FILE": "servers.json"}
    with (
        subprocess.Popen(command) if way == "http" else nullcontext() as process,
        started(ROOT, tmp_path, "http://127.0.0.1:9", **more) as url,
        httpx.Client(base_url=url, timeout=PATIENCE) as client,
    ):
        try:
            _until(lambda: "grow" in names(client, "far"))
            assert run(client, "grow") == "growing"
            _until(lambda: "grown" in names(client, "far"))  # else it is asked again after a minute
            assert run(client, "grown") == "grown up"
        finally:
            if process is not None:
                process.kill()


def _until_it_is_there(client: httpx.Client) -> None:
    _until(lambda: bool(folder_of(client, "far")["registered"]))


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE / 2
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
