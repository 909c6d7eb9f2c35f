"""What something costs beside the same without it, by turns: TLS, keys, sessions, history, tools, traces, streams."""

import hashlib
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from bench.catalogue import CALLS, LIMIT, SERVICES, Service
from bench.growth import grown
from bench.load import Question, ask, question
from bench.measure import Plan
from bench.pairs import PAIR_SECONDS, STREAM_PACE, by_turns, measure_beside, measure_pairs, warm, warm_up
from bench.processes import free_port
from bench.stage import BenchError, Measurement, Stage
from bench.wires import completion

__all__ = ["FILE", "GUARDED", "GUARDED_FILE", "PAIRS", "REDIS", "SESSIONS", "measure_ratios"]

GUARDED = "toolchat (keys, quotas)"
GUARDED_FILE = "toolchat (keys, quotas, file)"
SESSIONS = "toolchat (sessions)"
FILE = "toolchat (sessions, file)"
REDIS = "toolchat (sessions, Redis)"
_PAIRED = ("toolchat", "toolchat-dashscope")
_PLAIN = "/time/chat-tool-function"
_CHAT = "/chat?tools=getCityTimeFunction"
_KEY = "bench-key"
_KEYS = """[[keys]]
name = "bench"
sha256 = "%s"
requests_per_minute = 10_000_000
concurrent = 2_000
tokens_per_day = 1_000_000_000_000
"""

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


@dataclass(frozen=True, slots=True)
class _Variant:
    """A service that is set up otherwise than by default, or asked otherwise."""

    name: str
    make: Question
    more: Mapping[str, str]
    service: Service = SERVICES["toolchat"]
    first: str = _PLAIN
    questions: int = 0
    pace: tuple[float, float] = (0, 0)
    turns: int = 0
    """What each session must have before anything is measured."""

    def environment(self, port: int, upstream: str) -> Mapping[str, str]:
        return {**self.service.environment(port, upstream), **self.more}


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
    memory, file = ({"STATE_URL": url} for url in ("memory://", f"sqlite:///{stage.folder.resolve() / 'state.db'}"))
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
    """With a key that has quotas, and quotas of all together; figures for /metrics are always kept."""
    keys = stage.folder / "keys.toml"
    keys.write_text(_KEYS % hashlib.sha256(_KEY.encode()).hexdigest())
    settings = {"API_KEYS_FILE": str(keys), "REQUESTS_PER_MINUTE": "10000000", "TOKENS_PER_DAY": "1000000000000"}
    settings |= {"ALLOW_ANONYMOUS": "true"}  # the first question, which tells that it has started, brings no key
    asked = question(_PLAIN, "text/plain", "query", f"Authorization: Bearer {_KEY}")
    await _compared(stage, "pairs-guarded", (_Variant(name, asked, {**settings, **more}), _plain()), pairs)


async def _sessions(stage: Stage, pairs: int, name: str, more: Mapping[str, str]) -> None:
    await _compared(stage, "pairs-session", (_session(name, more), _plain()), pairs)
    await _compared(stage, "pairs-session-20", (_session(name, more, turns=20), _plain()), pairs)


async def _redis(stage: Stage, pairs: int) -> None:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if not program:
        raise BenchError("redis-server is not there")
    port = free_port()
    with stage.helped([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]):
        await _sessions(stage, pairs, REDIS, {"REDIS_URL": f"redis://127.0.0.1:{port}/0"})


async def _history(stage: Stage, pairs: int) -> None:
    sides = [_session("toolchat", {"STATE_URL": "memory://"}, turns=turns) for turns in (100, 1)]
    await _compared(stage, "pairs-history", sides, pairs)


async def _tools(stage: Stage, pairs: int) -> None:
    more = grown(stage)
    paths = [f"/tools{count}/chat-tool-function" for count in (500, 10)]
    await _compared(stage, "pairs-tools", [_Variant("toolchat", question(path), more) for path in paths], pairs)


async def _traced(stage: Stage, pairs: int) -> None:
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": stage.upstream, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}
    settings |= {"OTEL_TRACES_SAMPLER_ARG": "0.1"}
    await _compared(stage, "pairs-traced", (_Variant("toolchat", question(_PLAIN), settings), _plain()), pairs)


async def _completions(stage: Stage, pairs: int) -> None:
    asked = _Variant("toolchat", completion("toolchat-time"), {})
    await _compared(stage, "pairs-completions", (asked, _plain()), pairs)


async def _spring(stage: Stage, service: Service, plan: Plan) -> None:
    started = stage.started(service.name, service.command, service.environment, _PLAIN, tls=True)
    async with started as (target, _):
        await warm_up(target, question(_PLAIN), plan.warm_up)
        await measure_beside(stage, target, service.name, plan.pairs, tls=True)


async def _streams(stage: Stage, pairs: int) -> None:
    asked = question(_PLAIN, "text/event-stream")
    sides = [_Variant(name, asked, {}, SERVICES[name], questions=500, pace=STREAM_PACE) for name in ("toolchat", LIMIT)]
    await _compared(stage, "pairs-streams", sides, pairs)


def _session(name: str, more: Mapping[str, str], turns: int = 0) -> _Variant:
    """Each question opens a session of its own, or is asked in one that keeps so many turns and has them."""

    def make(number: int, slot: int) -> bytes:
        return question(f"{_CHAT}&sessionId=bench{slot if turns else number}", parameter="userInput")(number, slot)

    kept = {"MEMORY_MAX_MESSAGES": str(2 * turns), "MEMORY_MAX_TOKENS": "1000000"} if turns else {}
    return _Variant(name, make, {**more, **kept}, turns=turns)


def _plain() -> _Variant:
    """The time route: ``/chat`` opens a session also where none is named."""
    return _Variant("toolchat", question(_PLAIN), {})


async def _compared(stage: Stage, phase: str, variants: Sequence[_Variant], pairs: int) -> None:
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
