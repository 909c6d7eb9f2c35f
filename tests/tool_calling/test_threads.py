"""Tools that block: bounded threads, and an end that does not wait for them."""

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from pydantic_core import from_json

from tests.command_line import started, with_tools
from tests.service.observability.reading import figures_of
from tests.serving import client_of
from tests.tool_calling.calls import only
from tests.waiting import PATIENCE, until
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.threads import NotBegun, run_blocking, thread_use

THREADS = 16
BLOCKER = '''"""A tool that blocks."""

import time

from toolchat import ToolModule


def sleepLong() -> str:
    """Sleep for a long time."""
    time.sleep(600)
    return "awake"


def quick() -> str:
    """Answer at once."""
    return "here"


module = ToolModule(functions=(sleepLong, quick), default_query="Sleep for a long time")
'''


class Upstream:
    """Hangs until it is released; ``hang`` is a tool that asks it."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.released = threading.Event()

    def hang(self) -> None:
        """Wait for the upstream."""
        self.begun.append(threading.current_thread().name)
        self.released.wait(PATIENCE)

    def all_begun(self, number: int) -> Callable[[], bool]:
        return lambda: len(self.begun) == number


@pytest.fixture
def upstream() -> Generator[Upstream, None, None]:
    upstream = Upstream()
    yield upstream
    upstream.released.set()


async def test_abandoned_calls_keep_their_threads_so_that_these_stay_bounded(upstream: Upstream) -> None:
    given_up = [asyncio.create_task(run_blocking(f"tool {n % 3}", upstream.hang)) for n in range(THREADS + 5)]
    await until(upstream.all_begun(THREADS))
    for task in given_up:
        task.cancel()
    waiting = asyncio.create_task(run_blocking("another", upstream.released.is_set))
    for _ in range(100):
        # So many turns of another thread are time enough for a call that does not wait for a place.
        await asyncio.to_thread(int)
    assert thread_use()["another"] == (0, 1)
    upstream.released.set()
    assert await waiting
    assert len({*upstream.begun}) == len(upstream.begun) == THREADS


async def test_a_tool_whose_calls_hang_leaves_threads_to_the_others(upstream: Upstream) -> None:
    hanging = [asyncio.create_task(run_blocking("hang", upstream.hang)) for _ in range(THREADS)]
    await until(upstream.all_begun(THREADS // 2))
    assert thread_use()["hang"] == (THREADS // 2, THREADS // 2)
    assert await run_blocking("quick", lambda: "here") == "here"
    hanging.pop().cancel()
    upstream.released.set()
    await asyncio.gather(*hanging)
    assert len(upstream.begun) == THREADS - 1
    await until(lambda: thread_use()["hang"] == (0, 0))


async def test_a_call_that_no_thread_began_may_be_repeated_and_does_not_run_later(upstream: Upstream) -> None:
    taken = [asyncio.create_task(run_blocking("hang", upstream.hang)) for _ in range(THREADS // 2)]
    await until(upstream.all_begun(THREADS // 2))
    late = await only(("hang", ""), tools=[FunctionToolCallback.from_function(upstream.hang, timeout=0.05)])
    assert from_json(late.result)["error"] == {
        "kind": "busy",
        "message": "not begun: no thread was free for the tool within 0.05 s",
        "hint": "call it again later",
    }
    upstream.released.set()
    await asyncio.gather(*taken)
    await run_blocking("hang", str)
    assert len(upstream.begun) == THREADS // 2


async def test_a_call_that_waits_for_a_thread_of_the_full_pool_is_not_begun_either(upstream: Upstream) -> None:
    taken = [asyncio.create_task(run_blocking(f"tool {n % 2}", upstream.hang)) for n in range(THREADS)]
    await until(upstream.all_begun(THREADS))
    late = asyncio.create_task(run_blocking("quick", str))
    await until(lambda: thread_use().get("quick") == (0, 1))
    late.cancel()
    with pytest.raises(NotBegun):
        await late
    upstream.released.set()
    await asyncio.gather(*taken)
    assert thread_use()["quick"] == (0, 0)


async def test_a_hanging_tool_holds_up_neither_other_tools_nor_the_end(tmp_path: Path) -> None:
    sleeper = with_tools(tmp_path, {"sleeper": BLOCKER})
    with started(cwd=tmp_path, TOOL_TIMEOUT="2", **sleeper) as (process, url):
        async with client_of(url) as client:
            calls = [client.post("/tools/sleepLong", json={}) for _ in range(THREADS)]
            *hanging, quick = await asyncio.gather(*calls, client.post("/tools/quick", json={}))
            figures = await figures_of(client)
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, PATIENCE)  # the tool blocks for ten times as long
    assert process.returncode == 0
    assert quick.json()["result"] == "here"
    assert Counter(each.json()["error_kind"] for each in hanging) == {"timeout": THREADS // 2, "busy": THREADS // 2}
    labels = (("tool", "sleepLong"),)
    threads, waiting = [figures[f"toolchat_tool_{name}", labels] for name in ("threads", "calls_waiting")]
    assert (threads, waiting) == (THREADS // 2, 0)
