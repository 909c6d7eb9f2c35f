"""The service as a process of its own, as an operator starts it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.faults.wire import Reply, ask

__all__ = ["CANARY", "ROOT", "WITHOUT", "Service"]

ROOT = Path(__file__).parents[2]
WITHOUT = "FAULT_WITHOUT"
"""The variable that names a mechanism of ``tests.faults.removal`` which services run without."""
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
CANARY = "sk-canary-4711"
"""The provider's key, which must never be shown."""
_STARTS_WITHIN = 60.0
_STOPS_WITHIN = 40.0


def _bare_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the developer's environment but what every program needs."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "SERVER_PORT": "0", **variables}


class Service:
    """One process of ``python -m app serve``; its log is a file, which is searched for errors after each test.

    Args:
        folder: where it runs, and where its log is written.
        variables: its settings.
        prefix: a program that starts it, such as ``("prlimit", "--nofile=256")``.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str], prefix: tuple[str, ...] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._variables = {"SERVER_PORT": "0", **variables}
        self._prefix = prefix
        self.log = folder / "log"
        self.url = ""
        self._seen = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def popen(self) -> "subprocess.Popen[bytes]":
        """The running process."""
        if self._process is None:
            raise RuntimeError("the service was not started")
        return self._process

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self.url.rsplit(":", 1)[1])

    def spawn(self) -> None:
        """Start the process without waiting for it; again on the same port as before."""
        mechanism = os.environ.get(WITHOUT)
        program = ["tests.faults.removal", mechanism] if mechanism else ["app"]
        command = [*self._prefix, sys.executable, "-m", *program, "serve"]
        variables = _bare_environment(self._variables)
        self._seen = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def start(self) -> None:
        """Start the process and wait until it listens.

        Raises:
            RuntimeError: it ended before.
        """
        self.spawn()
        from_here = self._seen
        async with asyncio.timeout(_STARTS_WITHIN):
            while not (found := re.search(r"toolchat on (http://\S+)", self.written(from_here))):
                if self.popen.poll() is not None:
                    raise RuntimeError(f"the service did not start: {self.written(from_here)[-500:]}")
                await asyncio.sleep(0.01)
        self.url = found[1]
        self._variables["SERVER_PORT"] = str(self.port)

    def written(self, since: int = 0) -> str:
        """What it wrote into its log, from a place in bytes on."""
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")

    def errors(self) -> list[str]:
        """Lines since this was asked last that are of severity ERROR, begin a traceback, or tell the provider's key."""
        text = self.written(self._seen)
        self._seen = self.log.stat().st_size
        return [
            line for line in text.splitlines() if '"level":"ERROR"' in line or "Traceback" in line or CANARY in line
        ]

    async def ask(self, path: str, **options: Any) -> Reply:
        """Ask it one thing over a connection of its own; see :func:`tests.faults.wire.ask`."""
        return await ask(self.port, path, **options)

    async def figures(self) -> dict[str, float]:
        """What ``/metrics`` says, the sums over all labels."""
        sums: dict[str, float] = {}
        for line in (await self.ask("/metrics")).text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                series = name.partition("{")[0]
                sums[series] = sums.get(series, 0) + float(value)
        return sums

    async def ready(self) -> dict[str, Any]:
        """What ``/health/ready`` says."""
        answer: dict[str, Any] = json.loads((await self.ask("/health/ready")).body)
        return answer

    def mib(self) -> float:
        """Resident memory."""
        return float(psutil.Process(self.popen.pid).memory_info().rss) / 2**20

    def files(self) -> int:
        """Open files, sockets among them."""
        return int(psutil.Process(self.popen.pid).num_fds())

    def cpu_seconds(self) -> float:
        """CPU time so far."""
        times = psutil.Process(self.popen.pid).cpu_times()
        return float(times.user + times.system)

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        self.popen.send_signal(number)

    async def ended(self, within: float = _STOPS_WITHIN) -> int:
        """Wait for the end of the process; gives its exit code.

        Raises:
            TimeoutError: it still runs.
        """
        async with asyncio.timeout(within):
            while (code := self.popen.poll()) is None:  # noqa: ASYNC110 - a process has no event for it
                await asyncio.sleep(0.01)
        return code

    async def stop(self) -> None:
        """End the process, whatever state it is in."""
        if self._process is None or self._process.poll() is not None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        await self.ended()
