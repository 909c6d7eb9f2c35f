"""What a process that serves does about its memory: when it collects garbage, and what it gives back."""

import gc
import sys

__all__ = ["collect_seldom", "give_back_memory"]


def collect_seldom() -> None:
    """Set the garbage collector up for a process that serves; it has been off since the modules were loaded.

    What was made at start lives as long as the process, so the collector need not look at it again. A question makes
    thousands of objects and hardly a cycle.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def give_back_memory(generation: int) -> None:
    """Return to the system what is kept of memory that was needed once.

    Questions that were broken off are cycles, which a service that then does nothing would keep for ever: those that
    had run for some seconds lie in the oldest generation. Of what has been freed glibc alone keeps much, and can give
    it back.
    """
    import ctypes

    gc.collect(generation)
    trim = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
