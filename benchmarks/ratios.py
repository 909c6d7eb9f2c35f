"""What something costs beside the same without it, by turns: keys, sessions, history, tools, traces, streams."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

from benchmarks.catalogue import CALLS, LIMIT, SERVICES
from benchmarks.growth import grown
from benchmarks.load import ask, question
from benchmarks.measure import Plan
from benchmarks.pairs import PAIR_SECONDS, STREAM_PACE, by_turns, measure_pairs, warm
from benchmarks.stage import BenchError, Measurement, Stage
from benchmarks.variants import MEMORY, PLAIN, Variant, file_store, guarded, plain, redis_store, session, traced

__all__ = ["PAIRS", "measure_ratios"]


_SESSIONS = "toolchat (sessions)"
_FILE = "toolchat (sessions, file)"
_REDIS = "toolchat (sessions, Redis)"
PAIRS: Sequence[tuple[str, str, str]] = (
    ("toolchat", "pairs-time", "time: toolchat ÷ limit"),
    ("toolchat", "pairs-weather", "weather: toolchat ÷ limit"),
    ("toolchat-dashscope", "pairs-time", "time: toolchat, DashScope ÷ limit"),
    ("toolchat-dashscope", "pairs-weather", "weather: toolchat, DashScope ÷ limit"),
    *(
        ("toolchat", f"pairs-{name}-{count}", f"time, {connections}: toolchat ÷ {SERVICES[name].title}")
        for name in ("spring", "spring-virtual")
        for count, connections in ((32, "32 connections"), (1, "1 connection"))
    ),
    ("toolchat", "pairs-guarded", "time: toolchat with keys and quotas ÷ without"),
    (_SESSIONS, "pairs-session", "a question after 20 turns of a session, in memory ÷ one without a session"),
    (_FILE, "pairs-session", "the same in a file"),
    (_REDIS, "pairs-session", "the same in Redis"),
    ("toolchat", "pairs-history", "a session's question after 100 turns ÷ after one, in memory"),
    ("toolchat", "pairs-tools", "500 tools offered, all sent ÷ 10"),
    ("toolchat", "pairs-traced", "traces, 10 % sampled ÷ without"),
    ("toolchat", "pairs-streams", "500 streams of 40 pieces at once: toolchat ÷ limit"),
)
"""Subject, phase and title of each comparison, in the order of the table."""


async def measure_ratios(stage: Stage, names: Sequence[str], plan: Plan) -> list[str]:
    """Measure every comparison of which both sides are to be measured; samples go to the stage.

    Args:
        stage: where the services run.
        names: the services of this run.
        plan: how much.

    Returns:
        A line for each comparison that could not be measured.
    """
    missing = []
    for title, part in _parts(stage, names, plan).items():
        try:
            await part()
        except BenchError as error:
            missing.append(f"{title}: {error}")
    return missing


def _parts(stage: Stage, names: Sequence[str], plan: Plan) -> dict[str, Callable[[], Awaitable[object]]]:
    parts: dict[str, Callable[[], Awaitable[object]]] = {}
    for name in ("toolchat", "toolchat-dashscope"):
        for tool in ("time", "weather"):
            if {name, LIMIT} <= set(names):
                parts[f"{name}, {tool}"] = partial(measure_pairs, stage, name, tool, plan.pairs, 4 * plan.pairs)
    if "toolchat" not in names:
        return parts
    paths = [f"/tools{count}/chat-tool-function" for count in (500, 10)]
    streams = question(PLAIN, "text/event-stream")
    compared: dict[str, Sequence[Variant]] = {
        "guarded": (guarded("toolchat", stage, MEMORY), plain()),
        "session": (session(_SESSIONS, MEMORY, turns=20), plain()),
        "session in a file": (session(_FILE, file_store(stage), turns=20), plain()),
        "history": [session("toolchat", MEMORY, turns=turns) for turns in (100, 1)],
        "tools": [Variant("toolchat", question(path), grown(stage)) for path in paths],
        "traced": (traced("toolchat", stage, 0.1), plain()),
    }
    if LIMIT in names:
        compared["streams"] = [
            Variant(name, streams, {}, SERVICES[name], questions=500, pace=STREAM_PACE) for name in ("toolchat", LIMIT)
        ]
    for title, sides in compared.items():
        parts[title] = partial(_compared, stage, f"pairs-{title.split()[0]}", sides, plan.pairs)
    return parts | {"session in Redis": partial(_redis, stage, plan.pairs)}


async def _redis(stage: Stage, pairs: int) -> None:
    with redis_store(stage) as more:
        await _compared(stage, "pairs-session", (session(_REDIS, more, turns=20), plain()), pairs)


async def _compared(stage: Stage, phase: str, variants: Sequence[Variant], pairs: int) -> None:
    async with AsyncExitStack() as exits:
        sides = []
        for each in variants:
            start = stage.started(each.name, each.service.command, each.environment, each.first)
            target, _ = await exits.enter_async_context(start)
            what = Measurement(
                phase.replace("pairs", "pair"),
                each.make,
                CALLS["time"],
                each.questions or 32,
                seconds=0 if each.questions else PAIR_SECONDS,
                questions=each.questions,
                pace=each.pace,
            )
            await ask(target.ports, each.make, connections=32, questions=40 * each.turns or 1)
            sides.append(await warm(target, what))
        await by_turns(stage, phase, sides, pairs, (10 if sides[0][1].questions else 4) * pairs)
