"""The event loop's lag, the process's memory, and an update of metrics every second."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from app.observability import metrics
from app.observability.memory import MemoryWatch

__all__ = ["watched"]

_INTERVAL = 1.0


@asynccontextmanager
async def watched(update: Callable[[], None]) -> AsyncGenerator[None, None]:
    """Within the block, call ``update`` every second and measure by how much that is late, as everything else is."""
    task = asyncio.create_task(_watch(update))
    try:
        yield
    finally:
        task.cancel()


async def _watch(update: Callable[[], None]) -> None:
    loop, memory = asyncio.get_running_loop(), MemoryWatch()
    while True:
        due = loop.time() + _INTERVAL
        await asyncio.sleep(_INTERVAL)
        metrics.LOOP_LAG.observe(max(0.0, loop.time() - due))
        metrics.MEMORY.set(memory.sample())
        update()
