"""Replicas, clients and a random schedule of faults; afterwards everything that was acknowledged is looked for."""

import asyncio
import re
import signal
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from pathlib import Path
from random import Random
from typing import Literal

import psutil

from tests.faults.fault import fault, held
from tests.faults.proxy import Proxy
from tests.faults.service import Service
from tests.faults.stage import Stage, installed
from tests.faults.upstream import Call, frozen, playing
from tests.faults.waiting import until
from tests.faults.workload import Ledger, Workload, answer, write_tool
from tests.players.openai_player import Answer
from tests.players.postgresql_server import PostgresqlServer
from tests.players.redis_server import RedisServer
from tests.programs import POSTGRES

_REPLICAS = 3
_SETTINGS = {
    "MEMORY_MAX_MESSAGES": "1000", "MEMORY_MAX_TOKENS": "1000000", "SHUTDOWN_TIMEOUT": "5", "MODEL_TIMEOUT": "2",
    "REQUEST_TIMEOUT": "15", "SESSION_WAIT": "2", "EXAMPLES_ENABLED": "true",
}  # fmt: skip
_DOCUMENTED = {"session-busy", "overloaded", "draining", "store-unavailable", "upstream-unavailable",
               "upstream-invalid", "upstream-timeout", "deadline", "provider-rate-limited"}  # fmt: skip
_OF_KILLS = re.compile("was sent SIGKILL|workers fail repeatedly")
"""What the parent of the workers rightly reports when they are killed."""
_Kind = Literal["always", "everysec", "file", "postgresql"]
"""The store: Redis with a setting of ``appendfsync``, a SQLite file, or PostgreSQL."""
_SHARE: dict[_Kind, float] = {"always": 0.4, "everysec": 0.2, "file": 0.2, "postgresql": 0.2}
"""Of the time."""


@dataclass
class _Store:
    """Where the replicas keep their state."""

    urls: list[str]
    server: RedisServer | PostgresqlServer | None = None
    """``None`` if it is a file, which neither stalls nor ends."""
    proxies: list[Proxy] = field(default_factory=list)


@dataclass
class _Run:
    """What came of one schedule."""

    ledger: Ledger
    events: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    @property
    def said(self) -> str:
        events = ", ".join(f"{count} × {name}" for name, count in sorted(self.events.items()))
        return f"{self.ledger}; {events}"


class _Chaos:
    def __init__(
        self,
        stage: Stage,
        store: _Store,
        replicas: list[Service],
        runs: Path,
        minutes: float,
    ) -> None:
        self._stage = stage
        self._server, self._proxies = store.server, store.proxies
        self._replicas = replicas
        self._runs = runs
        self._end = time.monotonic() + minutes * 60
        self._up = [True] * len(replicas)
        self._draw = stage.random()
        self._workload = Workload(self._choose, stage.name(), self._end)
        self.run = _Run(self._workload.ledger)

    def _choose(self) -> Service:
        return self._draw.choice([each for each, up in zip(self._replicas, self._up, strict=True) if up])

    async def whole(self) -> _Run:
        """Let clients ask and faults happen until the time is over, then compare what is stored with what was told."""
        draw = self._stage.random()
        await asyncio.gather(self._schedule(draw), self._weigh(), self._workload.run(Random(draw.random())))
        await until(self._is_well, 60)
        await self._workload.settle(self._runs.read_text().split())
        for each in self._replicas:
            self._collect_complaints(each)
        return self.run

    def _collect_complaints(self, replica: Service) -> None:
        self.run.complaints += [each for each in replica.complaints() if not _OF_KILLS.search(each)]

    async def _is_well(self) -> bool:
        for each in self._replicas:
            if (await each.ask("/chat?userInput=hi")).status != 200:
                return False
        return True

    async def _weigh(self) -> None:
        while time.monotonic() < self._end:
            self.run.memory.append(self._replicas[0].mib())
            await asyncio.sleep(0.5)

    async def _schedule(self, draw: Random) -> None:
        events: tuple[Callable[[Random], Awaitable[None]], ...] = (
            self._kill, self._kill_worker, self._term, self._stop,
            self._cut_upstream, self._freeze_upstream, self._break_upstream,
        )  # fmt: skip
        if self._server is not None:
            events += self._stall, self._partition, self._cut, self._restart_store
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
        self._collect_complaints(self._replicas[at])
        await self._replicas[at].start()
        self._up[at] = True

    async def _kill(self, draw: Random) -> None:
        await self._down(draw, signal.SIGKILL)

    async def _term(self, draw: Random) -> None:
        await self._down(draw, signal.SIGTERM)

    async def _kill_worker(self, draw: Random) -> None:
        """The last replica has workers, which its parent replaces."""
        del draw
        for worker in psutil.Process(self._replicas[-1].popen.pid).children()[:1]:
            worker.kill()

    async def _stop(self, draw: Random) -> None:
        victim = draw.choice(self._replicas)
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(draw.uniform(0.5, 4))
        victim.signal(signal.SIGCONT)

    async def _stall(self, draw: Random) -> None:
        assert self._server is not None
        self._server.freeze()
        await asyncio.sleep(draw.uniform(0.2, 3))
        self._server.thaw()

    async def _partition(self, draw: Random) -> None:
        proxy = draw.choice(self._proxies)
        proxy.mode = "stall"
        await asyncio.sleep(draw.uniform(0.2, 3))
        proxy.mode = "pass"

    async def _cut(self, draw: Random) -> None:
        draw.choice(self._proxies).cut()

    async def _restart_store(self, draw: Random) -> None:
        assert self._server is not None
        await _done(self._server.kill)
        await asyncio.sleep(draw.uniform(0, 1))
        await _done(self._server.start)

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


