"""Threads for tools that block: a bounded pool, in which an abandoned call keeps its place until it ends."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["is_given_up", "limit_threads", "run_blocking", "stop_threads"]

_T = TypeVar("_T")
_PREFIX = "toolchat-tool"
_number = 16
_pool = ThreadPoolExecutor(_number, _PREFIX)


def limit_threads(number: int) -> None:
    """Set how many blocking calls may run at once in this process; further ones wait, within their time limits."""
    global _number, _pool
    if number != _number:
        _pool.shutdown(wait=False)
        _number, _pool = number, ThreadPoolExecutor(number, _PREFIX)


def stop_threads(seconds: float) -> bool:
    """Let the pool end with the process.

    Args:
        seconds: how long calls that still run may take.

    Returns:
        Whether all threads have ended; Python would wait for the others, and cannot stop them.
    """
    _pool.shutdown(wait=False, cancel_futures=True)
    deadline = time.monotonic() + seconds
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(_PREFIX)]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


async def run_blocking(function: Callable[[], _T]) -> _T:
    """Run a function in the pool, with the caller's context variables.

    A caller who stops waiting leaves the thread to itself: Python cannot stop one. It may ask :func:`is_given_up`.
    """
    context, call = contextvars.copy_context(), _Call()
    context.run(_current.set, call)
    try:
        return await asyncio.get_running_loop().run_in_executor(_pool, context.run, _contained, function)
    except asyncio.CancelledError:
        call.given_up = True
        raise


class _Call:
    __slots__ = ("given_up",)

    def __init__(self) -> None:
        self.given_up = False


_current: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("current_call", default=None)


def is_given_up() -> bool:
    """Whether nobody waits any more for what runs in this thread of the pool."""
    call = _current.get()
    return call is not None and call.given_up


def _contained(function: Callable[[], _T]) -> _T:
    try:
        return function()
    except StopIteration as error:
        # A future cannot carry it: whoever waits would wait for ever.
        raise RuntimeError("the tool raised StopIteration") from error
