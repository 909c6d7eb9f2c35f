"""What a question sends to the model: tokens of o200k, and how much of a long conversation's requests stays unchanged.

``python -m benchmarks.tokens`` asks toolchat and its peers the same questions, with a model that keeps what it was
sent, and prints a table in a minute or two. Counted are the definitions of the tools as JSON, the texts, and the calls.
"""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import Any, Self
from urllib.parse import quote

from pydantic_core import from_json

from benchmarks import java
from benchmarks.catalogue import SERVICES
from benchmarks.load import fetch
from benchmarks.processes import FOUND
from benchmarks.stage import BenchError, Stage, Target
from benchmarks.wire import Reply, calling, numbered, saying, weather

__all__ = ["QUESTIONS", "Recorder", "parts", "unchanged", "with_many"]

QUESTIONS = {
    "time": ("time", "What time is it in Beijing?"),
    "weather": ("weather", "How will the weather be in Beijing in the next three days?"),
    "chat": ("time", "What time is it in Beijing?"),
    "many": ("forecast", "How will the weather be in Rome tomorrow?"),
}
"""By agent: a word in the name of the tool that the model calls, and the question."""
_PATH = "/{}/chat-tool-function"
_CHAT, _SESSION = "/chat?userInput=", "/chat?tools=getCityTimeFunction&sessionId=one&userInput="
_TURNS, _FROM = 60, 40
_WITH_SESSIONS = ("toolchat", "langchain", "spring")
_CODE = """from benchmarks.services.tools import many
from toolchat import ToolModule

module = ToolModule(functions=many(), default_query="Which?", in_conversations=False)
"""
_HEAD = """\
| service | time | weather of 3 days | time, of 3 tools | forecast, of 100 tools | unchanged, turns 40 to 60 |
| --- | --- | --- | --- | --- | --- |"""


class Recorder(ThreadingHTTPServer):
    """A model that calls one tool, searches for it where it is not offered, and answers; it keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wanted = "time"
        """A word in the name of the tool."""
        self.number = b"ask-00000000"
        self.requests: list[Any] = []

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        """Its address without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, request: Mapping[str, Any]) -> Reply:
        """The turn of the model."""
        self.requests.append(request)
        messages, offered = request["messages"], [each["function"]["name"] for each in request.get("tools", ())]
        asked = max(place for place, each in enumerate(messages) if each["role"] == "user")
        called = [call["function"]["name"] for each in messages[asked:] for call in each.get("tool_calls") or ()]
        fitting = [name for word in (self.wanted, "search") for name in offered if word in name.lower()]
        return calling("openai", fitting[0]) if fitting and fitting[0] not in called else saying("openai")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_POST(self) -> None:
        """A turn of the model."""
        request = from_json(self.rfile.read(int(self.headers["Content-Length"])))
        self.wfile.write(self.server.answer(request).numbered(self.server.number))

    def do_GET(self) -> None:
        """A forecast."""
        self.wfile.write(numbered(weather(), self.server.number))


def parts(request: Mapping[str, Any]) -> list[str]:
    """What the model reads: the definitions of the tools as JSON, then the texts and the calls in their order."""
    found = [_compact(each) for each in request.get("tools", ())]
    for message in request["messages"]:
        content = message.get("content") or ""
        found.append(content if isinstance(content, str) else "".join(each["text"] for each in content))
        for call in message.get("tool_calls") or ():
            found += [call["function"]["name"], call["function"]["arguments"]]
    return found


def unchanged(requests: Sequence[Mapping[str, Any]], firsts: Sequence[int]) -> float:
    """The share of these requests, in characters, that is the beginning of an earlier one: tools, then messages."""
    texts = [list(map(_compact, (*each.get("tools", ()), *each["messages"]))) for each in requests]
    shared = sum(max(_shared(texts[at], earlier) for earlier in texts[:at]) for at in firsts)
    return shared / sum(len("".join(texts[at])) for at in firsts)


def _shared(texts: Sequence[str], earlier: Sequence[str]) -> int:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(texts, earlier, strict=False))
    return sum(len(text) for text, _ in same)


def with_many(folder: Path) -> Mapping[str, str]:
    """Write a tool folder with a hundred tools; gives toolchat's variables."""
    tools = folder / "tools" / "many"
    tools.mkdir(parents=True)
    (tools / "__init__.py").write_text(_CODE)
    return {"TOOLS_PATH": str(tools.parent)}


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def _asked(target: Target, path: str, text: str) -> None:
    status, body = await fetch(target.ports[0], f"{path}{quote(text)}")
    if status != FOUND:
        raise BenchError(f"{target.name} answered {path} with {status}: {body[:300]!r}")


async def _row(stage: Stage, model: Recorder, title: str, name: str, more: Mapping[str, str]) -> list[str]:
    """One line of the table; ``more`` are settings."""
    service = SERVICES[name]

    def environment(port: int, _: str) -> Mapping[str, str]:
        return {**service.environment(port, model.url), **more}

    is_own, cells = service.kind == "toolchat", [title]
    async with stage.started(name, service.command, environment, _PATH.format("time")) as (target, _):
        for agent, (model.wanted, text) in QUESTIONS.items():
            path = _CHAT if is_own and agent == "chat" else f"{_PATH.format(agent)}?query="
            model.requests.clear()
            with suppress(BenchError):  # it has no such tool
                await _asked(target, path, text)
            cells.append(f"{sum(map(_tokens, map(parts, model.requests))):,}" if model.requests else "–")
        session = _SESSION if is_own else f"{_PATH.format('session')}?query="
        cells.append(await _prefix(model, target, session) if name in _WITH_SESSIONS else "–")
    return cells


async def _prefix(model: Recorder, target: Target, path: str) -> str:
    model.wanted, firsts = "time", list[int]()
    model.requests.clear()
    for turn in range(_TURNS):
        firsts.append(len(model.requests))
        model.number = b"ask-%08d" % turn
        await _asked(target, path, f"{turn}: what time is it in Beijing?")
    return f"{unchanged(model.requests, firsts[_FROM:]):.0%}"


def _tokens(texts: Sequence[str]) -> int:
    import tiktoken  # it loads its vocabulary, or takes it from TIKTOKEN_CACHE_DIR

    encode = tiktoken.get_encoding("o200k_base").encode
    return sum(len(encode(each)) for each in texts)


async def _measure(model: Recorder, folder: Path) -> None:
    own = with_many(folder)
    rows: list[tuple[str, str, Mapping[str, str]]] = [
        ("toolchat", "toolchat", own),
        ("toolchat, a window of 40 messages", "toolchat", {**own, "MEMORY_MAX_MESSAGES": "40"}),
        ("LangChain, `trim_messages` to 40", "langchain", {}),
        ("pydantic-ai", "pydantic-ai", {}),
        ("openai-agents", "openai-agents", {}),
        ("Spring AI, a window of 40 messages", "spring", {}),
    ]
    lines = []
    with Stage(folder) as stage:
        for title, name, more in rows:
            why = SERVICES[name].missing() or (java.build(folder / "maven.log") if name == "spring" else "")
            lines.append([f"{title}: {why}"] if why else await _row(stage, model, title, name, more))
    print(_HEAD, *(f"| {' | '.join(line)} |" for line in lines), sep="\n")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="toolchat-bench-") as folder, Recorder() as model:
        asyncio.run(_measure(model, Path(folder)))


if __name__ == "__main__":
    main()
