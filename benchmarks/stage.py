"""Where services are started and measured: the fake upstream, the two cores, and one measurement."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic_core import from_json

from benchmarks.load import Load, Question, ask, fetch
from benchmarks.processes import FOUND, Running, cores, free_port, log_of, running
from benchmarks.watch import Watch, marks_of

__all__ = ["BenchError", "Measurement", "Sample", "Stage", "Target", "percentile"]


_START_SECONDS = 180
_SETTLE_SECONDS = 6
"""toolchat looks every five seconds for memory to give back."""


class BenchError(Exception):
    """A service could not be measured at all."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What to ask of a started service; either ``seconds`` or ``questions`` ends it."""

    phase: str
    make: Question
    calls: int
    """Upstream calls that each question needs."""
    connections: int
    seconds: float = 0
    questions: int = 0
    pace: tuple[float, float] = (0, 0)
    """Seconds that the model takes to its first piece, and from piece to piece."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement."""

    subject: str
    phase: str
    values: Mapping[str, float]
    marks: tuple[str, ...] = ()
    """Why it is not counted; empty when it is."""


@dataclass
class Target:
    """A started service."""

    name: str
    ports: list[int]
    process: Running
    idle_mib: float = 0
    """Memory right after the first answer."""


@dataclass
class Stage:
    """The fake upstream and the cores; opened once for a whole run."""

    folder: Path
    """Where logs go."""
    samples: list[Sample] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._exits = ExitStack()
        self.service_core, self.other_core = cores()
        command = ["python", "-m", "benchmarks.fake_upstream", "0"]
        fake = self._exits.enter_context(running(command, self.other_core, self.folder / "upstream.log"))
        self._helpers = [fake]
        self._port = int(fake.first_line() or "0")
        if not self._port:
            raise BenchError(f"the fake upstream did not start\n{log_of(self.folder / 'upstream.log')}")
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @property
    def upstream(self) -> str:
        """The fake's address without a path."""
        return f"http://127.0.0.1:{self._port}"

    @contextmanager
    def helped(self, command: Sequence[str]) -> Generator[None, None, None]:
        """Run a program that services need beside the upstream, on the upstream's core."""
        with running(command, self.other_core, self.folder / f"{Path(command[0]).name}.log") as helper:
            self._helpers.append(helper)
            try:
                yield
            finally:
                self._helpers.remove(helper)

    async def counts(self, pace: tuple[float, float] | None = None) -> dict[str, float]:
        """What the fake has counted; sets its pace as well, if one is given."""
        query = f"?first={pace[0]}&piece={pace[1]}" if pace else ""
        counts: dict[str, float] = from_json((await fetch(self._port, f"/control{query}"))[1])
        return counts

    @asynccontextmanager
    async def started(
        self,
        name: str,
        command: Callable[[int], Sequence[str]],
        environment: Callable[[int, str], Mapping[str, str]],
        first: str,
    ) -> AsyncGenerator[tuple[Target, Sample], None]:
        """Run a service until the block ends; gives it, and the sample of its start, once ``first`` got its 200.

        Raises:
            BenchError: it does not start or does not answer.
        """
        await self.counts((0, 0))
        with ExitStack() as exits:
            port, log = free_port(), self.folder / f"{name}.log"
            watch, own, began = self._watch(), self._own(), time.perf_counter()
            started = running(command(port), self.service_core, log, environment(port, self.upstream))
            target = Target(name, [port], exits.enter_context(started))
            await _until_first_200(target.process, port, first, log)
            target.idle_mib = target.process.rss_mib()
            cpu = target.process.cpu_seconds()
            seconds = time.perf_counter() - began
            values = {"first_200_s": seconds, "rss_mib": target.idle_mib, "start_cpu_s": cpu}
            used = [cpu, self._own() - own]
            marks = marks_of(watch.uses(used), wrong=0, asked=1, upstream_calls=0, expected=0)
            yield target, self.keep(Sample(name, "start", values, marks))

    async def measured(self, target: Target, what: Measurement, attempts: int = 3) -> Sample:
        """Measure until nothing disturbs it, up to a number of attempts; every attempt is kept."""
        for _ in range(attempts):
            sample = self.keep(await self._measured(target, what))
            if not sample.marks:
                break
        return sample

    def keep(self, sample: Sample) -> Sample:
        """Add a sample to the run, and show it."""
        self.samples.append(sample)
        names = ("first_200_s", "ratio", "cpu_ms", "p50_ms", "first_ms", "wall_s", "grown_mib")
        values = "  ".join(f"{name} {sample.values[name]:.3f}" for name in names if name in sample.values)
        print(f"{sample.subject:26} {sample.phase:16} {values}  {'; '.join(sample.marks)}", flush=True)
        return sample

    async def settled(self, target: Target) -> Sample:
        """What memory a service keeps a while after its last answer."""
        await asyncio.sleep(_SETTLE_SECONDS)
        rss = target.process.rss_mib()
        return self.keep(Sample(target.name, "settled", {"rss_mib": rss, "grown_mib": rss - target.idle_mib}))

    async def _measured(self, target: Target, what: Measurement) -> Sample:
        before, cpu, own = await self.counts(what.pace), target.process.cpu_seconds(), self._own()
        watch = self._watch()
        load = await ask(
            target.ports,
            what.make,
            connections=what.connections,
            seconds=what.seconds,
            questions=what.questions,
        )
        after, used = await self.counts(), target.process.cpu_seconds() - cpu
        uses = watch.uses([used, self._own() - own])
        calls = _upstream_calls(after) - _upstream_calls(before)
        expected = what.calls * load.asked
        marks = marks_of(uses, wrong=load.wrong, asked=load.asked, upstream_calls=calls, expected=expected)
        if load.sample:
            print(f"a wrong answer of {target.name}: {load.sample[:500]!r}", flush=True)
        values = _values(load, used) | {
            "faults": load.wrong + abs(calls - expected),
            "rss_mib": target.process.rss_mib(),
        }
        return Sample(target.name, what.phase, values, marks)

    def _watch(self) -> Watch:
        return Watch([self.service_core, self.other_core])

    def _own(self) -> float:
        """CPU seconds of the fake, of other helpers and of this process, which share a core."""
        return sum(each.cpu_seconds() for each in self._helpers) + time.process_time()


async def _until_first_200(process: Running, port: int, path: str, log: Path) -> None:
    deadline = time.perf_counter() + _START_SECONDS
    while time.perf_counter() < deadline and process.popen.poll() is None:
        try:
            status, body = await fetch(port, f"{path}{'&' if '?' in path else '?'}query=ask-00000000")
        except OSError:
            await asyncio.sleep(0.002)
            continue
        if status != FOUND:
            raise BenchError(f"{log.stem} answered its first question with {status}: {body[:300]!r}\n{log_of(log)}")
        return
    raise BenchError(f"{log.stem} does not answer\n{log_of(log)}")


def _upstream_calls(counts: Mapping[str, float]) -> int:
    return int(sum(counts[name] for name in ("calls", "answers", "forecasts", "refused")))


def _values(load: Load, cpu: float) -> dict[str, float]:
    answered = max(len(load.latencies), 1)
    first_text = {"first_ms": 1000 * percentile(load.first_texts, 50)} if load.first_texts else {}
    return first_text | {
        "questions": load.asked,
        "cpu_ms": 1000 * cpu / answered,
        "wall_s": load.wall,
        "p50_ms": 1000 * percentile(load.latencies, 50),
        "p99_ms": 1000 * percentile(load.latencies, 99),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; 0 of nothing."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share / 100 * len(ordered)) - 1, 0)] if ordered else 0.0
