"""Replicas, users in sessions, and a random schedule of faults; afterwards every acknowledged turn is looked for."""

import asyncio
import itertools
import signal
import statistics
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from lab.fault import fault, held
from lab.history import Session, remembering
from lab.proxy import Proxy
from lab.service import Service
from lab.stage import Stage
from lab.upstream import Call, frozen, playing, speaking
from lab.waiting import until
from tests.players.openai_player import Answer
from tests.players.redis_server import RedisServer

_REPLICAS = 3
_USERS = 10
_TURNS = 12
_STREAM = {"Accept": "text/event-stream"}
_SETTINGS = {
    "MEMORY_MAX_MESSAGES": "1000", "MEMORY_MAX_TOKENS": "1000000", "SHUTDOWN_TIMEOUT": "5", "MODEL_TIMEOUT": "3",
    "MODEL_IDLE_TIMEOUT": "2", "REQUEST_TIMEOUT": "15", "SESSION_WAIT": "2",
}  # fmt: skip
_DOCUMENTED = {"session-busy", "overloaded", "draining", "store-unavailable", "upstream-unavailable",
               "upstream-invalid", "upstream-timeout", "deadline", "provider-rate-limited"}  # fmt: skip


@dataclass
class _Run:
    """What came of one schedule."""

    events: Counter[str] = field(default_factory=Counter)
    sessions: list[Session] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        return sum(turn.acknowledged for session in self.sessions for turn in session.turns)

    @property
    def said(self) -> str:
        events = ", ".join(f"{count} × {name}" for name, count in sorted(self.events.items()))
        return f"{self.acknowledged} acknowledged turns in {len(self.sessions)} sessions; {events}"


class _Chaos:
    def __init__(self, stage: Stage, redis: RedisServer, proxies: list[Proxy], replicas: list[Service]) -> None:
        self._stage = stage
        self._redis = redis
        self._proxies = proxies
        self._replicas = replicas
        self._end = time.monotonic() + stage.minutes * 60
        self._up = [True] * len(replicas)
        self.run = _Run()

    async def whole(self) -> _Run:
        """Let users ask and faults happen until the time is over, then look at all that was kept."""
        draw = self._stage.random()
        users = [self._user(number, Random(draw.random())) for number in range(_USERS)]
        await asyncio.gather(self._schedule(draw), self._weigh(), *users)
        await until(self._is_well, 60)
        for session in self.run.sessions:
            reply = await self._replicas[0].ask(f"/chat/{session.identifier}")
            kept = reply.json()["messages"] if reply.status == 200 else []
            self.run.faults += session.faults(kept)
        for each in self._replicas:
            self.run.complaints += each.complaints()
        return self.run

    async def _is_well(self) -> bool:
        for each in self._replicas:
            if (await each.ask("/chat?userInput=hi")).status != 200:
                return False
        return True

    async def _weigh(self) -> None:
        while time.monotonic() < self._end:
            self.run.memory.append(self._replicas[0].mib())
            await asyncio.sleep(0.5)

    async def _user(self, number: int, draw: Random) -> None:
        for round_ in itertools.count():
            session = Session(f"chaos-{number}-{round_}-{self._stage.seed}")
            self.run.sessions.append(session)
            for turn in range(_TURNS):
                if time.monotonic() > self._end:
                    return
                await self._ask(session, f"turn-{number}-{round_}-{turn}", draw)

    async def _ask(self, session: Session, text: str, draw: Random) -> None:
        sent = time.monotonic()
        answer, outcome = None, "not connected"
        there = [each for each, up in zip(self._replicas, self._up, strict=True) if up]
        with suppress(OSError, TimeoutError):
            answer, outcome = await _answer(draw.choice(there), session.identifier, text, streams=draw.random() < 0.5)
        self.run.outcomes[outcome] += 1
        session.add(text, sent, answer)
        await asyncio.sleep(draw.random() * (0.05 if answer else 0.3))

    async def _schedule(self, draw: Random) -> None:
        events = (self._kill, self._term, self._stop, self._stall, self._partition, self._cut, self._restart_redis,
                  self._cut_upstream, self._freeze_upstream, self._break_upstream)  # fmt: skip
        while time.monotonic() < self._end:
            await asyncio.sleep(draw.uniform(0.3, 1.5))
            event = draw.choice(events)
            self.run.events[event.__name__.strip("_").replace("_", " ")] += 1
            await event(draw)

    async def _down(self, draw: Random, number: int) -> None:
        """One replica but the first, whose memory is weighed, ends by a signal and is started again."""
        at = draw.randrange(1, len(self._replicas))
        self._up[at] = False
        self._replicas[at].signal(number)
        await self._replicas[at].ended()
        self.run.complaints += self._replicas[at].complaints()
        await self._replicas[at].start()
        self._up[at] = True

    async def _kill(self, draw: Random) -> None:
        await self._down(draw, signal.SIGKILL)

    async def _term(self, draw: Random) -> None:
        await self._down(draw, signal.SIGTERM)

    async def _stop(self, draw: Random) -> None:
        victim = draw.choice(self._replicas)
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(draw.uniform(0.5, 4))
        victim.signal(signal.SIGCONT)

    async def _stall(self, draw: Random) -> None:
        self._redis.freeze()
        await asyncio.sleep(draw.uniform(0.2, 3))
        self._redis.thaw()

    async def _partition(self, draw: Random) -> None:
        proxy = draw.choice(self._proxies)
        proxy.mode = "stall"
        await asyncio.sleep(draw.uniform(0.2, 3))
        proxy.mode = "pass"

    async def _cut(self, draw: Random) -> None:
        draw.choice(self._proxies).cut()

    async def _restart_redis(self, draw: Random) -> None:
        await self._redis.kill()
        await asyncio.sleep(draw.uniform(0, 1))
        await self._redis.start()

    async def _cut_upstream(self, draw: Random) -> None:
        await self._upstream_is(
            playing(Answer([b"data: {"], 200, {"Content-Type": "text/event-stream"}, "reset")), draw
        )

    async def _freeze_upstream(self, draw: Random) -> None:
        await self._upstream_is(frozen, draw)

    async def _break_upstream(self, draw: Random) -> None:
        await self._upstream_is(playing(Answer([b"<html>"], 503)), draw)

    async def _upstream_is(self, behaviour: object, draw: Random) -> None:
        usual, chance = self._stage.upstream.behave, Random(draw.random())

        async def half(call: Call) -> None:
            await (behaviour if chance.random() < 0.5 else usual)(call)  # type: ignore[operator]

        self._stage.upstream.behave = half
        await asyncio.sleep(draw.uniform(0.2, 2))
        self._stage.upstream.behave = usual


