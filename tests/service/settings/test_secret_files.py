"""Secrets from files, as Docker, Kubernetes and systemd hand them over."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from app.tools.weather.client import WeatherSettings
from tests.command_line import LOG, run, started
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import client_of
from tests.waiting import until
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel
from toolchat.service.access.runtime import AccessSettings
from toolchat.service.composition.models import _settings, dashscope, openai_compatible
from toolchat.service.settings.base import environment_class, read_settings, reload_secrets
from toolchat.service.settings.env_file import known_variables
from toolchat.service.settings.providers import DashScopeSettings, OpenAISettings
from toolchat.service.settings.service_settings import Settings


def test_every_secret_may_be_in_a_file() -> None:
    assert {"DASHSCOPE_API_KEY_FILE", "REDIS_URL_FILE", "WEATHER_API_KEY_FILE"} <= known_variables()


def is_logged(text: str) -> bool:
    return any(text in line for line in LOG)


async def test_the_key_in_a_file_is_sent_without_its_line_break_and_read_again_after_a_hangup(tmp_path: Path) -> None:
    key, url, empty = (tmp_path / name for name in ("key", "url", "empty"))
    key.write_text(" sk-old\n")
    url.write_text("sqlite:///state.db")
    empty.write_text("first")
    files = {
        "STATE_URL": "",
        "OPENAI_API_KEY_FILE": str(key),
        "STATE_URL_FILE": str(url),
        "PEOPLE_JWT_SECRET_FILE": str(empty),
    }
    async with OpenAIPlayer(sensible_model()) as player:
        with started(cwd=tmp_path, OPENAI_BASE_URL=player.base_url, **files) as (process, address):
            async with client_of(address) as client:
                await client.get("/time/chat")
                key.write_text("sk-new\n")
                url.write_text("sqlite:///other.db")
                empty.write_text("")
                process.send_signal(signal.SIGHUP)
                for expected in (
                    "OPENAI_API_KEY_FILE was read again",
                    "STATE_URL_FILE has changed: restart the service to use the new value",
                    f"secrets stay as they are: PEOPLE_JWT_SECRET_FILE: {empty}: is empty",
                ):
                    await until(partial(is_logged, expected))
                await client.get("/time/chat")
    sent = [each.headers["authorization"] for each in player.requests]
    assert (sent[0], sent[-1]) == ("Bearer sk-old", "Bearer sk-new")


def _openai(settings: Any) -> ChatModel:
    return openai_compatible(settings).create(OutboundHttp())


def _dashscope(settings: Any) -> ChatModel:
    return dashscope(settings).create(OutboundHttp())


@pytest.mark.parametrize(
    ("declared", "variable", "value_of"),
    [
        (OpenAISettings, "OPENAI_API_KEY", lambda settings: partial(getattr, _openai(settings), "secrets")),
        (DashScopeSettings, "DASHSCOPE_API_KEY", lambda settings: partial(getattr, _dashscope(settings), "secrets")),
        (Settings, "APPROVALS_WEBHOOK_SECRET", lambda settings: partial(getattr, settings, "webhook_key")),
        (AccessSettings, "PEOPLE_JWT_SECRET", lambda settings: settings.people_jwt_secret.get_secret_value),
        (environment_class(WeatherSettings, "WEATHER_"), "WEATHER_API_KEY", lambda it: it.api_key.get_secret_value),
    ],
    ids=["OpenAI", "DashScope", "webhook", "people", "a tool"],
)
def test_a_secret_that_is_read_at_each_use_follows_its_file(
    declared: Any, variable: str, value_of: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("b" * 64)
    monkeypatch.setenv(f"{variable}_FILE", str(file))
    value = value_of(read_settings(declared))
    before = value()
    file.write_text("c" * 64)
    assert value() == before
    reload_secrets()
    assert value() != before


@pytest.mark.parametrize("replace", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
def test_a_reload_reads_no_file_that_may_block(
    replace: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    file.write_text("before")
    monkeypatch.setenv("WEATHER_API_KEY_FILE", str(file))
    declared: Any = environment_class(WeatherSettings, "WEATHER_")
    key = read_settings(declared).api_key
    file.unlink()
    replace(file)
    reload_secrets()
    assert key.get_secret_value() == "before"
    assert f"secrets stay as they are: WEATHER_API_KEY_FILE: {file}: is not a regular file" in caplog.messages


def test_a_pipe_can_be_read_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "secret")
    monkeypatch.setenv("WEATHER_API_KEY_FILE", str(tmp_path / "secret"))
    writer = Thread(target=(tmp_path / "secret").write_text, args=("piped\n",), daemon=True)
    writer.start()
    declared: Any = environment_class(WeatherSettings, "WEATHER_")
    key = read_settings(declared).api_key
    writer.join()
    assert key.get_secret_value() == "piped"


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
