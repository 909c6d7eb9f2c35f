"""Replicas, clients and a random schedule of faults; afterwards everything that was acknowledged is looked for."""

import asyncio
import re
import signal
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from random import Random
from typing import Literal

import psutil
import pytest

from tests.faults.proxy import Proxy
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import Call, frozen, playing
from tests.faults.workload import Ledger, Workload, answer, write_tool
from tests.players.openai_player import Answer
from tests.players.postgresql_server import PostgresqlServer
from tests.players.redis_server import RedisServer
from tests.programs import POSTGRES, require
from tests.waiting import until

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
        await until(self._is_well)
        await self._workload.settle(self._runs.read_text().split())
        for each in self._replicas:
            self._collect_complaints(each)
        return self.run

    def _collect_complaints(self, replica: Service) -> None:
        self.run.complaints += [each for each in replica.errors() if not _OF_KILLS.search(each)]

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
        require(POSTGRES)
        server = stage.cleanup.enter_context(PostgresqlServer())
    else:
        folder = stage.folder / f"redis-{kind}"
        folder.mkdir()
        server = await stage.redis("--appendonly", "yes", "--appendfsync", kind, "--dir", str(folder))
    proxies = [await stage.cleanup.enter_async_context(Proxy(server.port)) for _ in range(_REPLICAS)]
    return _Store([server.url.replace(f":{server.port}/", f":{each.port}/") for each in proxies], server, proxies)


_KINDS = [pytest.param("always"), *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("file", "postgresql"))]


@pytest.mark.loud
@pytest.mark.parametrize("kind", _KINDS)
async def test_what_was_acknowledged_is_stored_once_and_in_order(kind: _Kind, stage: Stage) -> None:
    """Replicas, workers, their store and the provider are killed, stopped, stalled and cut off at random."""
    run = await _run(stage, kind)
    print(run.said)
    assert run.ledger.faults == []
    assert run.complaints == []
    assert run.ledger.outcomes.keys() <= _DOCUMENTED | {"ok", "cut off", "not connected"}
    assert run.ledger.acknowledged > 10 * stage.minutes * _SHARE[kind]
    if stage.minutes > 1:
        assert run.ledger.outcomes["ok"] > 0.3 * run.ledger.outcomes.total()
        quarter = len(run.memory) // 4
        second, last = run.memory[quarter : 2 * quarter], run.memory[3 * quarter :]
        assert statistics.median(last) < 1.05 * statistics.median(second)


@pytest.mark.nightly
@pytest.mark.loud
async def test_a_redis_that_writes_every_second_loses_little(stage: Stage) -> None:
    """The same with `appendfsync everysec`, which loses what Redis had not written when it was killed."""
    run = await _run(stage, "everysec")
    gone = run.ledger.count("lost") + run.ledger.count("doubled")
    assert gone == len(run.ledger.faults), run.ledger.faults
    assert gone <= 0.02 * run.ledger.acknowledged
