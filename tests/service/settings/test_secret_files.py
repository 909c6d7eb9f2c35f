"""Secrets from files, as Docker, Kubernetes and systemd hand them over."""

from pathlib import Path

import pytest

from tests.command_line import run
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import service
from toolchat.service.composition.models import _settings
from toolchat.service.settings.env_file import known_variables
from toolchat.service.settings.providers import OpenAISettings


@pytest.mark.parametrize("name", ["DASHSCOPE_API_KEY", "OPENAI_API_KEY", "STATE_URL", "REDIS_URL", "WEATHER_API_KEY"])
def test_every_secret_may_be_in_a_file(name: str) -> None:
    assert f"{name}_FILE" in known_variables()


async def test_the_key_in_a_file_is_sent_without_the_line_break_behind_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" sk-from-a-file\n")
    async with OpenAIPlayer(sensible_model()) as player:
        variables = {"OPENAI_BASE_URL": player.base_url, "OPENAI_API_KEY_FILE": str(tmp_path / "key")}
        async with service(**variables) as client:
            await client.get("/time/chat", params={"query": "hello"})
    assert player.requests[0].headers["authorization"] == "Bearer sk-from-a-file"


def test_the_files_of_a_url_and_of_a_tools_key_are_read(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("sqlite:///elsewhere.db\n")
    (tmp_path / "key").write_text("k\n")
    done = run("tools", cwd=tmp_path, STATE_URL="", STATE_URL_FILE="url", WEATHER_API_KEY_FILE="key")
    assert "Weather (/weather): registered" in done.stdout
    assert (tmp_path / "elsewhere.db").is_file()


@pytest.mark.parametrize(
    ("variables", "content", "told"),
    [
        ({"OPENAI_API_KEY": "k"}, b"sk", "OPENAI_API_KEY is set as well; set one of them"),
        ({}, None, "secret: No such file or directory"),
        ({}, b" \n", "secret: is empty"),
        ({}, b"\xff", "secret: is not UTF-8"),
        ({}, b"sk-canary\nmore", "must be printable ASCII without line breaks"),
    ],
    ids=["both", "missing", "empty", "encoding", "two lines"],
)
def test_a_file_that_cannot_be_the_secret_stops_the_start(
    variables: dict[str, str], content: bytes | None, told: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    done = run("tools", cwd=tmp_path, OPENAI_API_KEY_FILE="secret", **variables)
    assert (done.returncode, done.stderr) == (2, f"toolchat: OPENAI_API_KEY_FILE: {told}\n")


def test_a_fallback_model_does_not_get_the_key_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("sk-first")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "key"))
    second = {"base_url": "http://127.0.0.1:1/v1", "model": "second"}
    assert OpenAISettings().api_key is not None
    assert _settings(OpenAISettings, second, {"base_url"}).api_key is None
