"""Instructions that a service executes per question, as callgrind counts them: no other program disturbs the count."""

import asyncio
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.catalogue import CALLS, SERVICES
from bench.load import question
from bench.stage import BenchError, Measurement, Stage, Target

__all__ = ["can_count", "count_instructions"]

_WARM_UP, _SETTLING = 300, 20
_IDLE_SECONDS = 5
_DUMPS, _COUNTED = 11, 20
"""The median of so many dumps leaves out what happens every few seconds, such as the return of memory to the system."""
_STEADY = {"PYTHONHASHSEED": "0", "HTTP_TOTAL_TIMEOUT": "60", "LOG_LEVEL": "WARNING"}
"""Without the thread that writes the log: how often it wakes depends on the machine."""
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


def can_count() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("valgrind") is not None


async def count_instructions(stage: Stage, name: str) -> float:
    """Start a service under callgrind and count the instructions of a time question.

    Args:
        stage: where it runs.
        name: the service's name in the catalogue.

    Raises:
        BenchError: an answer was wrong, an upstream call was missing, or callgrind could not be controlled.
    """
    service, output = SERVICES[name], stage.folder / f"callgrind.{name}"
    callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}"]

    def command(port: int) -> Sequence[str]:
        return [*callgrind, *service.command(port)]

    def environment(port: int, upstream: str) -> Mapping[str, str]:
        return {**service.environment(port, upstream), **_STEADY}

    path = service.path.format(tool="time")
    async with stage.started(name, command, environment, path) as (target, _):
        await _ask(stage, target, path, _WARM_UP)
        # Callgrind translates the program's code anew when it begins to count.
        await _control(target, "--instr=on")
        await _ask(stage, target, path, _SETTLING)
        counter = _Counter(target, output)
        await counter.count()
        await asyncio.sleep(_IDLE_SECONDS)
        idle = await counter.count()
        found = []
        for _ in range(_DUMPS):
            await _ask(stage, target, path, _COUNTED)
            found.append(await counter.count(idle) * counter.seconds / _COUNTED)
    print(f"{name}: {median(found):,.0f} instructions per question, from {min(found):,.0f} to {max(found):,.0f}")
    return median(found)


async def _ask(stage: Stage, target: Target, path: str, questions: int) -> None:
    what = Measurement("callgrind", question(path), CALLS["time"], connections=1, questions=questions)
    sample = await stage.measured(target, what, attempts=1)
    if sample.values["faults"]:
        raise BenchError(f"{target.name}: {'; '.join(sample.marks)}")


async def _control(target: Target, option: str) -> None:
    pid = str(target.processes[0][0].popen.pid)
    process = await asyncio.create_subprocess_exec(
        "callgrind_control", option, pid, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise BenchError(f"callgrind_control {option} failed: {output.decode(errors='replace')}")


class _Counter:
    """Counts the instructions of a service from one dump of callgrind to the next."""

    def __init__(self, target: Target, output: Path) -> None:
        self._target, self._output = target, output
        self._dumps = 0
        self._since = time.perf_counter()
        self.seconds = 0.0
        """The time between the last two dumps."""

    async def count(self, idle: float = 0) -> float:
        """The instructions per second since the last dump, less those of an idle service."""
        await _control(self._target, "--dump")
        self._dumps, before, self._since = self._dumps + 1, self._since, time.perf_counter()
        self.seconds = self._since - before
        dump = self._output.with_name(f"{self._output.name}.{self._dumps}")
        found = _TOTAL.search(dump.read_text(errors="replace")) if dump.exists() else None
        if found is None:
            raise BenchError("callgrind wrote no dump")
        return int(found[1]) / self.seconds - idle
