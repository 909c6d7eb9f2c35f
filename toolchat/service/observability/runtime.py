"""The event loop's lag, and the memory of the process with the tools that were called while it grew."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from os import sysconf
from pathlib import Path
from typing import Any

from toolchat.service.observability import metrics

_log = logging.getLogger(__name__)
_STATUS = Path("/proc/self/statm")
_STEP = 64 * 2**20
_SAMPLES = 600
_MAX_TOOLS = 5
_INTERVAL = 1.0

tool_calls: Counter[str] = Counter()
"""The calls of each tool in this process."""


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


def resident_bytes() -> int:
    """Resident memory of this process; 0 if the system has no ``/proc``."""
    try:
        return int(_STATUS.read_text().split()[1]) * sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class MemoryWatch:
    """Logs each new high-water mark of the memory with the tools that were called since the last one.

    The calls per second of a tool that leaks correlate with the growth per second, so the line has the correlation.

    Args:
        calls: the calls of each tool so far; it is updated by others.
    """

    def __init__(self, resident: Callable[[], int] = resident_bytes, calls: Mapping[str, int] = tool_calls) -> None:
        self._resident, self._calls = resident, calls
        self._mark = self._last = resident()
        self._before = Counter(calls)
        self._samples: deque[tuple[int, Counter[str]]] = deque(maxlen=_SAMPLES)

    def sample(self) -> int:
        """Compare with the last sample, a second ago; returns the memory in bytes."""
        now, calls = self._resident(), Counter(self._calls)
        self._samples.append((now - self._last, calls - self._before))
        self._last, self._before = now, calls
        if now >= self._mark + _STEP:
            fields = {"memory_mib": now >> 20, "grown_mib": (now - self._mark) >> 20, "tools": self._tools()}
            _log.warning("memory has grown", extra=fields)
            self._mark = now
            self._samples.clear()
        return now

    def _tools(self) -> list[dict[str, Any]]:
        """The tools called since the last mark, sorted by the correlation of their calls with the growth."""
        from statistics import StatisticsError, correlation  # hardly any process needs it

        growth = [grown for grown, _ in self._samples]
        total: Counter[str] = sum((calls for _, calls in self._samples), Counter())
        found: list[dict[str, Any]] = []
        for name, calls in total.items():
            fit = 0.0
            with suppress(StatisticsError):  # the calls or the growth were the same in each second
                fit = correlation(growth, [each[name] for _, each in self._samples])
            found.append({"name": name[:64], "calls": calls, "correlation": round(fit, 2)})
        found.sort(key=lambda each: (each["correlation"], each["calls"]), reverse=True)
        return found[:_MAX_TOOLS]
