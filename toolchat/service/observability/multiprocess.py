"""Metrics of several workers, by ``prometheus_client``'s multiprocess mode: files in one directory, which any sums."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolchat.errors import ConfigurationError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_IN_MEMORY = "/dev/shm"  # noqa: S108 - writable on a read-only file system; mkdtemp makes a private directory


@contextmanager
def metrics_directory() -> Generator[None, None, None]:
    """Create the directory for all processes that start within the block, and remove it at its end."""
    # prometheus_client reads the variable when it is imported, so the block must be entered before.
    parent = os.getpid()
    try:
        base = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
        folder = tempfile.mkdtemp(prefix="toolchat-metrics-", dir=base)
    except OSError as error:
        raise ConfigurationError(f"SERVER_WORKERS: no directory for the metrics of several workers: {error}") from None
    os.environ[_VARIABLE] = folder
    try:
        yield
    finally:
        if os.getpid() == parent:  # a forked worker leaves the block as well
            del os.environ[_VARIABLE]
            shutil.rmtree(folder, ignore_errors=True)


def forget_worker(pid: int) -> None:
    """Remove the gauges of a worker that has ended, in its parent; its counters stay part of the sums."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)


def registry() -> "CollectorRegistry":
    """The metrics to report: the sums over all workers or, with a single process, its own."""
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.multiprocess import MultiProcessCollector

    if _VARIABLE not in os.environ:
        return REGISTRY
    sums = CollectorRegistry()
    MultiProcessCollector(sums)
    return sums
