"""Two services by turns of less than a second, so that the machine's changing speed meets both alike."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from benchmarks.catalogue import CALLS, LIMIT, SERVICES, Service
from benchmarks.load import Question, ask, question
from benchmarks.stage import Measurement, Sample, Stage, Target

__all__ = ["PAIR_SECONDS", "STREAM_PACE", "by_turns", "measure_beside", "measure_pairs", "warm", "warm_up"]


PAIR_SECONDS = 0.8
STREAM_PACE = (0.2, 0.05)
_STRETCH = 5_000

Side = tuple[Target, Measurement]
"""A started service, and what it is asked."""


async def measure_pairs(stage: Stage, subject: str, tool: str, pairs: int, deadline: float) -> list[Sample]:
    """Measure a service and the limit by turns, started side by side.

    Args:
        stage: where the services run.
        subject: the service beside the limit.
        tool: the tool of the questions.
        pairs: how many unmarked pairs are wanted.
        deadline: seconds after which no further pair is begun.

    Returns:
        The pairs, each as one sample: the CPU per question of both, and their ``ratio``.
    """
    async with AsyncExitStack() as exits:
        sides = []
        for service in (SERVICES[subject], SERVICES[LIMIT]):
            path = service.path.format(tool=tool)
            start = stage.started(service.name, service.command, service.environment, path)
            target, _ = await exits.enter_async_context(start)
            what = Measurement(f"pair-{tool}", question(path), CALLS[tool], 32, seconds=PAIR_SECONDS)
            sides.append(await warm(target, what))
        return await by_turns(stage, f"pairs-{tool}", sides, pairs, deadline)


async def measure_beside(stage: Stage, peer: Target, name: str, pairs: int) -> None:
    """Measure toolchat and a peer that is already warm by turns, with 32 connections and with one.

    Args:
        stage: where the peer runs.
        peer: is not stopped.
        name: the pairs' samples are called ``pairs-<name>-<connections>``.
        pairs: how many unmarked pairs are wanted.
    """
    service: Service = SERVICES["toolchat"]
    path = service.path.format(tool="time")
    started = stage.started(service.name, service.command, service.environment, path)
    async with started as (toolchat, _):
        for connections in (32, 1):
            phase = f"{name}-{connections}"
            what = Measurement(f"pair-{phase}", question(path), CALLS["time"], connections, seconds=PAIR_SECONDS)
            sides = [await warm(each, what) for each in (toolchat, peer)]
            await by_turns(stage, f"pairs-{phase}", sides, pairs, 4 * pairs)


async def warm(target: Target, what: Measurement) -> Side:
    """Ask for a while what will be measured."""
    questions = what.questions // 5
    await ask(target.ports, what.make, connections=32, seconds=what.seconds, questions=questions)
    return target, what


async def warm_up(target: Target, make: Question, questions: int) -> None:
    """Ask so many questions, not all of them at a stretch, since each stretch has to end in time."""
    for begun in range(0, questions, _STRETCH):
        await ask(target.ports, make, connections=32, questions=min(_STRETCH, questions - begun))


async def by_turns(stage: Stage, phase: str, sides: Sequence[Side], pairs: int, deadline: float) -> list[Sample]:
    """Measure two sides by turns; each pair also goes to the stage as a sample of the first one.

    Args:
        stage: where both run.
        phase: the phase of the pairs' samples.
        sides: what is measured; the first one's CPU per question is divided by the second one's.
        pairs: how many unmarked pairs are wanted.
        deadline: seconds after which no further pair is begun.

    Returns:
        The pairs.
    """
    began, found = time.monotonic(), list[Sample]()
    while sum(not each.marks for each in found) < pairs and time.monotonic() - began < deadline:
        mine, other = [await stage.measured(target, what, attempts=1) for target, what in sides]
        found.append(stage.keep(_pair(phase, mine, other)))
    return found


def _pair(phase: str, mine: Sample, other: Sample) -> Sample:
    values = {
        "ratio": mine.values["cpu_ms"] / other.values["cpu_ms"],
        "cpu_ms": mine.values["cpu_ms"],
        "other_cpu_ms": other.values["cpu_ms"],
        "faults": mine.values["faults"] + other.values["faults"],
    }
    return Sample(mine.subject, phase, values, (*mine.marks, *other.marks))
