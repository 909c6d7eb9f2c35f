"""Waiting for what is bound to happen."""

import asyncio
import time
from collections.abc import Awaitable, Callable

__all__ = ["until"]


async def until(condition: Callable[[], Awaitable[object]], *, within: float = 5.0) -> float:
    """Ask until the answer is true; gives the seconds that it took, and fails when it takes too long."""
    began = time.monotonic()
    while not await condition():
        assert time.monotonic() - began < within, f"did not happen within {within} s"
        await asyncio.sleep(0.01)
    return time.monotonic() - began
