"""A visit to a service: its start, questions one at a time and 32 at once, a burst, streams."""

from dataclasses import dataclass

from bench.catalogue import Service
from bench.load import ask, question
from bench.stage import Measurement, Stage, Target

__all__ = ["BURST_PACE", "CALLS", "STREAM_PACE", "Plan", "visit"]

CALLS = {"time": 2, "weather": 3}
"""Upstream calls that one question needs."""

BURST_PACE = (0.5, 0.0)
STREAM_PACE = (0.2, 0.05)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int = 5
    seconds: float = 1200
    """No round begins that would probably end later than this."""
    busy_seconds: float = 1.5
    """Length of a measurement with 32 connections."""
    single_seconds: float = 0.7
    """Length of a measurement with one connection, and of the warming up."""
    burst: int = 1000
    streams: int = 500
    pairs: int = 9
    """Pairs of toolchat and the limit, measured by turns, for each provider and tool."""
    wires: int = 7
    """Rounds of what other people's wires cost."""
    attempts: int = 3
    """Most measurements of one thing in one round, while they are marked."""


async def visit(stage: Stage, service: Service, plan: Plan) -> None:
    """Start a service, measure everything once, and stop it; samples go to the stage.

    Raises:
        BenchError: it cannot be measured.
    """
    first = service.path.format(tool="time")
    for attempt in range(plan.attempts):
        async with stage.started(service.name, service.command, service.environment, first) as (target, start):
            if start.marks and attempt < plan.attempts - 1:
                continue
            await _questions(stage, service, target, plan)
            for crowd in _crowds(first, plan):
                await stage.measured(target, crowd, plan.attempts)
            return


async def _questions(stage: Stage, service: Service, target: Target, plan: Plan) -> None:
    for tool, calls in CALLS.items():
        make = question(service.path.format(tool=tool))
        await ask(target.ports, make, connections=32, seconds=plan.single_seconds)
        for connections, seconds in ((32, plan.busy_seconds), (1, plan.single_seconds)):
            what = Measurement(f"{tool}-{connections}", make, calls, connections, seconds=seconds)
            await stage.measured(target, what, plan.attempts)


def _crowds(path: str, plan: Plan) -> list[Measurement]:
    plain, events = question(path), question(path, "text/event-stream")
    crowds = [
        Measurement("burst", plain, 2, plan.burst, questions=plan.burst, pace=BURST_PACE),
        Measurement("streams", events, 2, plan.streams, questions=plan.streams, pace=STREAM_PACE),
    ]
    return [each for each in crowds if each.questions]
