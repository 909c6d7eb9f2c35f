"""Waiting for conditions without sleeps that depend on the machine's speed."""

import asyncio
import inspect
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds that a test waits for anything before it fails."""


async def until(condition: Callable[[], object]) -> None:
    """Poll a condition, which may be asynchronous, until it is true: often at first, then every twentieth of a second.

    Raises:
        TimeoutError: the condition stayed false.
    """
    async with asyncio.timeout(PATIENCE):
        pause = 0.001
        while not await _answer(condition):
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.05)


async def _answer(condition: Callable[[], object]) -> object:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer
