"""Waiting for what is bound to happen, on a busy machine too."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

__all__ = ["PATIENCE", "least_time", "until"]

PATIENCE = 60.0
"""Seconds that a test waits for anything before it gives up; whoever waits them out has found a fault."""


async def until(condition: Callable[[], object]) -> None:
    """Ask again and again until the answer, which may have to be awaited, is true.

    Raises:
        TimeoutError: it never was.
    """
    async with asyncio.timeout(PATIENCE):
        while not await _answer(condition):  # noqa: ASYNC110 - of many conditions, none is an event
            await asyncio.sleep(0.005)


async def _answer(condition: Callable[[], object]) -> object:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer


async def least_time(operation: Callable[[], Awaitable[object]], *, of: int = 5) -> float:
    """Seconds that an operation takes when nothing else keeps the machine busy: the least of several attempts."""
    took = []
    for _ in range(of):
        began = time.monotonic()
        await operation()
        took.append(time.monotonic() - began)
    return min(took)
