"""The thread pool for blocking tools. It is bounded, and an abandoned call occupies its thread until it ends."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_PREFIX = "toolchat-tool"
_pool = ThreadPoolExecutor(16, _PREFIX)
"""Further calls wait for a thread, within their time limits."""


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


async def run_blocking(function: Callable[[], _T]) -> _T:
    """Run a function in the pool, with the caller's context variables.

    If the caller is cancelled, the thread runs on: Python cannot stop one.
    """
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_pool, run, _without_stop_iteration, function)


def _without_stop_iteration(function: Callable[[], _T]) -> _T:
    try:
        return function()
    except StopIteration as error:
        # A future cannot carry this error: the caller would wait for ever.
        raise RuntimeError("the tool raised StopIteration") from error
