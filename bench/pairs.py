"""toolchat beside the limit by turns of less than a second, so that the machine's changing speed meets both alike."""

import time
from contextlib import AsyncExitStack

from bench.catalogue import LIMIT, SERVICES
from bench.load import ask, question
from bench.measure import CALLS
from bench.stage import Measurement, Sample, Stage

__all__ = ["measure_pairs"]

_SECONDS = 0.8


async def measure_pairs(stage: Stage, subject: str, tool: str, pairs: int, deadline: float) -> list[Sample]:
    """Measure both by turns, started side by side.

    Args:
        stage: where the services run.
        subject: the service beside the limit.
        tool: the tool of the questions.
        pairs: how many unmarked pairs are wanted.
        deadline: seconds after which no further pair is begun.

    Returns:
        The pairs, each as one sample: the CPU per question of both, and their ``ratio``.
    """
    began, found = time.monotonic(), list[Sample]()
    async with AsyncExitStack() as exits:
        targets = []
        for name in (subject, LIMIT):
            service = SERVICES[name]
            path = service.path.format(tool=tool)
            target, _ = await exits.enter_async_context(stage.started(name, service.command, service.environment, path))
            await ask(target.ports, question(path), connections=32, seconds=_SECONDS)
            targets.append((target, Measurement(f"pair-{tool}", question(path), CALLS[tool], 32, seconds=_SECONDS)))
        while sum(not each.marks for each in found) < pairs and time.monotonic() - began < deadline:
            mine, limit = [await stage.measured(target, what, attempts=1) for target, what in targets]
            found.append(_pair(subject, tool, mine, limit))
    return found


def _pair(subject: str, tool: str, mine: Sample, limit: Sample) -> Sample:
    values = {
        "ratio": mine.values["cpu_ms"] / limit.values["cpu_ms"],
        "cpu_ms": mine.values["cpu_ms"],
        "limit_cpu_ms": limit.values["cpu_ms"],
        "faults": mine.values["faults"] + limit.values["faults"],
    }
    return Sample(subject, f"pairs-{tool}", values, (*mine.marks, *limit.marks))
