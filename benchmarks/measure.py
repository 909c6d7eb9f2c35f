"""A visit to a service: its start, its first questions, then one at a time and 32 at once, a burst, streams."""

from dataclasses import dataclass

from benchmarks.catalogue import CALLS, Service
from benchmarks.load import ask, question
from benchmarks.pairs import STREAM_PACE, measure_beside, warm_up
from benchmarks.stage import Measurement, Stage, Target
from benchmarks.wire import calling

__all__ = ["FIRST_TEXTS", "Plan", "own_milliseconds", "visit"]


_FIRST_PACE = (0.05, 0.02)
_PIECES_OF_A_CALL = len(calling("openai", "").pieces) - 1
FIRST_TEXTS = {f"first-{calls}-{streams}": (calls, streams) for calls in (1, 2) for streams in (1, 32)}
"""Phases that measure the time to the first word of a stream: the calls of the model up to it, and how many streams."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int = 5
    peer_rounds: int = 2
    """Rounds in which agent frameworks and Spring AI take part: they need most of the time."""
    seconds: float = 1200
    """No round begins that would probably end later than this."""
    busy_seconds: float = 1.5
    """Length of a measurement with 32 connections."""
    single_seconds: float = 0.7
    """Length of a measurement with one connection, and of the warming up."""
    cold: int = 1000
    """Questions that are measured right after the start."""
    warm_up: int = 60_000
    """Questions that a JVM is asked before it counts as warm."""
    burst: int = 1000
    burst_pace: tuple[float, float] = (0.5, 0.0)
    streams: int = 500
    stream_pace: tuple[float, float] = STREAM_PACE
    first_texts: int = 12
    """Streams that measure the time to their first word, and eight times as many with 32 at once."""
    settles: bool = True
    """Whether to wait for what memory is left at the end."""
    pairs: int = 9
    """Pairs that each comparison by turns takes."""
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
            await _cold(stage, target, first, plan)
            if service.kind == "spring":
                await warm_up(target, question(first), plan.warm_up)
            await _questions(stage, service, target, plan)
            if service.kind == "spring" and plan.pairs:
                await measure_beside(stage, target, service.name, plan.pairs)
            for crowd in (*_crowds(first, plan), *_first_texts(service, plan)):
                await stage.measured(target, crowd, plan.attempts)
            if plan.settles:
                await stage.settled(target)
            return


async def _cold(stage: Stage, target: Target, path: str, plan: Plan) -> None:
    """The first questions; they cannot be asked again."""
    if plan.cold:
        await stage.measured(target, Measurement("cold", question(path), 2, 32, questions=plan.cold), attempts=1)


async def _questions(stage: Stage, service: Service, target: Target, plan: Plan) -> None:
    for tool in service.asked:
        make = question(service.path.format(tool=tool))
        await ask(target.ports, make, connections=32, seconds=plan.single_seconds)
        for connections, seconds in ((32, plan.busy_seconds), (1, plan.single_seconds)):
            what = Measurement(f"{tool}-{connections}", make, CALLS[tool], connections, seconds=seconds)
            await stage.measured(target, what, plan.attempts)


def _crowds(path: str, plan: Plan) -> list[Measurement]:
    plain, events = question(path), question(path, "text/event-stream")
    crowds = [
        Measurement("burst", plain, 2, plan.burst, questions=plan.burst, pace=plan.burst_pace),
        Measurement("streams", events, 2, plan.streams, questions=plan.streams, pace=plan.stream_pace),
    ]
    return [each for each in crowds if each.questions]


def own_milliseconds(calls: int) -> float:
    """What the fake model itself takes to the first word of a stream, after so many calls."""
    first, piece = _FIRST_PACE
    return 1000 * (first * calls + piece * _PIECES_OF_A_CALL * (calls - 1))


def _first_texts(service: Service, plan: Plan) -> list[Measurement]:
    """Streams of one client and of 32, without a tool and with one; agent frameworks are asked only with one."""
    found = []
    for phase, (calls, streams) in FIRST_TEXTS.items():
        path = service.path.format(tool="time") if calls == 2 else "/time/chat"
        if plan.first_texts and (calls == 2 or service.kind in ("toolchat", "limit")):
            make = question(path, "text/event-stream")
            questions = plan.first_texts * min(streams, 8)
            found.append(Measurement(phase, make, calls, streams, questions=questions, pace=_FIRST_PACE))
    return found
