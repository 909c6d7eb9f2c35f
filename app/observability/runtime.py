"""The process itself: how late its event loop is, and what garbage collections take."""

import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

from app.observability import catalogue as series
from app.observability.series import Family, Readings

__all__ = ["process_readings", "watched"]

_EVERY = 1.0
_collections: list[float] = []
"""When the one that runs began."""


@asynccontextmanager
async def watched() -> AsyncGenerator[None, None]:
    """Watch the running event loop as long as the block runs, and the garbage collector from now on."""
    if _collected not in gc.callbacks:
        gc.callbacks.append(_collected)
        series.STARTED.at()[0] = time.time()  # not when it was imported, which may have been before a fork
    watch = _LoopWatch()
    try:
        yield
    finally:
        watch.stop()


class _LoopWatch:
    """A timer that rings each second; when it is late, everything else was as late."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._set()

    def _set(self) -> None:
        self._due = self._loop.time() + _EVERY
        self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
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
    """What the system says of the process."""
    memory = _resident_memory()
    return {
        series.CPU_SECONDS: {(): time.process_time()},
        series.MEMORY: {} if memory is None else {(): memory},
    }


def _resident_memory() -> int | None:
    """Bytes, where the system is Linux; elsewhere there is no such file."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
