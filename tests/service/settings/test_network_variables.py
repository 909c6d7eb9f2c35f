"""Variables of proxies and authorities: which stop every command, and how ``check`` and the log show the way."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.application import create_app
from tests.command_line import LOG, run, started
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.service.cli.test_check import CALLS, lines_of
from tests.service.mcp_client.player import McpPlayer
from tests.service.mcp_client.playing import reaches, written
from tests.serving import service, serving
from toolchat.errors import ConfigurationError

PROXY = "HTTPS_PROXY: must be the http or https URL of a proxy"
NEITHER = {"SSL_CERT_FILE": "", "SSL_CERT_DIR": ""}
"""Replaces what the machine that runs the tests may set."""
COMMANDS: dict[tuple[str, ...], dict[str, str]] = {
    ("serve",): {},
    ("serve", "--workers", "2"): {"STATE_URL": "sqlite:///state.db"},
    ("check",): {},
    ("ask", "?"): {},
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_proxy_or_a_file_that_cannot_be_used_stops_every_command_with_one_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").touch()
    for name, value, fault in (
        ("HTTPS_PROXY", "socks5://someone:canary@proxy:1080", PROXY),
        ("SSL_CERT_FILE", "missing.pem", "SSL_CERT_FILE: missing.pem: No such file or directory"),
        ("REQUESTS_CA_BUNDLE", "empty.pem", "REQUESTS_CA_BUNDLE: empty.pem: holds no certificate that can be read"),
    ):
        variables = {"CHAT_PROVIDER": "offline", **COMMANDS[command], **NEITHER, name: value}
        done = run(*command, cwd=tmp_path, **variables)
        (line,) = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (2, "")
        assert line.startswith(f"toolchat: {fault}")


def test_it_is_told_together_with_the_other_faults_also_where_another_server_creates_the_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://")
    monkeypatch.setenv("CHAT_PROVIDER", "dashscope")
    with pytest.raises(ConfigurationError) as told:
        create_app()
    missing, proxy = str(told.value).splitlines()
    assert (missing[:18], proxy) == ("DASHSCOPE_API_KEY:", PROXY)


def test_a_variable_of_the_network_may_be_in_the_file_and_that_of_the_environment_takes_precedence(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("HTTPS_PROXY=nonsense://\n", encoding="utf-8")
    done = run("tools", cwd=tmp_path, CHAT_PROVIDER="offline")
    assert (done.returncode, done.stderr) == (2, f"toolchat: {PROXY}\n")
    done = run("tools", cwd=tmp_path, CHAT_PROVIDER="offline", HTTPS_PROXY="http://proxy.invalid:3128")
    assert (done.returncode, done.stderr) == (0, "")


PROXIED = {"HTTP_PROXY": "http://someone:canary@proxy.invalid:3128", "NO_PROXY": "near.invalid"}


@pytest.mark.parametrize(
    ("variables", "route"),
    [(PROXIED, "; reached directly (this machine)"), ({"HTTPS_PROXY": "http://p.invalid:1"}, "")],
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
    variables |= {**PROXIED, "SERVER_WORKERS": "2", "STATE_URL": "sqlite:///state.db"}
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
    monkeypatch.setenv("HTTP_PROXY", PROXIED["HTTP_PROXY"])
    async with serving(McpPlayer().app) as url:
        file = written(tmp_path, far={"url": f"{url}/mcp"})
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            await reaches(client, "registered")
    (connected,) = [vars(each) for each in caplog.records if each.getMessage() == "MCP server connected"]
    assert connected["reached"] == "directly (this machine)"
