"""Does a question cost more when much is stored? Ratios of CPU time of one run, also of a memory that evicts.

``python -m benchmarks.state`` asks two applications in this process by turns, with a model that answers at once, in two
minutes. Its arguments are how the names of the wanted rows begin.
"""

import asyncio
import gc
import hashlib
import itertools
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import uvloop

from benchmarks.stage import percentile
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt
from toolchat.service import create_app
from toolchat.state.base import StoredRecord, Write
from toolchat.state.sqlite import SqliteStateStore

_TURNS, _QUESTIONS, _WARM_UP, _EVICTING = 15, 40, 200, 4_000
_FEW, _MANY, _APPROVALS, _KEYS, _BATCH = 1_000, 100_000, 10_000, 10_000, 100
_KEY = "bench-key"
_ENTRY = '[[keys]]\nname = "%s"\nsha256 = "%s"\nrequests_per_minute = 10_000_000\ntokens_per_day = 1_000_000_000_000\n'
_QUOTAS = {"REQUESTS_PER_MINUTE": "10000000", "TOKENS_PER_DAY": "1000000000000"}
_TOOL = '''from toolchat import ToolModule, tool


@tool(requires_approval=True)
async def buy() -> str:
    """Buy."""
    return "bought"


module = ToolModule(functions=(buy,))
'''
Ask = Callable[[], Awaitable[None]]
"""Asks one question."""


class _Model(ChatModel):
    """Answers at once; what it is to buy, it buys."""

    provider = name = "stub"

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        del emit
        calls = (ToolCall("c", "buy", "{}"),) if "buy" in str(prompt.messages[-1]) else ()
        message = AssistantMessage("" if calls else "Hello", calls)
        return ChatResponse(message, "tool_calls" if calls else "stop", Usage(10, 2), "stub")


@dataclass(frozen=True, slots=True)
class Request:
    """The path and the query of a question."""

    path: str
    query: str


@dataclass(frozen=True, slots=True)
class _Side:
    """An application with some settings, and what it is asked."""

    name: str
    settings: Mapping[str, str]
    request: Callable[[], Request]
    turns: int = 0
    """What its session must have before anything is measured."""


def _session(name: str, url: str, turns: int = 0) -> _Side:
    """Each question opens a session, or is asked in one that has so many turns and keeps them."""
    numbers = itertools.count()

    def request() -> Request:
        number = next(numbers)
        where = f"kept&replaceTurns={int(number > turns)}" if turns else f"new{number}"
        return Request("/chat", f"userInput=Hi&sessionId={where}")

    return _Side(name, {"STATE_URL": url}, request, turns)


def _keys(folder: Path, name: str, count: int) -> _Side:
    """One of so many keys, each with quotas."""
    file = folder / f"keys-{count}.toml"
    others = [(f"other{number}", f"{number:064x}") for number in range(1, count)]
    entries = [*others, ("bench", hashlib.sha256(_KEY.encode()).hexdigest())]
    file.write_text("".join([_ENTRY % each for each in entries]))
    settings = {"STATE_URL": "memory://", "API_KEYS_FILE": str(file), **_QUOTAS}
    return _Side(name, settings, lambda: Request("/time/chat-tool-function", "query=Hi"))


