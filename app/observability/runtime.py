"""Metrics of the process: event loop lag, garbage collections, CPU and memory."""

import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

from app.observability import metrics as series
from app.observability.series import Family, Readings

__all__ = ["process_readings", "watched"]

_EVERY = 1.0
_collections: list[float] = []
"""Start times of collections that are running."""


@asynccontextmanager
async def watched() -> AsyncGenerator[None, None]:
    """Measure the event loop's lag within the block, and garbage collections from now on."""
    if _collected not in gc.callbacks:
        gc.callbacks.append(_collected)
        series.STARTED.at()[0] = time.time()  # the import may have happened before a fork
    watch = _LoopWatch()
    try:
        yield
    finally:
        watch.stop()


class _LoopWatch:
    """A timer that fires every second; its delay is the delay of everything on the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._set()

    def _set(self) -> None:
        self._due = self._loop.time() + _EVERY
        self._timer = self._loop.call_at(self._due, self._fire)

    def _fire(self) -> None:
        series.LOOP_LAG.observe(max(0.0, self._loop.time() - self._due))
        self._set()

    def stop(self) -> None:
        self._timer.cancel()


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        _collections.append(perf_counter())
    elif _collections:
        generation = str(info["generation"])
        series.GC_COLLECTIONS.add(generation)
        series.GC_SECONDS.add(generation, by=perf_counter() - _collections.pop())


def process_readings() -> dict[Family, Readings]:
    """CPU time and memory of the process, as reported by the system."""
    memory = _resident_memory()
    return {
        series.CPU_SECONDS: {(): time.process_time()},
        series.MEMORY: {} if memory is None else {(): memory},
    }


def _resident_memory() -> int | None:
    """Resident memory in bytes; ``None`` except on Linux, which has this file."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
