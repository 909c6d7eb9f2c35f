"""Tools that block: bounded threads, and an end that does not wait for them."""

import asyncio
import signal
import threading
from pathlib import Path

from tests.command_line import started, with_tools
from tests.serving import client_of
from tests.waiting import PATIENCE
from toolchat.tool_calling.threads import run_blocking

THREADS = 16
BLOCKER = '''"""A tool that blocks."""

import time

from toolchat import ToolModule


def sleepLong() -> str:
    """Sleep for a long time."""
    time.sleep(600)
    return "awake"


module = ToolModule(functions=(sleepLong,), default_query="Sleep for a long time")
'''


async def test_abandoned_calls_keep_their_threads_so_that_these_stay_bounded() -> None:
    release, all_run = threading.Event(), threading.Barrier(THREADS + 1)
    running: set[str] = set()

    def block() -> None:
        running.add(threading.current_thread().name)
        all_run.wait(PATIENCE)
        release.wait(PATIENCE)

    given_up = [asyncio.create_task(run_blocking(block)) for _ in range(THREADS + 4)]
    await asyncio.to_thread(all_run.wait, PATIENCE)
    for task in given_up:
        task.cancel()
    waiting = asyncio.create_task(run_blocking(release.is_set))
    for _ in range(100):
        # So many turns of another thread are time enough for a call that does not wait for a place.
        await asyncio.to_thread(int)
    release.set()
    assert await waiting
    assert len(running) == THREADS


async def test_a_blocked_tool_neither_holds_up_the_answer_nor_the_end(tmp_path: Path) -> None:
    sleeper = with_tools(tmp_path, {"sleeper": BLOCKER})
    with started(cwd=tmp_path, TOOL_TIMEOUT="0.2", **sleeper) as (process, url):
        async with client_of(url) as client:
            answer = await client.get("/sleeper/chat-tool-function", headers={"Accept": "application/json"})
        assert answer.json()["tool_calls"][0]["error_kind"] == "timeout"
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, PATIENCE)  # the tool blocks for ten times as long
    assert process.returncode == 0
