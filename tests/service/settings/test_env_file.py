"""The file ``.env``: how it is written, and where its variables arrive."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import environment, run
from tests.waiting import PATIENCE
from toolchat.service.settings.env_file import load_env_file

LINE = "OPENAI_MODEL=größe\n"
WARNING = "toolchat: WARNING: "
QUOTES = "the quotes around it belong to the value, as docker run --env-file keeps them; leave them out"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (LINE.encode("utf-16"), ".env: is UTF-16; save the file as UTF-8"),
        (LINE.encode("utf-16-le"), ".env: is UTF-16; save the file as UTF-8"),
        (b"A=1\n" + LINE.encode("latin-1"), ".env: line 2: OPENAI_MODEL: is not UTF-8; save the file as UTF-8"),
        (b"OPENAI_API_KEY='sk-canary # x\nTIME_ENABLED=true\n", ".env: line 1 cannot be read"),
    ],
    ids=["utf-16", "utf-16 without a mark", "latin-1", "quote"],
)
def test_a_file_that_cannot_be_read_stops_the_start_and_the_line_is_named(
    data: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_bytes(data)
    for command in ("tools", "serve"):
        done = run(command, cwd=tmp_path, CHAT_PROVIDER="offline")
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"toolchat: {told}")
        assert "canary" not in done.stderr
    done = run("new-tool", "air", cwd=tmp_path)
    assert "Traceback" not in done.stderr


def test_a_folder_in_place_of_the_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert run("tools", cwd=tmp_path).stderr == "toolchat: .env: is not a file\n"


@pytest.mark.parametrize(
    ("line", "variables", "told"),
    [
        (
            "X=1\nWEATHER_API_KEY='pa${NOBODYS}rd'",
            {},
            [".env: line 2: WEATHER_API_KEY: ${NOBODYS} is not set and counts as empty; a secret with ${ needs a file"],
        ),
        ("COMPOSE_HOST=h\nOPENAI_MODEL=${COMPOSE_HOST}", {}, []),
        ("\ufeffOPENAI_MODEL=m", {}, []),
        ('OPENAI_MODEL="m"', {}, []),
        ("", {"OPENAI_API_KEY": '"sk-1"'}, [f"OPENAI_API_KEY: {QUOTES}"]),
        ("", {"SYSTEM_PROMPT": 'say "hi"'}, []),
        ("TZ=Nowhere/Land", {}, ["TZ: there is no time zone Nowhere/Land, so UTC is used"]),
        ("", {"TZ": "Europe/Pariss"}, ["TZ: there is no time zone Europe/Pariss, so UTC is used"]),
        ("TZ=CET-1CEST", {}, []),
        ("NO_PROXY=corp.example\nhttps_proxy=http://127.0.0.1:1", {}, []),
        ("WEATHER_API_KEY_FILE=key", {}, []),
    ],
)
def test_a_doubtful_line_or_value_is_warned_of_and_no_other(
    line: str, variables: dict[str, str], told: list[str], tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(line, encoding="utf-8")
    (tmp_path / "key").write_text("k")
    done = run("tools", cwd=tmp_path, CHAT_PROVIDER="offline", **variables)
    warnings = [each.removeprefix(WARNING) for each in done.stderr.splitlines() if "X: no setting" not in each]
    assert (done.returncode, warnings) == (0, told)


def test_variables_of_other_programs_arrive_in_the_environment_which_takes_precedence(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TZ=Asia/Tokyo\nMINE=file\nYOURS=file\nBLANK=file\n", encoding="utf-8")
    script = (
        "import os, time; from toolchat.service.settings.env_file import load_env_file; load_env_file(); "
        "print(time.strftime('%Z'), *(os.environ[each] for each in ('MINE', 'YOURS', 'BLANK')))"
    )
    variables = environment({"YOURS": "environment", "BLANK": " "})
    variables.pop("TZ", None)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stderr, done.stdout) == ("", "JST file environment file\n")


def test_an_authority_in_the_file_is_the_one_that_is_trusted(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SSL_CERT_FILE=missing.pem\n", encoding="utf-8")
    done = run("check", cwd=tmp_path, CHAT_PROVIDER="offline", SSL_CERT_FILE="", SSL_CERT_DIR="")
    assert done.returncode == 2
    assert done.stderr == "toolchat: SSL_CERT_FILE: missing.pem: No such file or directory\n"


def test_a_folder_without_the_file_sets_nothing(tmp_path: Path) -> None:
    before = dict(os.environ)
    assert load_env_file(tmp_path / ".env").names == ()
    assert dict(os.environ) == before


@pytest.mark.parametrize("value", ["tcp://10.0.0.1:8080", "udp://10.0.0.1:53"])
def test_a_variable_that_kubernetes_sets_for_a_service_is_explained(value: str, tmp_path: Path) -> None:
    done = run("tools", cwd=tmp_path, SERVER_PORT=value)
    told = "Kubernetes sets it for the Service server; rename that, or set enableServiceLinks: false"
    assert (done.returncode, done.stderr) == (2, f"toolchat: SERVER_PORT: {told}\n")
