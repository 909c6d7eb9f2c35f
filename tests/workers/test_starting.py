"""What keeps workers from starting."""

import json
from pathlib import Path

import psutil
import pytest

from tests.command_line import run, started, with_tools
from tests.ports import silent_port

FAULTY = """
from contextlib import asynccontextmanager

from toolchat import ToolModule


@asynccontextmanager
async def nobody(container):
    raise ConnectionError
    yield


module = ToolModule(offered=nobody)
"""


def test_what_keeps_a_worker_from_starting_is_told_once_and_with_the_same_code(tmp_path: Path) -> None:
    with silent_port() as redis:
        variables = {"REDIS_URL": f"redis://127.0.0.1:{redis}", **with_tools(tmp_path, {"faulty": FAULTY})}
        alone, several = (
            run("serve", *more, cwd=tmp_path, SERVER_PORT="0", LOG_LEVEL="ERROR", **variables)
            for more in ([], ["--workers", "3"])
        )
    assert several.returncode == alone.returncode != 0
    lines = [[json.loads(line) for line in each.stderr.splitlines()] for each in (alone, several)]
    # gunicorn adds that a worker failed to boot.
    told = [[line["message"] for line in each if line["logger"] != "gunicorn.error"] for each in lines]
    assert "tools cannot be opened" in told[0]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("typed", "commands"), [(["--workers", "3", "demo"], "serve"), (["--port", "3", "ask", "?"], "serve and demo")]
)
def test_an_option_of_the_server_is_refused_by_other_commands(typed: list[str], commands: str, tmp_path: Path) -> None:
    done = run(*typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"python -m app: error: {typed[0]} is an option of {commands} only\n")


def test_a_demonstration_is_one_process_whatever_is_set(tmp_path: Path) -> None:
    with started("demo", cwd=tmp_path, SERVER_WORKERS="3") as (process, _):
        assert psutil.Process(process.pid).children() == []
