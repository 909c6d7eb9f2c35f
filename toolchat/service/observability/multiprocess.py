"""Metrics of several workers, by ``prometheus_client``'s multiprocess mode: files in one directory, which any sums."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolchat.errors import ConfigurationError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_IN_MEMORY = "/dev/shm"  # noqa: S108 - writable on a read-only file system; mkdtemp makes a private directory
_PREFIX = "toolchat-metrics-"
_OWNER = "owner"
"""A file in each directory that is locked while a process uses it; process ids differ between containers."""


@contextmanager
def metrics_directory() -> Generator[None, None, None]:
    """Create the directory for all processes that start within the block, and remove it, and those of killed ones."""
    # prometheus_client reads the variable when it is imported, so the block must be entered before.
    parent = os.getpid()
    try:
        base = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else tempfile.gettempdir()
        _remove_abandoned(Path(base))
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
        lock = _lock(Path(folder))
    except OSError as error:
        raise ConfigurationError(f"SERVER_WORKERS: no directory for the metrics of several workers: {error}") from None
    os.environ[_VARIABLE] = folder
    try:
        yield
    finally:
        if os.getpid() == parent:  # a forked worker leaves the block as well
            del os.environ[_VARIABLE]
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int:
    """Lock a directory until all processes that share the returned descriptor have closed it."""
    import fcntl  # which Windows lacks, as it does workers

    lock = os.open(folder / "new", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "new").rename(folder / _OWNER)  # only now: another start must not see it without the lock
    return lock


def _remove_abandoned(base: Path) -> None:
    import fcntl

    for owner in base.glob(f"{_PREFIX}*/{_OWNER}"):
        with suppress(OSError), owner.open() as file:  # it is locked, or another user's
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(owner.parent)


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
