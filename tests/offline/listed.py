"""The questions of ``questions.yaml``, and how each is asked: with results played for the calls that it leads to."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.offline.asking import (
    ALL,
    CLOCK,
    CLOCK_RESULT,
    FORECAST,
    OTHERS,
    TODO_READ,
    TODO_WRITE,
    TRANSLATE,
    WEATHER,
    response,
)
from tests.offline.own_tools import DOCUMENTED, OWN_TOOLS
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.tool_calling.definition import ToolDefinition

__all__ = ["QUESTIONS", "AskedQuestion", "Entry", "ask", "expected"]

_SHORT = {"time": CLOCK, "weather": WEATHER, "translate": TRANSLATE, "todo_read": TODO_READ, "todo_write": TODO_WRITE}
_SETS: dict[str, tuple[ToolDefinition, ...]] = {
    "all": ALL,
    "none": (),
    "own": (*OWN_TOOLS, *ALL),
    "others": OTHERS,
    "todo": (*ALL, TODO_WRITE, TODO_READ),
    **{name: (tool,) for name, tool in _SHORT.items()},
    **{name: (tool,) for name, tool in DOCUMENTED.items()},
    **{tool.name: (tool,) for tool in (*OTHERS, *OWN_TOOLS)},
}
_MOST_ROUNDS = 10
RESULTS: dict[str, Any] = {
    CLOCK.name: CLOCK_RESULT,
    WEATHER.name: FORECAST,
    TRANSLATE.name: {"from": "zh", "to": "en", "text": "PLAYED"},
    "getCurrentDateTime": {key: CLOCK_RESULT[key] for key in ("date", "time", "weekday", "time_zone")},
    TODO_READ.name: "[ ] #1: played\n(0/1 completed)",
}


@dataclass(frozen=True)
class Entry:
    """One question of the list."""

    ask: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Each call as ``{tool: value}``, ``{tool: [values in order]}`` or ``{tool: {name: value}}``; in the order made."""
    tools: str = "all"
    before: list[str] = field(default_factory=list)
    """What was said before: questions and answers in turns, beginning with a question."""
    has: list[str] = field(default_factory=list)
    """What stands in the answer, once results have been played for the calls."""
    lacks: list[str] = field(default_factory=list)
    """What does not."""
    results: dict[str, Any] = field(default_factory=dict)
    """Results by short names of tools; the ones above where there is none."""

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        return _SETS[self.tools]


@dataclass(frozen=True)
class AskedQuestion:
    """What became of a question: the calls, written as in the list, and the answer."""

    calls: list[tuple[str, dict[str, Any]]]
    answer: str


_TEXT = Path(__file__).with_name("questions.yaml").read_text("utf-8")
QUESTIONS = [Entry(**each) for each in yaml.load(_TEXT, yaml.CSafeLoader)]


def expected(entry: Entry) -> list[tuple[str, dict[str, Any]]]:
    """The calls of an entry in full."""
    return [_in_full(name, given) for each in entry.calls for name, given in each.items()]


def _in_full(name: str, given: Any) -> tuple[str, dict[str, Any]]:
    tool = _SHORT.get(name)
    if isinstance(given, dict):
        return (tool.name if tool else name), given
    names = tool.input_schema["required"] if tool else []
    values = given if isinstance(given, list) else [given]
    return (tool.name if tool else name), dict(zip(names, values, strict=True))


async def ask(entry: Entry) -> AskedQuestion:
    """Ask a question, play a result for every call, and take the answer."""
    turns = [UserMessage(text) if n % 2 == 0 else AssistantMessage(text) for n, text in enumerate(entry.before)]
    messages: tuple[Message, ...] = (*turns, UserMessage(entry.ask))
    calls: list[ToolCall] = []
    for _ in range(_MOST_ROUNDS):
        message = (await response(*messages, tools=entry.definitions)).message
        if not message.tool_calls:
            break
        calls += message.tool_calls
        played = tuple(ToolResponse(each.id, each.name, _result(each.name, entry)) for each in message.tool_calls)
        messages = (*messages, message, ToolResponseMessage(played))
    return AskedQuestion([(each.name, json.loads(each.arguments)) for each in calls], message.text)


def _result(name: str, entry: Entry) -> str:
    short = next((short for short, tool in _SHORT.items() if tool.name == name), name)
    result = entry.results.get(short, RESULTS.get(name, {"played": 1}))
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
