"""The application runs under servers that know nothing of it."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.command_line import ROOT, environment
from tests.waiting import PATIENCE


@pytest.mark.parametrize("application", [["--factory", "tests.application:create_app"], ["app.main:app"]], ids=" ".join)
def test_a_plain_uvicorn_serves_the_whole_service(application: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "uvicorn", *application, "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment({}), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            url = next(found[1] for line in server.stderr if (found := re.search(r"running on (http://\S+)", line)))
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
