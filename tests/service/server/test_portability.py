# ruff: noqa: ASYNC220 - nothing else runs in the loop meanwhile
"""Systems that lack what Python has on Linux only, as Windows does; played on Linux, by taking it away."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.command_line import ROOT, environment
from tests.ports import reserved
from tests.waiting import PATIENCE, until

# Python loads it at its start. What the library itself needs it has imported before.
# https://docs.python.org/3/library/os.html and its neighbours name what is "not Windows".
WITHOUT = """
import asyncio, os, select, signal, subprocess, sys, tempfile
for module in ("fcntl", "grp", "pwd", "resource", "syslog", "termios", "uvloop"):
    sys.modules[module] = None
for module, names in (
    (os, ("fork", "getpgid", "geteuid", "getuid", "killpg", "setsid", "sysconf")),
    (select, ("PIPE_BUF",)),
    (signal, ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1")),
):
    for name in names:
        delattr(module, name)
def add_signal_handler(*_):
    raise NotImplementedError
asyncio.SelectorEventLoop.add_signal_handler = add_signal_handler
"""


async def test_the_service_needs_nothing_that_windows_has_not(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    log = tmp_path / "log"
    with reserved() as holder, log.open("wb") as written:
        variables = environment({"SERVER_PORT": str(holder.getsockname()[1]), "STATE_URL": "sqlite:///state.db"})
        variables["PYTHONPATH"] = f"{tmp_path}:{ROOT}"
        process = subprocess.Popen([sys.executable, "-m", "app"], cwd=tmp_path, env=variables, stderr=written)
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{variables['SERVER_PORT']}") as client:

                async def is_answered() -> bool:
                    try:
                        answer = await client.get("/chat", params={"query": "What time is it in Tokyo?"})
                    except httpx.ConnectError:
                        assert process.poll() is None, log.read_text()
                        return False
                    return "Tokyo" in answer.text

                await until(is_answered)
                assert "toolchat_questions_total" in (await client.get("/metrics")).text
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait(PATIENCE)
    assert "request finished" in log.read_text()
