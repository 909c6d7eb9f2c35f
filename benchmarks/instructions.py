"""Instructions that a service executes per question, as callgrind counts them: no other program disturbs the count.

``python -m benchmarks.instructions`` compares a plain question with sessions, keys, traces and streams, also those of
the limit, in about ten minutes. Its arguments are how the names of the wanted rows begin.
"""

import asyncio
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import uvloop

from benchmarks.catalogue import CALLS
from benchmarks.stage import BenchError, Measurement, Stage, Target
from benchmarks.variants import (
    MEMORY,
    Variant,
    file_store,
    guarded,
    plain,
    postgresql_store,
    redis_store,
    session,
    streamed,
    traced,
)

__all__ = ["count_instructions"]


_IDLE_SECONDS = 5
_DUMPS, _COUNTED = 11, 20
"""The median of so many dumps leaves out what happens every few seconds, such as the return of memory to the system."""
_WARM_UP = 15
"""Times as many questions as a dump counts."""
_STEADY = {"PYTHONHASHSEED": "0", "HTTP_TOTAL_TIMEOUT": "60", "LOG_LEVEL": "WARNING"}
"""Without the thread that writes the log: how often it wakes depends on the machine."""
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


async def count_instructions(stage: Stage, variant: Variant) -> float:
    """Start a service under callgrind and count the instructions of a time question.

    Args:
        stage: where it runs.
        variant: the service, and what it is asked.

    Raises:
        BenchError: valgrind is not installed or cannot be controlled, an answer was wrong, or an upstream call missing.
    """
    if not shutil.which("valgrind"):
        raise BenchError("valgrind is not installed")
    output = stage.folder / f"callgrind.{variant.name.replace('%', '')}"
    callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}"]

    def command(port: int) -> Sequence[str]:
        return [*callgrind, *variant.service.command(port)]

    def environment(port: int, upstream: str) -> Mapping[str, str]:
        return {**variant.environment(port, upstream), **_STEADY}

    counted = variant.questions or _COUNTED
    async with stage.started(variant.name, command, environment, variant.first) as (target, _):
        await _ask(stage, target, variant, _WARM_UP * counted)
        # Callgrind translates the program's code anew when it begins to count.
        await _control(target, "--instr=on")
        await _ask(stage, target, variant, counted)
        counter = _Counter(target, output)
        await counter.count()
        await asyncio.sleep(_IDLE_SECONDS)
        idle = await counter.count()
        found = []
        for _ in range(_DUMPS):
            await _ask(stage, target, variant, counted)
            found.append(await counter.count(idle) * counter.seconds / counted)
    print(
        f"{variant.name}: {median(found):,.0f} instructions per question, from {min(found):,.0f} to {max(found):,.0f}"
    )
    return median(found)


async def _ask(stage: Stage, target: Target, variant: Variant, questions: int) -> None:
    pace = variant.pace
    what = Measurement("callgrind", variant.make, CALLS["time"], connections=1, questions=questions, pace=pace)
    sample = await stage.measured(target, what, attempts=1)
    if sample.values["faults"]:
        raise BenchError(f"{target.name}: {'; '.join(sample.marks)}")


async def _control(target: Target, option: str) -> None:
    pid = str(target.process.popen.pid)
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


def _variants(stage: Stage, redis: Mapping[str, str], postgresql: Mapping[str, str]) -> list[Variant]:
    stores = {"memory": MEMORY, "file": file_store(stage), "Redis": redis, "PostgreSQL": postgresql}
    sessions = [
        session(f"session of {turns} turns, {name}", store, turns)
        for name, store in stores.items()
        for turns in (0, 20)
    ]
    sessions.append(session("session of 100 turns, memory", MEMORY, 100))
    keys = [guarded(f"key and quotas, {name}", stage, stores[name]) for name in ("memory", "file")]
    unsent = {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2048"}
    # Which questions are sampled is random, so that some twenty at 10 % would differ too much from one another.
    traces = [traced(f"traces, {share} % sampled", stage, share / 100, **unsent) for share in (0, 100)]
    return [plain(), *sessions, *keys, *traces, streamed("toolchat"), streamed("limit")]


async def _table(folder: Path, starts: Sequence[str]) -> str:
    with Stage(folder) as stage, redis_store(stage) as redis, postgresql_store() as postgresql:
        base, *others = _variants(stage, redis, postgresql)
        wanted = [each for each in others if each.name.startswith(tuple(starts) or "")]
        counts = {each.name: await count_instructions(stage, each) for each in (base, *wanted)}
    rows = [f"| {name} | {count:,.0f} | {count / counts[base.name]:.3f} |" for name, count in counts.items()]
    return "\n".join(["| variant | instructions | ÷ plain |", "| --- | --- | --- |", *rows])


def main(arguments: Sequence[str] = sys.argv) -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="toolchat-bench-") as folder:
        print(uvloop.run(_table(Path(folder), arguments[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
