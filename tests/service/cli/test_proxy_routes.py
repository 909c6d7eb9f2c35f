"""The log and `check` show how the model and MCP servers are reached if a proxy is set."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.command_line import LOG, run, started
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.service.cli.test_check import CALLS, lines_of
from tests.service.mcp_client.player import McpPlayer
from tests.service.mcp_client.playing import reaches, written
from tests.serving import service, serving

PROXY = {"HTTP_PROXY": "http://someone:canary@proxy.invalid:3128", "NO_PROXY": "near.invalid"}


@pytest.mark.parametrize(
    ("variables", "route"), [(PROXY, "; reached directly (this machine)"), ({"HTTPS_PROXY": "http://p.invalid:1"}, "")]
)
async def test_check_tells_the_way_to_what_works(variables: dict[str, str], route: str, tmp_path: Path) -> None:
    async with OpenAIPlayer(sensible_model()) as model, serving(McpPlayer().app) as url:
        file = written(tmp_path, far={"url": f"{url}/mcp"})
        variables = {**variables, "OPENAI_BASE_URL": model.base_url, "MCP_SERVERS_FILE": file}
        done = await asyncio.to_thread(run, "check", cwd=tmp_path, **variables)
    told = lines_of(done)
    assert told["Chat model"] == ("works", True, f"openai_compatible/gpt-4o-mini {CALLS}{route}")
    assert told["MCP far"][2].partition(" tools")[2] == route


def test_the_service_logs_the_way_to_each_model_once_and_no_password(tmp_path: Path) -> None:
    fallback = {"provider": "openai_compatible", "base_url": "http://near.invalid/v1", "model": "second"}
    variables = {"OPENAI_BASE_URL": "http://far.invalid/v1", "CHAT_FALLBACKS": json.dumps([fallback])}
    variables |= {**PROXY, "SERVER_WORKERS": "2", "STATE_URL": "sqlite:///state.db"}
    with started(cwd=tmp_path, **variables):
        pass
    logged = [json.loads(line)["message"] for line in LOG if line.startswith("{")]
    assert [each for each in logged if " is reached " in each] == [
        "chat model 1 is reached through proxy.invalid:3128",
        "chat model 2 is reached directly (NO_PROXY)",
    ]
    assert "canary" not in "".join(LOG)


async def test_the_log_of_a_connection_to_an_mcp_server_has_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolchat")
    monkeypatch.setenv("HTTP_PROXY", PROXY["HTTP_PROXY"])
    async with serving(McpPlayer().app) as url:
        file = written(tmp_path, far={"url": f"{url}/mcp"})
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            await reaches(client, "registered")
    (connected,) = [vars(each) for each in caplog.records if each.getMessage() == "MCP server connected"]
    assert connected["reached"] == "directly (this machine)"
