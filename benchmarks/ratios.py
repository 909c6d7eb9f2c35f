"""What something costs beside the same without it, by turns: TLS, keys, sessions, history, tools, traces, streams."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

from benchmarks.catalogue import CALLS, LIMIT, SERVICES, Service
from benchmarks.growth import grown
from benchmarks.load import ask, question
from benchmarks.measure import Plan
from benchmarks.pairs import PAIR_SECONDS, STREAM_PACE, by_turns, measure_beside, measure_pairs, warm, warm_up
from benchmarks.stage import BenchError, Measurement, Stage
from benchmarks.variants import MEMORY, PLAIN, Variant, file_store, guarded, plain, redis_store, session, traced
from benchmarks.wires import completion

__all__ = ["FILE", "GUARDED", "GUARDED_FILE", "PAIRS", "REDIS", "SESSIONS", "measure_ratios"]

GUARDED = "toolchat (keys, quotas)"
GUARDED_FILE = "toolchat (keys, quotas, file)"
SESSIONS = "toolchat (sessions)"
FILE = "toolchat (sessions, file)"
REDIS = "toolchat (sessions, Redis)"
_PAIRED = ("toolchat", "toolchat-dashscope")
PAIRS: Sequence[tuple[str, str, str]] = (
    ("toolchat", "pairs-time", "time: toolchat ÷ limit"),
    ("toolchat (TLS)", "pairs-time", "time, TLS: toolchat ÷ limit"),
    ("toolchat", "pairs-weather", "weather: toolchat ÷ limit"),
    ("toolchat-dashscope", "pairs-time", "time: toolchat, DashScope ÷ limit"),
    ("toolchat-dashscope (TLS)", "pairs-time", "time, TLS: toolchat, DashScope ÷ limit"),
    ("toolchat-dashscope", "pairs-weather", "weather: toolchat, DashScope ÷ limit"),
    *(
        (f"toolchat{tls}", f"pairs-{name}-{count}", f"time{wire}, {connections}: toolchat ÷ {SERVICES[name].title}")
        for name in ("spring", "spring-virtual")
        for tls, wire in (("", ""), (" (TLS)", ", TLS"))
        for count, connections in ((32, "32 connections"), (1, "1 connection"))
    ),
    (GUARDED, "pairs-guarded", "time: toolchat with keys and quotas ÷ without"),
    (GUARDED_FILE, "pairs-guarded", "time: toolchat with keys and quotas in a file ÷ without"),
    (SESSIONS, "pairs-session", "a session's question, in memory ÷ one without a session"),
    (FILE, "pairs-session", "a session's question, in a file ÷ one without a session"),
    (REDIS, "pairs-session", "a session's question, in Redis ÷ one without a session"),
    (SESSIONS, "pairs-session-20", "the same after 20 turns, in memory"),
    (FILE, "pairs-session-20", "the same after 20 turns, in a file"),
    (REDIS, "pairs-session-20", "the same after 20 turns, in Redis"),
    ("toolchat", "pairs-history", "a session's question after 100 turns ÷ after one, in memory"),
    ("toolchat", "pairs-tools", "500 tools offered, all sent ÷ 10"),
    ("toolchat", "pairs-traced", "traces, 10 % sampled ÷ without"),
    ("toolchat", "pairs-completions", "POST /v1/chat/completions ÷ GET"),
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
    for title, part in _parts(stage, names, plan):
        try:
            await part()
        except BenchError as error:
            missing.append(f"{title}: {error}")
    return missing


def _parts(stage: Stage, names: Sequence[str], plan: Plan) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    parts: list[tuple[str, Callable[[], Awaitable[object]]]] = []
    for name in _PAIRED if LIMIT in names else ():
        for tool, tls in (("time", False), ("weather", False), ("time", True)):
            part = partial(measure_pairs, stage, name, tool, plan.pairs, 4 * plan.pairs, tls=tls)
            parts += [(f"{name}, {tool}", part)] if name in names else []
    if "toolchat" not in names:
        return parts
    memory, file = MEMORY, file_store(stage)
    named: dict[str, Callable[[Stage, int], Awaitable[None]]] = {
        "keys": partial(_guarded, name=GUARDED, more=memory),
        "keys in a file": partial(_guarded, name=GUARDED_FILE, more=file),
        "sessions": partial(_sessions, name=SESSIONS, more=memory),
        "sessions in a file": partial(_sessions, name=FILE, more=file),
        "sessions in Redis": _redis,
        "history": _history,
        "tools": _tools,
        "traces": _traced,
        "chat completions": _completions,
    }
    parts += [(title, partial(part, stage, plan.pairs)) for title, part in named.items()]
    parts += [("streams", partial(_streams, stage, plan.pairs))] if LIMIT in names else []
    springs = [SERVICES[name] for name in names if plan.is_secure and SERVICES[name].kind == "spring"]
    return parts + [(f"{each.name}, TLS", partial(_spring, stage, each, plan)) for each in springs]


async def _guarded(stage: Stage, pairs: int, name: str, more: Mapping[str, str]) -> None:
    await _compared(stage, "pairs-guarded", (guarded(name, stage, more), plain()), pairs)


async def _sessions(stage: Stage, pairs: int, name: str, more: Mapping[str, str]) -> None:
    await _compared(stage, "pairs-session", (session(name, more), plain()), pairs)
    await _compared(stage, "pairs-session-20", (session(name, more, turns=20), plain()), pairs)


async def _redis(stage: Stage, pairs: int) -> None:
    with redis_store(stage) as more:
        await _sessions(stage, pairs, REDIS, more)


async def _history(stage: Stage, pairs: int) -> None:
    sides = [session("toolchat", MEMORY, turns=turns) for turns in (100, 1)]
    await _compared(stage, "pairs-history", sides, pairs)


async def _tools(stage: Stage, pairs: int) -> None:
    more = grown(stage)
    paths = [f"/tools{count}/chat-tool-function" for count in (500, 10)]
    await _compared(stage, "pairs-tools", [Variant("toolchat", question(path), more) for path in paths], pairs)


async def _traced(stage: Stage, pairs: int) -> None:
    await _compared(stage, "pairs-traced", (traced("toolchat", stage, 0.1), plain()), pairs)


async def _completions(stage: Stage, pairs: int) -> None:
    asked = Variant("toolchat", completion("toolchat-time"), {})
    await _compared(stage, "pairs-completions", (asked, plain()), pairs)


async def _spring(stage: Stage, service: Service, plan: Plan) -> None:
    started = stage.started(service.name, service.command, service.environment, PLAIN, tls=True)
    async with started as (target, _):
        await warm_up(target, question(PLAIN), plan.warm_up)
        await measure_beside(stage, target, service.name, plan.pairs, tls=True)


async def _streams(stage: Stage, pairs: int) -> None:
    asked = question(PLAIN, "text/event-stream")
    sides = [Variant(name, asked, {}, SERVICES[name], questions=500, pace=STREAM_PACE) for name in ("toolchat", LIMIT)]
    await _compared(stage, "pairs-streams", sides, pairs)


async def _compared(stage: Stage, phase: str, variants: Sequence[Variant], pairs: int) -> None:
    async with AsyncExitStack() as exits:
        sides = []
        for each in variants:
            start = stage.started(each.name, each.service.command, each.environment, each.first)
            target, _ = await exits.enter_async_context(start)
            seconds = 0 if each.questions else PAIR_SECONDS
            what = Measurement(
                phase.replace("pairs", "pair"),
                each.make,
                CALLS["time"],
                each.questions or 32,
                seconds=seconds,
                questions=each.questions,
                pace=each.pace,
            )
            await ask(target.ports, each.make, connections=32, questions=40 * each.turns or 1)
            sides.append(await warm(target, what))
        await by_turns(stage, phase, sides, pairs, (10 if sides[0][1].questions else 4) * pairs)
