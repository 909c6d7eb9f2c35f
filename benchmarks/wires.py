"""What other people's wires cost beside our own GET, and MCP's ``tools/call``; peers for OpenAI's and MCP's.

``python -m benchmarks.wires`` measures these alone.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.catalogue import SERVICES, WIRE_PEERS
from benchmarks.load import Question, ask, posted, question
from benchmarks.stage import BenchError, Measurement, Sample, Stage, Target
from benchmarks.summary import Figure, Summary, summarise
from benchmarks.wire import END

__all__ = ["completion", "has_wires", "measure_wires", "wires_table"]

_GET = question("/time/chat-tool-function")
_GET_STREAM = question("/time/chat-tool-function", "text/event-stream")
_ASKED = '{"model":"%s","messages":[{"role":"user","content":"QUESTION NUMBER"}]%s}'
_MESSAGES = '{"model":"toolchat-time","max_tokens":1024,"messages":[{"role":"user","content":"QUESTION NUMBER"}]%s}'
_RUN = (
    '{"threadId":"t","runId":"r","state":{},"messages":[{"id":"m","role":"user","content":"QUESTION NUMBER"}],'
    '"tools":[],"context":[],"forwardedProps":{}}'
)
_CHAT = '{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"QUESTION NUMBER"}]}]}'
_META = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},'
    '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}'
)
_CALL = (
    '{"jsonrpc":"2.0","id":"NUMBER","method":"tools/call","params":{"name":"%s",'
    '"arguments":{"timeZoneId":"Asia/Shanghai"}%s}}'
)
_ACCEPT = "Accept: application/json, text/event-stream"
_SECONDS = 0.6
_OF_GET, _OF_SDK = 1.15, 0.7
"""The goals."""
_OTHERS = (
    ("Anthropic's Messages, whole", "anthropic", "get"),
    ("Anthropic's Messages, streamed", "anthropic-stream", "get-stream"),
    ("AG-UI", "ag-ui-stream", "get-stream"),
    ("the AI SDK's `useChat`", "ai-sdk-stream", "get-stream"),
)
"""Wires without a peer: what they are called, their phase, and that of the GET beside them."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One way of asking; ``phase`` is what its samples are called by."""

    service: str
    phase: str
    make: Question
    calls: int = 2
    """Upstream calls that each question needs."""
    end: bytes = END

    def measurement(self) -> Measurement:
        return Measurement(self.phase, self.make, self.calls, 32, seconds=_SECONDS, end=self.end)


def completion(model: str, *, stream: bool = False) -> Question:
    """Ask a model through OpenAI's protocol."""
    return posted("/v1/chat/completions", _ASKED % (json.dumps(model)[1:-1], ',"stream":true' if stream else ""))


def _tool_call(tool: str) -> Question:
    headers = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", f"Mcp-Name: {tool}")
    return posted("/mcp", _CALL % (tool, f",{_META}"), _ACCEPT, *headers)


def _handshake_call(tool: str) -> Question:
    """A call in the version that most hosts speak, after their handshake."""
    return posted("/mcp", _CALL % (tool, ""), _ACCEPT, "MCP-Protocol-Version: 2025-11-25")


_TIME = b"the current time is"
_ROWS = (
    _Row("toolchat", "get", _GET),
    _Row("toolchat", "facade", completion("toolchat-time")),
    _Row("hayhooks", "facade", completion("toolchat")),
    _Row("toolchat", "get-stream", _GET_STREAM),
    _Row("toolchat", "facade-stream", completion("toolchat-time", stream=True)),
    _Row("hayhooks", "facade-stream", completion("toolchat", stream=True)),
    _Row("toolchat", "anthropic", posted("/v1/messages", _MESSAGES % "")),
    _Row("toolchat", "anthropic-stream", posted("/v1/messages", _MESSAGES % ',"stream":true')),
    _Row("toolchat", "ag-ui-stream", posted("/ag-ui", _RUN)),
    _Row("toolchat", "ai-sdk-stream", posted("/ai-sdk/chat", _CHAT)),
    _Row("toolchat", "mcp", _tool_call("getCityTimeFunction"), 0, _TIME),
    _Row("mcp-sdk", "mcp", _tool_call("get_time"), 0, _TIME),
    _Row("toolchat", "mcp-2025", _handshake_call("getCityTimeFunction"), 0, _TIME),
    _Row("mcp-sdk", "mcp-2025", _handshake_call("get_time"), 0, _TIME),
)
_FIRST = {"toolchat": "/time/chat-tool-function", "hayhooks": "/status", "mcp-sdk": "/ready"}


