"""When the todo list is read or written, and when it is left alone."""

import json
import re
from typing import Any

import httpx
import pytest

from app.tools.discovery import discover
from tests.command_line import ROOT
from tests.offline.asking import (
    ALARM,
    CLOCK,
    ORDER,
    TODO_READ,
    TODO_WRITE,
    response,
)
from toolchat.messages import UserMessage


async def test_any_tool_for_items_with_text_and_status_is_a_todo_list() -> None:
    answer = await response(UserMessage("Plan: time in Paris; time in Rome"), tools=(CLOCK, TODO_WRITE))
    (call,) = answer.message.tool_calls
    assert call.name == TODO_WRITE.name
    assert [item["status"] for item in json.loads(call.arguments)["todos"]] == ["in_progress", "pending"]


async def test_without_a_list_to_write_the_steps_of_a_plan_are_done_at_once() -> None:
    answer = await response(UserMessage("Plan: time in Paris; time in Rome"), tools=(CLOCK, TODO_READ))
    assert [each.name for each in answer.message.tool_calls] == [CLOCK.name, CLOCK.name]


def ordinary_questions() -> list[str]:
    """What the README and the documentation ask, and the defaults; not what asks for a plan."""
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    lines = [line for page in pages for line in page.read_text().splitlines() if "/todo/" not in line]
    quoted = re.findall(r'"(?:query|userInput)=([^"]+)"', "\n".join(lines))
    modules = discover()
    examples = [query for each in modules for query in each.examples.values()]
    return list(dict.fromkeys([*quoted, *(each.default_query for each in modules if each.default_query), *examples]))


async def calls_with(tools: list[str], question: str, client: httpx.AsyncClient) -> list[tuple[str, Any]]:
    params = {"userInput": question, "tools": ",".join(tools)}
    answer = (await client.get("/chat", params=params, headers={"Accept": "application/json"})).json()
    return [(each["name"], each["arguments"]) for each in answer["tool_calls"]]


async def test_every_documented_question_makes_the_same_calls_as_without_the_list(toolchat: httpx.AsyncClient) -> None:
    folders = (await toolchat.get("/tools")).json()
    names = [tool["name"] for folder in folders for tool in folder["tools"] if tool["kind"] == "function"]
    assert "todoUpdate" in names
    others = [each for each in names if not each.startswith("todo")]
    answered_by_tools = 0
    for question in ordinary_questions():
        calls = await calls_with(names, question, toolchat)
        assert calls == await calls_with(others, question, toolchat), question
        answered_by_tools += bool(calls)
    assert answered_by_tools >= 5


@pytest.mark.parametrize(
    ("question", "name"), [("update the status of order 77", ORDER.name), ("set an alarm at 7:30", ALARM.name)]
)
async def test_words_of_a_todo_tool_do_not_draw_other_questions_to_it(question: str, name: str) -> None:
    # A question about something else goes to the tool that fits it, whatever a list's description says.
    answer = await response(UserMessage(question), tools=(TODO_WRITE, TODO_READ, ORDER, ALARM))
    assert [each.name for each in answer.message.tool_calls] == [name]
