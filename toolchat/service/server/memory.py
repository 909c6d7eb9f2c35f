"""Settings of the whole process for garbage and free memory, each for what it was measured to save."""

import ctypes
import gc
import sys

TICKS_BETWEEN_TRIMS = 50
"""Of 0.1 s each."""


def tune_gc() -> None:
    """Configure the garbage collector for serving; it has been off since the process started.

    Objects created at start live as long as the process, so collections need not look at them. A chat request creates
    thousands of objects and hardly any cycle, so that collections can be rare.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def trim_heap() -> None:
    """Collect garbage, and return free memory to the system."""
    gc.collect(1)
    malloc_trim = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
