"""What is measured every second: the event loop's lag, and the memory of the process."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from os import sysconf
from pathlib import Path

from toolchat.service.observability import metrics

_STATUS = Path("/proc/self/statm")
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
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL
        await asyncio.sleep(_INTERVAL)
        metrics.LOOP_LAG.observe(max(0.0, loop.time() - due))
        metrics.MEMORY.set(_resident_bytes())
        update()


def _resident_bytes() -> int:
    """Resident memory of this process; 0 if the system has no ``/proc``."""
    try:
        return int(_STATUS.read_text().split()[1]) * sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
