"""Tools that block: bounded threads, and an end that does not wait for them."""

import asyncio
import shutil
import signal
import threading
import time
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from app.tool_calling.threads import limit_threads, run_blocking
from tests.command_line import ROOT, started

BLOCKER = '''"""A tool that blocks."""

import time

from app.tools.module import ToolModule


def sleepLong() -> str:
    """Sleep for a long time."""
    time.sleep(60)
    return "awake"


module = ToolModule(functions=(sleepLong,), default_query="Sleep for a long time")
'''


@pytest.fixture
def _two_threads() -> Generator[None, None, None]:
    limit_threads(2)
    yield
    limit_threads(16)


@pytest.mark.usefixtures("_two_threads")
async def test_calls_that_were_given_up_keep_their_place_so_that_threads_stay_bounded() -> None:
    release, both_run = threading.Event(), threading.Barrier(3)
    running: set[str] = set()

    def block() -> None:
        running.add(threading.current_thread().name)
        both_run.wait(10)
        release.wait(10)

    given_up = [asyncio.create_task(run_blocking(block)) for _ in range(6)]
    await asyncio.to_thread(both_run.wait, 10)
    for task in given_up:
        task.cancel()
    waiting = asyncio.create_task(run_blocking(lambda: "at last"))
    assert (await asyncio.wait([waiting], timeout=0.1))[0] == set()
    release.set()
    assert await waiting == "at last"
    assert len(running) == 2


async def test_a_blocked_tool_neither_holds_up_the_answer_nor_the_end(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "app", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "app" / "tools" / "sleeper").mkdir()
    (tmp_path / "app" / "tools" / "sleeper" / "__init__.py").write_text(BLOCKER)
    with started(cwd=tmp_path, PYTHONPATH=str(tmp_path), TOOL_TIMEOUT="0.2") as (process, url):
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{url}/sleeper/chat-tool-function", headers={"Accept": "application/json"})
        assert answer.json()["tool_calls"][0]["error_kind"] == "timeout"
        before = time.monotonic()
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 30)
    assert process.returncode == 0
    assert time.monotonic() - before < 20