async def _answer(service: Service, session: str, text: str, *, streams: bool) -> tuple[str | None, str]:
    """A user's result: the answer if it was complete, and the outcome."""
    reply = await service.ask(f"/chat?userInput={text}", session=session, headers=_STREAM if streams else {})
    if not reply.whole:
        return None, "cut off"
    if reply.status != 200:
        return None, reply.code or f"status {reply.status}"
    if not streams:
        return reply.text, "ok"
    if reply.last == "done":
        return str(reply.events[-1][1]["answer"]), "ok"
    return None, reply.events[-1][1].get("code", "?") if reply.last == "error" else "no end"


async def _ran(stage: Stage) -> _Run:
    """The run that all rows look at; the first of them makes it."""
    if "run" not in stage.kept:
        folder = stage.folder / "redis"
        folder.mkdir()
        durable = ("--appendonly", "yes", "--appendfsync", "always", "--dir", str(folder))
        redis = await stage.redis(*durable)
        proxies = [await stage.row.enter_async_context(Proxy(redis.port)) for _ in range(_REPLICAS)]
        urls = [f"redis://127.0.0.1:{each.port}/0" for each in proxies]
        replicas = await asyncio.gather(*(stage.own(REDIS_URL=url, **_SETTINGS) for url in urls))
        stage.upstream.behave = speaking(remembering, pieces=3, pause=0.01)
        stage.kept["run"] = await _Chaos(stage, redis, proxies, list(replicas)).whole()
    run = stage.kept["run"]
    if not isinstance(run, _Run):
        raise TypeError(type(run))
    return run


@fault(users="acknowledged turns are kept", figure="acknowledged turns lost", at_most=0, fast=True, loud=True,
       limit=300, lasts=True)  # fmt: skip
async def chaos_loses_nothing(stage: Stage) -> float:
    """Three replicas and Redis under kills, stops, stalls, partitions, restarts and a failing provider."""
    run = await _ran(stage)
    stage.note = run.said
    held(run.acknowledged > 10 * stage.minutes, f"only {run.acknowledged} turns were acknowledged")
    return sum(each.startswith("lost") for each in run.faults)


@fault(users="conversations read as they were held", figure="turns invented, doubled, out of order or that read others",
       at_most=0, fast=True, loud=True, limit=300, lasts=True)  # fmt: skip
async def chaos_keeps_the_order(stage: Stage) -> float:
    """The same run: the history of each session is checked as a register that each turn reads and extends."""
    run = await _ran(stage)
    wrong = [each for each in run.faults if not each.startswith("lost")]
    stage.note = f"{len(run.sessions)} histories" if not wrong else "; ".join(wrong[:3])
    return len(wrong)


@fault(users="every failure is a documented one", figure="answers that are not", at_most=0, fast=True, loud=True,
       limit=300, lasts=True)  # fmt: skip
async def chaos_tells_what_failed(stage: Stage) -> float:
    """The same run: what users were answered."""
    run = await _ran(stage)
    known = _DOCUMENTED | {"ok", "cut off", "not connected"}
    stage.note = ", ".join(f"{count} {name}" for name, count in run.outcomes.most_common())
    return sum(count for name, count in run.outcomes.items() if name not in known)


@fault(users="nothing", figure="errors and tracebacks in three logs", at_most=0, fast=True, loud=True, limit=300,
       lasts=True)  # fmt: skip
async def chaos_breaks_nothing_inside(stage: Stage) -> float:
    """The same run: what the logs of the replicas say."""
    run = await _ran(stage)
    stage.note = run.complaints[0][:200] if run.complaints else ""
    return len(run.complaints)


@fault(users="most are answered", figure="% of questions acknowledged", at_least=30, fast=True, loud=True, limit=300,
       lasts=True)  # fmt: skip
async def chaos_leaves_the_service_up(stage: Stage) -> float:
    """The same run: how many questions were answered while all of this happened."""
    run = await _ran(stage)
    return 100 * run.outcomes["ok"] / max(1, run.outcomes.total())


@fault(users="nothing", figure="% more memory in the last quarter than in the second", at_most=5, loud=True, limit=300,
       lasts=True)  # fmt: skip
async def chaos_leaves_no_memory_behind(stage: Stage) -> float:
    """The same run: the memory of the replica that was stopped and cut off, but never killed."""
    memory = (await _ran(stage)).memory
    quarter = len(memory) // 4
    held(quarter > 5, "too short a run to say")
    second, last = memory[quarter : 2 * quarter], memory[3 * quarter :]
    return 100 * (statistics.median(last) / statistics.median(second) - 1)