async def measure_wires(stage: Stage, rounds: int, seconds: float) -> list[str]:
    """Measure every row by turns, all services started side by side; samples go to the stage.

    Args:
        stage: where the services run.
        rounds: how often each row is measured.
        seconds: after which no further round is begun.

    Returns:
        A line for each service that could not be measured.
    """
    missing, began = list[str](), time.monotonic()
    async with AsyncExitStack() as exits:
        targets: dict[str, Target] = {}
        for name, first in _FIRST.items():
            service = {**SERVICES, **WIRE_PEERS}[name]
            try:
                if why := service.missing():
                    raise BenchError(why)
                start = stage.started(f"{name} (wires)", service.command, service.environment, first)
                targets[name], _ = await exits.enter_async_context(start)
            except BenchError as error:
                missing.append(f"{name}: {error}")
        rows = [row for row in _ROWS if row.service in targets]
        for row in rows:
            await ask(targets[row.service].ports, row.make, connections=32, seconds=_SECONDS)
        while rounds and time.monotonic() - began < seconds:
            rounds -= 1
            for row in rows:
                await stage.measured(targets[row.service], row.measurement(), attempts=2)
    return missing


def has_wires(samples: Iterable[Sample]) -> bool:
    """Whether a run has measured them."""
    return any(each.phase == "facade" for each in samples)


def wires_table(summary: Summary) -> list[list[str]]:
    """Each wire: what it costs, beside what, the goal, whether that is met, and what a peer costs."""
    rows = []
    for title, mine, get in (("whole", "facade", "get"), ("streamed", "facade-stream", "get-stream")):
        ours, base = _cpu(summary, "toolchat", mine), _cpu(summary, "toolchat", get)
        if ours is None:
            continue
        peer = _cpu(summary, "hayhooks", mine)
        ratio = _ratio(ours, base)
        met = _met(ratio <= _OF_GET, ours, base)
        beside, goal = f"GET {_text(base)}: {ratio:.2f} ×", f"≤ {_OF_GET} × GET"
        rows.append([f"chat completions, {title}", _text(ours), beside, goal, met, f"Hayhooks {_text(peer)}"])
    for title, mine, get in _OTHERS:
        ours, base = _cpu(summary, "toolchat", mine), _cpu(summary, "toolchat", get)
        if ours is None:
            continue
        ratio = _ratio(ours, base)
        met, goal = _met(ratio <= _OF_GET, ours, base), f"≤ {_OF_GET} × GET"
        rows.append([title, _text(ours), f"GET {_text(base)}: {ratio:.2f} ×", goal, met, "–"])
    for version, phase in (("2026-07-28", "mcp"), ("2025-11-25", "mcp-2025")):
        ours, peer = _cpu(summary, "toolchat", phase), _cpu(summary, "mcp-sdk", phase)
        if ours is None and peer is None:
            continue
        ratio = _ratio(ours, peer)
        met = _met(ratio <= _OF_SDK, ours, peer)
        beside = f"SDK's server {_text(peer)}: {ratio:.2f} ×"
        rows.append([f"MCP `tools/call`, time, {version}", _text(ours), beside, f"≤ {_OF_SDK} × SDK", met, "–"])
    return rows


def _cpu(summary: Summary, service: str, phase: str) -> Figure | None:
    return summary.figure(f"{service} (wires)", phase, "cpu_ms")


def _ratio(one: Figure | None, other: Figure | None) -> float:
    return one.median / other.median if one and other else math.nan


def _text(figure: Figure | None) -> str:
    return figure.text(3) if figure else "–"


def _met(is_met: bool, *figures: Figure | None) -> str:
    """A figure that is missing, or of which every measurement is marked, decides nothing."""
    if any(figure is None or figure.marked for figure in figures):
        return "–"
    return "yes" if is_met else "**no**"


async def _alone(folder: Path, rounds: int) -> tuple[Sequence[Sample], Sequence[str]]:
    with Stage(folder) as stage:
        missing = await measure_wires(stage, rounds, 300)
        return stage.samples, missing


def main(arguments: Sequence[str] = sys.argv) -> int:
    """Measure these rows alone; the argument is how often, 5 times without it."""
    rounds = int(arguments[1]) if len(arguments) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="toolchat-bench-") as folder:
        samples, missing = uvloop.run(_alone(Path(folder), rounds))
    for row in wires_table(summarise(samples)):
        print(" | ".join(row))
    print(*missing, sep="\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
