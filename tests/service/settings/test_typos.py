"""Variables that were meant for the service, and that nothing reads."""

import json
import subprocess
from pathlib import Path

from scripts.env_example import variables
from tests.command_line import LOG, run, started
from toolchat.service.settings.env_file import known_variables


def warnings(done: subprocess.CompletedProcess[str]) -> list[str]:
    head = "toolchat: WARNING: "
    return [line.removeprefix(head) for line in done.stderr.splitlines() if line.startswith(head)]


def test_each_is_named_once_with_the_nearest_that_there_is(tmp_path: Path) -> None:
    # Of the environment only what is one slip away from a known name; of .env everything, but for Docker Compose's own.
    lines = ["OPENAI_MODLE=x", "weather_keys=x", "something=1", "COMPOSE_PROFILES=shared", "DASHSCOPE_MODEL=qwen-plus"]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    environment = {
        "OPENAI_APIKEY": "x",
        "SERVER_PROT": "1",
        "TODO_ENABLE": "1",
        "REDIS_PORT": "tcp://10.0.0.1:6379",
        "SERVER_NAME": "x",
        "LOG_LEVEL": "Debug",
    }
    done = run("tools", cwd=tmp_path, CHAT_PROVIDER="offline", **environment)
    assert done.returncode == 0
    assert warnings(done) == [
        "OPENAI_MODLE: no setting has this name; did you mean OPENAI_MODEL?",
        "weather_keys: no setting has this name; did you mean WEATHER_API_KEY?",
        "something: no setting has this name",
        *(
            f"{name}: no setting has this name; did you mean {meant}?"
            for name, meant in (
                ("OPENAI_APIKEY", "OPENAI_API_KEY"),
                ("SERVER_PROT", "SERVER_PORT"),
                ("TODO_ENABLE", "TODO_ENABLED"),
            )
        ),
    ]


def test_a_start_that_fails_for_a_missing_key_names_the_mistyped_one(tmp_path: Path) -> None:
    done = run("serve", cwd=tmp_path, CHAT_PROVIDER="openai_compatible", OPENAI_APIKEY="sk-canary")
    hint, fault = done.stderr.splitlines()
    assert done.returncode == 2
    assert fault.startswith("toolchat: OPENAI_API_KEY: must be set")
    assert hint == "toolchat: OPENAI_APIKEY: no setting has this name; did you mean OPENAI_API_KEY?"


def test_the_service_logs_it_at_its_start_and_takes_a_level_in_small_letters(tmp_path: Path) -> None:
    with started(cwd=tmp_path, SERVER_HOTS="x", LOG_LEVEL="warning"):
        pass
    logged = [json.loads(line) for line in LOG if line.startswith("{")]
    assert [(each["level"], each["message"]) for each in logged if each["level"] != "INFO"] == [
        ("WARNING", "SERVER_HOTS: no setting has this name; did you mean SERVER_HOST?")
    ]


def test_a_level_that_there_is_not_stops_the_start(tmp_path: Path) -> None:
    done = run("tools", cwd=tmp_path, LOG_LEVEL="loud")
    assert (done.returncode, done.stderr[:21]) == (2, "toolchat: LOG_LEVEL: ")


def test_every_variable_of_every_settings_class_is_known() -> None:
    assert set(variables()) <= known_variables()