async def _done(step: Callable[[], Awaitable[None] | None]) -> None:
    """What one server does as a coroutine, and another one in a function that blocks."""
    if isawaitable(rest := await asyncio.to_thread(step)):
        await rest


async def _ran(stage: Stage, kind: _Kind) -> _Run:
    """The run that several rows look at; the first of them makes it."""
    if kind not in stage.kept:
        stage.kept[kind] = await _run(stage, kind)
    run = stage.kept[kind]
    if not isinstance(run, _Run):
        raise TypeError(type(run))
    return run


async def _run(stage: Stage, kind: _Kind) -> _Run:
    tools, runs = stage.folder / f"tools-{kind}", stage.folder / f"runs-{kind}"
    runs.write_text("")
    write_tool(tools, runs)
    store = await _store(stage, kind)
    workers = ["1"] * (_REPLICAS - 1) + ["2"]
    replicas = await asyncio.gather(
        *(
            stage.own(STATE_URL=url, TOOLS_PATH=str(tools), SERVER_WORKERS=count, **_SETTINGS)
            for url, count in zip(store.urls, workers, strict=True)
        )
    )
    stage.upstream.behave = answer
    return await _Chaos(stage, store, list(replicas), runs, stage.minutes * _SHARE[kind]).whole()


async def _store(stage: Stage, kind: _Kind) -> _Store:
    if kind == "file":
        return _Store([f"sqlite:///{stage.folder.resolve()}/chaos.db"] * _REPLICAS)
    server: RedisServer | PostgresqlServer
    if kind == "postgresql":
        installed(POSTGRES)
        server = stage.row.enter_context(PostgresqlServer())
    else:
        folder = stage.folder / f"redis-{kind}"
        folder.mkdir()
        server = await stage.redis("--appendonly", "yes", "--appendfsync", kind, "--dir", str(folder))
    proxies = [await stage.row.enter_async_context(Proxy(server.port)) for _ in range(_REPLICAS)]
    return _Store([server.url.replace(f":{server.port}/", f":{each.port}/") for each in proxies], server, proxies)


_row = partial(fault, fast=True, loud=True, limit=300, lasts=True)


@_row(users="what was acknowledged is kept", figure="acknowledged turns, approvals, runs and alarms lost", at_most=0)
async def chaos_loses_nothing(stage: Stage) -> float:
    """Replicas, workers, Redis (`appendfsync always`) and the provider are killed, stopped, stalled and cut off."""
    run = await _ran(stage, "always")
    held(run.ledger.acknowledged > 10 * stage.minutes, f"only {run.ledger.acknowledged} turns were acknowledged")
    lost = [each for each in run.ledger.faults if each.startswith("lost")]
    stage.note = "; ".join([run.said, *lost[:3]])
    return len(lost)


