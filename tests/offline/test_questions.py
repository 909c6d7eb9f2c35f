"""The list of questions that the offline model must answer, and every question that the product itself shows."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.command_line import ROOT
from tests.offline.listed import QUESTIONS, Entry, ask, expected


@pytest.mark.parametrize("entry", QUESTIONS, ids=[f"{n}-{each.ask[:40]}" for n, each in enumerate(QUESTIONS)])
async def test_a_question_of_the_list_makes_its_calls_and_gets_its_answer(entry: Entry) -> None:
    found = await ask(entry)
    assert found.calls == expected(entry)
    assert [each for each in entry.has if each not in found.answer] == [], found.answer
    assert [each for each in entry.lacks if each in found.answer] == [], found.answer


def shown_by_openapi(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each question that Swagger UI, and with it the chips of the page, shows at a path."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] in ("query", "userInput"):
                    schema = parameter["schema"]
                    examples = [each["value"] for each in parameter.get("examples", {}).values()]
                    for question in (schema.get("default"), schema.get("example"), *examples):
                        if question:
                            yield path, question


OWN_MODELS = {
    "Describe the shop",
    "How many lamps are in stock?",
    "Ship it",
    "Where is order A-1042?",
    "When is high tide in Hull?",
    "Whose shop is it?",
    "Whose?",
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
    for script in (ROOT / "app" / "pages" / "playground").glob("*.js"):
        yield from set(re.findall(r'"([^"\n]{4,60}[?？])"', script.read_text(encoding="utf-8"))) - PAGE_ASKS


def test_every_question_of_the_documentation_and_of_the_page_is_in_the_list() -> None:
    listed = {each.ask for each in QUESTIONS}
    shown = [*shown_by_pages(), *shown_by_the_page()]
    assert len(shown) >= 10
    assert sorted({each for each in shown if each not in listed}) == []


async def test_every_question_of_the_api_is_in_the_list(toolchat: httpx.AsyncClient) -> None:
    listed = {each.ask for each in QUESTIONS}
    shown = list(shown_by_openapi((await toolchat.get("/openapi.json")).json()))
    assert len({question for _, question in shown}) >= 20
    assert sorted({question for _, question in shown if question not in listed}) == []
