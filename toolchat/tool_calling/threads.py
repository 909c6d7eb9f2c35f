"""The thread pool for blocking tools. It is bounded, and an abandoned call occupies its thread until it ends."""

import asyncio
import contextvars
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")
_PREFIX = "toolchat-tool"
_THREADS = 16
_THREADS_OF_A_TOOL = _THREADS // 2
"""So that a tool whose upstream hangs leaves threads to the others."""
_pool = ThreadPoolExecutor(_THREADS, _PREFIX)
"""Further calls wait for a thread, within their time limits."""


class NotBegun(asyncio.CancelledError):
    """The cancelled call had not begun, so that it can be repeated safely."""


@dataclass(slots=True)
class _Slots:
    """The threads that the calls of one tool may take."""

    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_THREADS_OF_A_TOOL))
    calls: set[Future[Any]] = field(default_factory=set)
    """Those that have a slot: in a thread, or waiting for one."""
    waiting: int = 0
    """Calls without a slot."""

    async def submit(self, run: Callable[[], _T]) -> Future[_T]:
        self.waiting += 1
        try:
            await self.free.acquire()
        finally:
            self.waiting -= 1
        call = _pool.submit(run)
        self.calls.add(call)
        loop = asyncio.get_running_loop()
        call.add_done_callback(lambda ended: self._release(ended, loop))
        return call

    def _release(self, call: Future[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.calls.discard(call)
        with suppress(RuntimeError):  # the loop is closed, and its slots with it
            loop.call_soon_threadsafe(self.free.release)


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Slots]] = WeakKeyDictionary()


def stop_threads(seconds: float) -> bool:
    """Stop the pool before the process exits.

    Args:
        seconds: time for the calls that still run.

    Returns:
        Whether all threads have ended. Python cannot stop the others, and would wait for them at exit.
    """
    _pool.shutdown(wait=False, cancel_futures=True)
    deadline = time.monotonic() + seconds
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(_PREFIX)]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


async def run_blocking(tool: str, function: Callable[[], _T]) -> _T:
    """Run a function of a tool in the pool, with the caller's context variables.

    If the caller is cancelled, a thread that has begun runs on: Python cannot stop one.

    Raises:
        NotBegun: the caller was cancelled before.
    """
    slots = _slots.setdefault(asyncio.get_running_loop(), defaultdict(_Slots))[tool]
    call: Future[_T] | None = None
    try:
        call = await slots.submit(partial(contextvars.copy_context().run, _without_stop_iteration, function))
        return await asyncio.wrap_future(call)
    except asyncio.CancelledError:
        if call is None or call.cancel():
            raise NotBegun from None
        raise


def thread_use() -> dict[str, tuple[int, int]]:
    """By tool, how many threads its calls occupy, and how many calls wait for a thread."""
    use: dict[str, tuple[int, int]] = {}
    for tool, slots in [each for tools in list(_slots.values()) for each in list(tools.items())]:
        calls = list(slots.calls)
        running = sum([each.running() for each in calls])
        busy, waiting = use.get(tool, (0, 0))
        use[tool] = busy + running, waiting + slots.waiting + len(calls) - running
    return use


def _without_stop_iteration(function: Callable[[], _T]) -> _T:
    try:
        return function()
    except StopIteration as error:
        # A future cannot carry this error: the caller would wait for ever.
        raise RuntimeError("the tool raised StopIteration") from error
