"""Waiting for what is bound to happen."""

import asyncio
import inspect
from collections.abc import Callable

__all__ = ["until"]


async def until(condition: Callable[[], object], within: float = 30.0) -> None:
    """Ask again and again until the answer, which may have to be awaited, is true.

    Raises:
        TimeoutError: it never was.
    """
    async with asyncio.timeout(within):
        while True:
            answer = condition()
            if await answer if inspect.isawaitable(answer) else answer:
                return
            await asyncio.sleep(0.005)