@_row(users="what must happen once happens once", figure="runs of a tool and alarms that happened twice", at_most=0)
async def chaos_doubles_nothing(stage: Stage) -> float:
    """The same run: each approval is given and each request with a key is repeated, at several replicas."""
    faults = (await _ran(stage, "always")).ledger.faults
    doubled = [each for each in faults if each.startswith("doubled")]
    stage.note = "; ".join(doubled[:3])
    return len(doubled)


@_row(users="conversations read as they were held", figure="turns invented, doubled, out of order or that read others",
      at_most=0)  # fmt: skip
async def chaos_keeps_the_order(stage: Stage) -> float:
    """The same run: the history of each session is checked as a register that each turn reads and extends."""
    ledger = (await _ran(stage, "always")).ledger
    wrong = [each for each in ledger.faults if not each.startswith(("lost", "doubled"))]
    stage.note = "; ".join(wrong[:3]) or f"{len(ledger.sessions)} histories"
    return len(wrong)


@_row(users="every failure is a documented one", figure="answers that are not", at_most=0)
async def chaos_tells_what_failed(stage: Stage) -> float:
    """The same run: what clients were answered."""
    outcomes = (await _ran(stage, "always")).ledger.outcomes
    known = _DOCUMENTED | {"ok", "cut off", "not connected"}
    stage.note = ", ".join(f"{count} {name}" for name, count in outcomes.most_common())
    return sum(count for name, count in outcomes.items() if name not in known)


@_row(users="nothing", figure="errors and tracebacks in three logs", at_most=0)
async def chaos_breaks_nothing_inside(stage: Stage) -> float:
    """The same run: what the logs of the replicas say."""
    run = await _ran(stage, "always")
    stage.note = run.complaints[0][:200] if run.complaints else ""
    return len(run.complaints)


@_row(users="most are answered", figure="% of requests acknowledged", at_least=30, fast=False)
async def chaos_leaves_the_service_up(stage: Stage) -> float:
    """The same run: how many requests were answered while all of this happened."""
    outcomes = (await _ran(stage, "always")).ledger.outcomes
    return 100 * outcomes["ok"] / max(1, outcomes.total())


@fault(users="nothing", figure="% more memory in the last quarter than in the second", at_most=5, loud=True, limit=300,
       lasts=True)  # fmt: skip
async def chaos_leaves_no_memory_behind(stage: Stage) -> float:
    """The same run: the memory of the replica that was stopped and cut off, but never killed."""
    memory = (await _ran(stage, "always")).memory
    quarter = len(memory) // 4
    held(quarter > 5, "too short a run to say")
    second, last = memory[quarter : 2 * quarter], memory[3 * quarter :]
    return 100 * (statistics.median(last) / statistics.median(second) - 1)


@_row(users="up to two seconds are lost, nothing else", figure="% of acknowledged work lost or run again", at_most=2,
      fast=False)  # fmt: skip
async def chaos_with_everysec_loses_little(stage: Stage) -> float:
    """The same schedule with `appendfsync everysec`, which loses what Redis had not written when it was killed."""
    run = await _ran(stage, "everysec")
    gone = run.ledger.count("lost") + run.ledger.count("doubled")
    wrong = [each for each in run.ledger.faults if not each.startswith(("lost", "doubled"))]
    held(not wrong, "; ".join(wrong[:3]))
    stage.note = f"{gone} lost or run again of {run.said}"
    return 100 * gone / max(1, run.ledger.acknowledged)


async def _faults(stage: Stage, kind: _Kind) -> float:
    run = await _ran(stage, kind)
    held(run.ledger.acknowledged > 10 * stage.minutes * _SHARE[kind], f"only {run.ledger.acknowledged} turns")
    stage.note = "; ".join([run.said, *run.ledger.faults[:3], *run.complaints[:1]])
    return len(run.ledger.faults)


_whole = partial(_row, users="what was acknowledged is kept, once", at_most=0, fast=False,
                 figure="turns, approvals, runs and alarms lost, doubled or out of order")  # fmt: skip


@_whole()
async def chaos_with_a_file_loses_and_doubles_nothing(stage: Stage) -> float:
    """The same with replicas and workers that share a SQLite file."""
    return await _faults(stage, "file")


@_whole()
async def chaos_with_postgresql_loses_and_doubles_nothing(stage: Stage) -> float:
    """The same with PostgreSQL, which is killed, stopped, stalled and cut off as Redis is."""
    return await _faults(stage, "postgresql")
