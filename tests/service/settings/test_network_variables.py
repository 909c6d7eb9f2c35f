"""Proxies and authorities that cannot be used, which stop every command, and those that nothing reads."""

from pathlib import Path

import pytest

from tests.application import create_app
from tests.command_line import run
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
