"""The official Go SDK of MCP, whose health checks send a ping that MCP 2026-07-28 does not have."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.clients.conftest import ROOT
from tests.programs import require

HEADERS = {
    "User-Agent": "Go-http-client/1.1",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "Mcp-Method": "ping",
    "Mcp-Protocol-Version": "2026-07-28",
}
NO_PING = "MCP 2026-07-28 has no ping"


@pytest.fixture
def url(base_url: str) -> str:
    return f"{base_url.removesuffix('/v1')}/mcp"


def test_its_recorded_ping_is_answered_with_the_reason(url: str) -> None:
    # Recorded from version 1.8.0, for machines without Go.
    answer = httpx.post(url, content=b'{"jsonrpc":"2.0","id":2,"method":"ping"}', headers=HEADERS)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (404, -32601, 2)
    assert NO_PING in answer.json()["error"]["message"]


def test_it_connects_reads_why_there_is_no_ping_and_goes_on(url: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "clients" / "go", tmp_path / "go")
    run = subprocess.run(
        [require("go"), "run", ".", url], cwd=tmp_path / "go", capture_output=True, text=True, timeout=600, check=False
    )
    assert run.returncode == 0, run.stderr + run.stdout
    version, ping, called = map(json.loads, run.stdout.splitlines())
    assert version == {"value": "2026-07-28"}
    assert NO_PING in ping["error"]
    assert called["value"]["time_zone"] == "Asia/Shanghai"
