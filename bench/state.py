"""What state costs, as ratios of one run: sessions and quotas in each store, stores that have grown, and eviction.

``python -m bench.state`` counts instructions with callgrind, in about twenty minutes; its arguments are how the names
of the wanted rows begin. Only the row of eviction measures time, by turns with a store that evicts nothing.
"""

import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import uvloop

from bench.catalogue import CALLS
from bench.instructions import count_instructions
from bench.load import ask, fetch
from bench.stage import Measurement, Stage
from bench.variants import MEMORY, Variant, file_store, guarded, plain, postgresql_store, redis_store, session
from toolchat.state.base import StateStore, StoredRecord, Write
from toolchat.state.sqlite import SqliteStateStore

_FEW, _MANY, _APPROVALS, _KEYS = 1_000, 100_000, 10_000, 10_000
_BATCH = 100
_PAIRS, _CONNECTIONS, _SECONDS = 9, 8, 2.0
_TOOL = '''from toolchat import ToolModule, tool


@tool(requires_approval=True)
async def buy() -> str:
    """Buy."""
    return "bought"


module = ToolModule(functions=(buy,))
'''


@dataclass(frozen=True, slots=True)
class _Row:
    """Two variants whose instructions are compared."""

    variant: Variant
    base: Variant
    at_most: float
    """The ratio that it is to have."""


def _rows(stage: Stage, stores: Mapping[str, Mapping[str, str]]) -> list[_Row]:
    goals = {"memory": (1.4, 1.6), "file": (1.5, 1.7), "Redis": (1.5, 1.7), "PostgreSQL": (1.6, 1.8)}
    rows = [
        _Row(session(f"session of {turns} turns, {name}", stores[name], turns), plain(), goal)
        for name, pair in goals.items()
        for turns, goal in zip((0, 20), pair, strict=True)
    ]
    rows += [
        _Row(guarded(f"key and quotas, {name}", stage, stores[name]), plain(), goal)
        for name, goal in (("memory", 1.1), ("file", 1.25))
    ]
    many = guarded(f"{_KEYS:,} keys", stage, MEMORY, _KEYS)
    rows.append(_Row(many, guarded("10 keys", stage, MEMORY, 10), 1.1))
    for turns, asked in ((0, "new session"), (1, "session asked again")):
        few, grown = (
            session(f"{asked}, {count:,} stored", _file(stage, f"{count}-sessions"), turns) for count in (_FEW, _MANY)
        )
        rows.append(_Row(grown, few, 1.1))
    waiting = session(f"new session, {_APPROVALS:,} approvals wait", _file(stage, "approvals"))
    return [*rows, _Row(waiting, session("new session, no approval waits", _file(stage, "none")), 1.1)]


def _file(stage: Stage, name: str) -> Mapping[str, str]:
    return {"STATE_URL": f"sqlite:///{stage.folder.resolve() / name}.db?max_mb=4096"}


async def _grow(stage: Stage) -> None:
    """Fill the files: what the service stores for one session and for one approval, many times."""
    tools = stage.folder / "tools" / "shop"
    tools.mkdir(parents=True)
    (tools / "__init__.py").write_text(_TOOL)
    model = replace(session("model", {**_file(stage, "model"), "TOOLS_PATH": str(tools.parent)}))
    async with stage.started("model", model.service.command, model.environment, model.first) as (target, _):
        for path in ("/chat?sessionId=one&tools=getCityTimeFunction", "/chat?sessionId=two&tools=buy"):
            await fetch(target.ports[0], f"{path}&userInput=ask-00000000")
    records = [each async for each in _records(stage, "model")]
    sessions = [each for each in records if each.key == "memory:one"]
    approvals = [each for each in records if each.key.startswith("approval")]
    if not (sessions and approvals):
        raise ValueError(f"the service stored {[each.key for each in records]}")
    for name, copied, count in (
        (f"{_FEW}-sessions", sessions, _FEW),
        (f"{_MANY}-sessions", sessions, _MANY),
        ("approvals", approvals, _APPROVALS),
        ("none", approvals, 0),
    ):
        await _fill(_store(stage, name), copied, count)


def _store(stage: Stage, name: str) -> StateStore:
    return SqliteStateStore(stage.folder / f"{name}.db", max_bytes=2**32, deadline=60)


async def _records(stage: Stage, name: str) -> AsyncIterator[StoredRecord]:
    async for each in _store(stage, name).records():
        yield each


async def _fill(store: StateStore, records: Sequence[StoredRecord], count: int) -> None:
    await store.start()
    for first in range(0, count, _BATCH):
        numbers = range(first, min(first + _BATCH, count))
        await store.commit([write for number in numbers for each in records for write in _copied(each, number)])
    await store.aclose()


def _copied(record: StoredRecord, number: int) -> list[Write]:
    writes = [Write(f"{record.key}{number}", record.value, 86_400, record.is_kept, record.lists)]
    return [replace(writes[0], line=line, place=place) for place, line in enumerate(record.log)] or writes


async def _eviction(stage: Stage) -> float:
    """The p99 of new sessions in a memory that evicts for each of them, divided by that of one that does not."""
    variants = [session(name, {"STATE_URL": f"memory://?max_mb={size}"}) for name, size in (("full", 1), ("not", 4096))]
    async with AsyncExitStack() as exits:
        sides = []
        for each in variants:
            started = stage.started(each.name, each.service.command, each.environment, each.first)
            target, _ = await exits.enter_async_context(started)
            await ask(target.ports, each.make, connections=_CONNECTIONS, questions=5_000)
            sides.append((target, Measurement("eviction", each.make, CALLS["time"], _CONNECTIONS, seconds=_SECONDS)))
        ratios = []
        for _ in range(_PAIRS):
            full, other = [await stage.measured(target, what, attempts=1) for target, what in sides]
            ratios.append(full.values["p99_ms"] / other.values["p99_ms"])
    return median(ratios)


async def _table(folder: Path, starts: Sequence[str]) -> str:
    lines, counts = ["| what | ratio | goal | instructions |", "| --- | --- | --- | --- |"], dict[str, float]()
    with Stage(folder) as stage, redis_store(stage) as redis, postgresql_store() as postgresql:
        stores = {"memory": MEMORY, "file": file_store(stage), "Redis": redis, "PostgreSQL": postgresql}
        rows = [row for row in _rows(stage, stores) if row.variant.name.startswith(tuple(starts) or "")]
        await _grow(stage)
        for row in rows:
            for each in (row.base, row.variant):
                if each.name not in counts:
                    counts[each.name] = await count_instructions(stage, each)
            name, ratio = f"{row.variant.name} ÷ {row.base.name}", counts[row.variant.name] / counts[row.base.name]
            lines.append(f"| {name} | {ratio:.3f} | ≤ {row.at_most} | {counts[row.variant.name]:,.0f} |")
            print(lines[-1], flush=True)
        if "p99 beside eviction".startswith(tuple(starts) or ""):
            lines.append(
                f"| p99 of a memory that evicts ÷ one that does not | {await _eviction(stage):.2f} | ≤ 1.5 | |"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] = sys.argv) -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="toolchat-bench-") as folder:
        print(uvloop.run(_table(Path(folder), arguments[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
