"""The application runs under servers that know nothing of it."""

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.command_line import ROOT, environment
from tests.waiting import PATIENCE

CHAPTER = (
    (ROOT / "docs/running.md").read_text(encoding="utf-8").partition("## Other servers\n")[2].partition("\n## ")[0]
)
INSTALLED = re.findall(r"^(?:uvicorn|gunicorn) .*", CHAPTER, flags=re.M)
"""The commands whose servers the extra ``service`` installs."""


@pytest.mark.parametrize("typed", [*INSTALLED, "uvicorn app.main:app --port 8083"])
def test_another_server_serves_the_whole_service(typed: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", *shlex.split(re.sub(r"\b8083\b", "0", typed))]
    variables = environment({"TOOLS_PATH": "app.tools", "HOME": str(tmp_path)})
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            found = (re.search(r"(?:running|listening) on (http://\S+)", line) for line in server.stderr)
            url = next(each[1] for each in found if each)
            question = f"{url}/time/chat-tool-function?query=What time is it in Paris?"
            answer = httpx.get(question, timeout=PATIENCE, trust_env=False)
            stream = httpx.get(question, headers={"Accept": "text/event-stream"}, timeout=PATIENCE, trust_env=False)
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE)
    assert (answer.status_code, "Europe/Paris" in answer.text) == (200, True)
    assert "event: done" in stream.text


def test_the_entry_point_for_the_frameworks_own_command_is_the_application() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["fastapi"]["entrypoint"]
    module, _, name = configured.partition(":")
    assert isinstance(getattr(importlib.import_module(module), name), FastAPI)


def test_importing_the_factory_reads_no_settings(tmp_path: Path) -> None:
    # A configuration that is not valid would raise as soon as it is read.
    script = (
        "from toolchat import ConfigurationError\n"
        "from toolchat.service import create_app\n"
        "try:\n    create_app()\n"
        "except ConfigurationError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment({"SERVER_PORT": "none"}), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout[:13], done.stderr) == (0, "SERVER_PORT: ", "")
