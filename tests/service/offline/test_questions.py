"""The list of questions that the offline model must answer, and every question that the product itself shows."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.command_line import ROOT
from tests.service.offline.asking import played
from tests.service.offline.tools import CLOCK, SETS, TRANSLATE, WEATHER

_SHORT = {"time": CLOCK.definition, "weather": WEATHER.definition, "translate": TRANSLATE.definition}


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
    results: dict[str, Any] = field(default_factory=dict)
    """Results by short names of tools; the usual ones where there is none."""
    asks: str = ""
    """The call that waits for a yes, as the answer shows it."""

    @property
    def expected(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls in full."""
        return [_in_full(name, given) for each in self.calls for name, given in each.items()]


def _in_full(name: str, given: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(given, dict):
        return name, given
    tool = _SHORT[name]
    values = given if isinstance(given, list) else [given]
    return tool.name, dict(zip(tool.input_schema["required"], values, strict=True))


_TEXT = Path(__file__).with_name("questions.yaml").read_text("utf-8")
QUESTIONS = [Entry(**each) for each in yaml.load(_TEXT, yaml.CSafeLoader)]


@pytest.mark.parametrize("entry", QUESTIONS, ids=[f"{n}-{each.ask[:40]}" for n, each in enumerate(QUESTIONS)])
async def test_a_question_of_the_list_makes_its_calls_and_gets_its_answer(entry: Entry) -> None:
    results = {_SHORT[name].name if name in _SHORT else name: each for name, each in entry.results.items()}
    calls, answer = await played(entry.ask, SETS[entry.tools], entry.before, results)
    assert [(each.name, json.loads(each.arguments)) for each in calls] == entry.expected
    assert [each for each in (entry.asks, *entry.has) if each not in answer] == [], answer
    assert [each for each in entry.lacks if each in answer] == [], answer
    # A call is proposed only where the list says so.
    assert bool(entry.asks) == bool(re.search("please confirm|请先确认", answer))


def shown_by_openapi(document: dict[str, Any]) -> Iterator[str]:
    """Each question that Swagger UI, and with it the chips of the page, shows."""
    for operations in document["paths"].values():
        for parameter in (each for operation in operations.values() for each in operation.get("parameters", [])):
            if parameter["name"] in ("query", "userInput"):
                schema = parameter["schema"]
                examples = [each["value"] for each in parameter.get("examples", {}).values()]
                yield from filter(None, (schema.get("default"), schema.get("example"), *examples))


OWN_MODELS = {
    "Describe the shop",
    "How many lamps are in stock?",
    "Look everywhere",
    "Ship it",
    "Where is order A-1042?",
    "What does it cost?",
    "When is high tide in Hull?",
    "Where is my order?",
    "Whose shop is it?",
    "Whose?",
    "订单 A-1042 发货了吗？",
}
"""Questions to a tool or a model that the page brings itself; other tests ask them."""


def shown_by_pages() -> Iterator[str]:
    """Each question in the READMEs and the documentation: in a command, as a default, as an example."""
    quoted = r'"(?:query|userInput)=([^"]+)"|default_query="([^"]+)"|\bask "([^"]+)"|\bprompt\("([^"]+)"\)'
    for page in (*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md")):
        for match in re.finditer(quoted, page.read_text(encoding="utf-8")):
            question = next(filter(None, match.groups()))
            if question != "..." and question not in OWN_MODELS:
                yield question


PAGE_ASKS = {"Delete this conversation?", "What would you like to know?", "删除这个对话？", "想知道什么？"}
"""What the page asks its user."""


def shown_by_the_page() -> Iterator[str]:
    """Each question that the page's own scripts offer to ask."""
    for script in (ROOT / "toolchat" / "service" / "pages" / "playground").glob("*.js"):
        yield from set(re.findall(r'"([^"\n]{4,60}[?？])"', script.read_text(encoding="utf-8"))) - PAGE_ASKS


async def test_every_question_that_the_product_shows_is_in_the_list(toolchat: httpx.AsyncClient) -> None:
    by_openapi = set(shown_by_openapi((await toolchat.get("/openapi.json")).json()))
    others = {*shown_by_pages(), *shown_by_the_page()}
    assert (len(by_openapi) >= 20, len(others) >= 10) == (True, True)
    assert sorted({*by_openapi, *others} - {each.ask for each in QUESTIONS}) == []


@pytest.mark.parametrize("question", ["hello", "你好"])
@pytest.mark.parametrize("tools", SETS)
async def test_a_refusal_proposes_sentences_that_call_a_tool(tools: str, question: str) -> None:
    _, refusal = await played(question, SETS[tools])
    proposed = [first or second for first, second in re.findall('"([^"]+)"|“([^”]+)”', refusal)]
    parameters = {name for each in SETS[tools] for name in each.definition.input_schema.get("properties", {})}
    for each in proposed:
        calls, answer = await played(each, SETS[tools])
        assert calls or re.search("please confirm|请先确认", answer), each
        assert not any(f"{name}: " in each for name in parameters), each
