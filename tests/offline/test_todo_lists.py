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
    ALL,
    CLOCK,
    ORDER,
    TODO_READ,
    TODO_WRITE,
    TRANSLATE,
    answered,
    response,
)
from toolchat.messages import ToolResponse, ToolResponseMessage, UserMessage


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("待办清单是什么样了", [TODO_READ.name]),
        ("show me my to-do list", [TODO_READ.name]),
        ("What is the plan?", [TODO_READ.name]),
        ("北京时间，还有我的待办清单", [CLOCK.name, TODO_READ.name]),
        ("don't show my todo list", []),
        ("不要计划：1. 北京时间 2. 东京时间", []),
        ("翻译：计划：甲；乙", [TRANSLATE.name]),
        ("把“计划：甲；乙”翻译成英文", [TRANSLATE.name]),
        ("translate plan to French", [TRANSLATE.name]),
        ("I plan to go to Paris tomorrow, what time is it there?", [CLOCK.name]),
        ("update the status: check what remains of the tasks", []),
    ],
)
async def test_the_list_is_read_or_written_only_on_request(question: str, names: list[str]) -> None:
    # A plan in a text, a plan to travel and a prohibition are no plan to write.
    answer = await response(UserMessage(question), tools=(*ALL, TODO_WRITE, TODO_READ))
    assert [each.name for each in answer.message.tool_calls] == names


CHANGES = ["把买牛奶加到待办清单", "Add to my todo list: milk; bread", "清空待办"]


@pytest.mark.parametrize("question", CHANGES)
async def test_instead_of_a_change_of_the_list_that_it_cannot_make_the_list_is_read(question: str) -> None:
    answer = await response(UserMessage(question), tools=(*ALL, TODO_WRITE, TODO_READ))
    assert [each.name for each in answer.message.tool_calls] == [TODO_READ.name]


@pytest.mark.parametrize("question", CHANGES)
async def test_an_unchanged_list_is_shown_as_it_is(question: str) -> None:
    told = await answered(question, "[ ] #1: a\n(0/1 completed)", TODO_READ)
    assert told.startswith("[ ] #1: a\n(0/1 completed)")


@pytest.mark.parametrize("question", CHANGES)
async def test_an_unsupported_change_of_the_list_is_reported(question: str) -> None:
    tools = (*ALL, TODO_WRITE, TODO_READ)
    call = (await response(UserMessage(question), tools=tools)).message
    shown = ToolResponseMessage((ToolResponse("call_1", TODO_READ.name, "No todos."),))
    last = await response(UserMessage(question), call, shown, tools=tools)
    assert re.search("没有改动|did not change", last.message.text)


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