@asynccontextmanager
async def _running(side: _Side) -> AsyncGenerator[Ask, None]:
    """The application of a side; gives a function that asks it once."""
    before = dict(os.environ)
    os.environ.update({"LOG_LEVEL": "ERROR", "CHAT_PROVIDER": "offline", **side.settings})
    try:
        app = create_app(tools=["app.tools"], model=_Model())
    finally:
        os.environ.clear()
        os.environ.update(before)
    headers = [(b"host", b"localhost"), (b"accept", b"application/json"), (b"x-api-key", _KEY.encode())]

    async def ask() -> None:
        asked, status, parts = side.request(), list[int](), [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, object]:
            if not parts:
                await asyncio.Event().wait()  # the client stays
            return parts.pop()

        async def send(message: Mapping[str, object]) -> None:
            if message["type"] == "http.response.start":
                status.append(int(str(message["status"])))

        scope: dict[str, object]
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"}
        scope |= {"path": asked.path, "raw_path": asked.path.encode(), "query_string": asked.query.encode()}
        scope |= {"root_path": "", "headers": headers, "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1)}
        await app({**scope, "state": {}}, receive, send)
        if status != [200]:
            raise RuntimeError(f"{side.name}: {asked} was answered {status}")

    async with app.lifespan():
        for _ in range(_WARM_UP + side.turns):
            await ask()
        yield ask


async def _ratio(side: _Side, base: _Side) -> tuple[float, float]:
    """The median of the ratios of both sides' CPU time, by turns; and that of the first one in milliseconds."""
    async with _running(side) as mine, _running(base) as other:
        pairs = [[await _cpu(ask) for ask in (mine, other)] for _ in range(_TURNS)]
    return median(one / two for one, two in pairs), median(one for one, _ in pairs) * 1000 / _QUESTIONS


async def _cpu(ask: Ask) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(_QUESTIONS):
        await ask()
    return time.process_time() - began


async def _eviction() -> float:
    """The 99th percentile of the CPU time of a question in a memory that evicts for each, and in one that does not."""
    sides = [_session("evicting", f"memory://?max_mb={size}") for size in (1, 4096)]
    async with AsyncExitStack() as stack:
        asks = [await stack.enter_async_context(_running(each)) for each in sides]
        times: tuple[list[float], list[float]] = [], []
        for number in range(_EVICTING):
            for ask, found in zip(asks, times, strict=True):
                began = time.thread_time()
                await ask()
                if number > _EVICTING // 2:  # it is full by then
                    found.append(time.thread_time() - began)
    evicting, other = (percentile(each, 99) for each in times)
    return evicting / other


async def _grown(folder: Path) -> Mapping[str, str]:
    """Files with what the service stores for one session or one approval, many times."""
    tools = folder / "tools" / "shop"
    tools.mkdir(parents=True)
    (tools / "__init__.py").write_text(_TOOL)
    asked = iter(["userInput=Hi&sessionId=one", "userInput=buy&sessionId=two&tools=buy"])
    settings = {"STATE_URL": f"sqlite:///{folder}/model.db", "TOOLS_PATH": str(tools.parent)}
    model = _Side("model", settings, lambda: Request("/chat", next(asked, "userInput=Hi&sessionId=one")))
    async with _running(model):
        pass
    records = [each async for each in SqliteStateStore(folder / "model.db").records()]
    [session] = [each for each in records if each.key == "memory:one"]
    approval = [each for each in records if each.key.startswith("approval")]
    few, many, waiting = [replace(session, log=session.log[:1])], f"{_MANY:,} stored", f"{_APPROVALS:,} approvals"
    contents = {"few": (few, _FEW), many: (few, _MANY), "none": (few, 0), waiting: (approval, _APPROVALS)}
    return {name: await _filled(folder / f"{len(name)}.db", *each) for name, each in contents.items()}


async def _filled(path: Path, records: Sequence[StoredRecord], count: int) -> str:
    store = SqliteStateStore(path, max_bytes=2**32, deadline=60)
    await store.start()
    for first in range(0, count, _BATCH):
        numbers = range(first, first + _BATCH)
        await store.commit([write for number in numbers for each in records for write in _copied(each, number)])
    await store.aclose()
    return f"sqlite:///{path}?max_mb=4096"


def _copied(record: StoredRecord, number: int) -> list[Write]:
    write = Write(f"{record.key}{number}", record.value, 86_400, record.is_kept, record.lists)
    return [replace(write, line=line, place=place) for place, line in enumerate(record.log)] or [write]


def _rows(folder: Path, grown: Mapping[str, str]) -> list[tuple[_Side, _Side]]:
    few, many, none, waiting = grown
    rows = [(_keys(folder, "10,000 keys", _KEYS), _keys(folder, "10", 10))]
    for turns, asked in ((0, "new session"), (1, "session asked again")):
        rows.append((_session(f"{asked}, {many}", grown[many], turns), _session("1,000", grown[few], turns)))
    return [*rows, (_session(f"new session, {waiting} wait", grown[waiting]), _session("none", grown[none]))]


async def _table(folder: Path, starts: Sequence[str]) -> None:
    print("| what | ratio | goal | CPU ms |\n| --- | --- | --- | --- |")
    for side, base in _rows(folder, await _grown(folder)):
        if side.name.startswith(tuple(starts) or ""):
            ratio, milliseconds = await _ratio(side, base)
            print(f"| {side.name} ÷ {base.name} | {ratio:.2f} | ≤ 1.1 | {milliseconds:.2f} |", flush=True)
    if "eviction".startswith(tuple(starts) or ""):
        print(f"| p99 of a memory that evicts ÷ of one that does not | {await _eviction():.2f} | ≤ 1.5 | |")


def main(arguments: Sequence[str] = sys.argv) -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="toolchat-bench-") as folder:
        uvloop.run(_table(Path(folder).resolve(), arguments[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
