"""Processes that are measured: started on one core, with nothing of the developer's environment."""

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

__all__ = ["FOUND", "ROOT", "Running", "cores", "free_port", "log_of", "running"]


ROOT = Path(__file__).parent.parent
FOUND = 200
_KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
_STOP_SECONDS = 10
_PORTS = range(20_000, 30_000)


class Running:
    """A process and whatever it has started."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.popen = process
        self._process = psutil.Process(process.pid)

    def first_line(self) -> str:
        """The first line of its standard output; empty when it ended before."""
        return self.popen.stdout.readline() if self.popen.stdout else ""

    def cpu_seconds(self) -> float:
        """User and system time so far, children included."""
        times = [each.cpu_times() for each in self._family()]
        return sum(each.user + each.system + each.children_user + each.children_system for each in times)

    def rss_mib(self) -> float:
        """Resident memory, children included."""
        return sum(each.memory_info().rss for each in self._family()) / 2**20

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]


def cores() -> tuple[int, int]:
    """The core of the service, and the core of everything else."""
    allowed = sorted(_allowed)
    return allowed[0], allowed[-1]


def free_port() -> int:
    """A free port outside of the range from which the kernel assigns ephemeral ports."""
    while True:
        port = random.choice(_PORTS)  # noqa: S311 - no secret
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextmanager
def running(
    command: Sequence[str], core: int | None, log: Path, environment: Mapping[str, str] | None = None
) -> Generator[Running, None, None]:
    """Run a program until the block ends.

    Args:
        command: the program and its arguments; ``python`` stands for the interpreter of the benchmark.
        core: where it runs; ``None`` allows every core.
        log: where standard error goes.
        environment: variables beside the few that every program needs.
    """
    program = [sys.executable if each == "python" else each for each in command]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    variables = {**kept, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **(environment or {})}
    with (
        log.open("a") as errors,
        subprocess.Popen(
            program, env=variables, cwd=log.parent, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        os.sched_setaffinity(process.pid, _allowed if core is None else {core})
        try:
            yield Running(process)
        finally:
            _stop(process)


def log_of(path: Path) -> str:
    """The last lines of a log, for a message about a program that failed."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-15:])


def _stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()


_allowed = frozenset(os.sched_getaffinity(0))
