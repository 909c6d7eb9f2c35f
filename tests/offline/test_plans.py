"""A plan is kept as a todo list and done step by step."""

import itertools
import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.offline.asking import CLOCK, CLOCK_RESULT, TODO_READ, TODO_WRITE, response, talk
from tests.serving import events_of
from toolchat.messages import Message, ToolResponse, ToolResponseMessage, UserMessage

_sessions = itertools.count(1)


@dataclass(frozen=True)
class DonePlan:
    """A plan of the given steps, each of which asks for the time in a zone, after the service has done it."""

    texts: list[str]
    zones: list[str]
    answer: dict[str, Any]
    shown: dict[str, Any]
    """What the todo list's own route shows in the end."""

    @property
    def lists(self) -> list[list[dict[str, Any]]]:
        """The todo list, each time that it was written."""
        return [each["arguments"]["items"] for each in self.answer["tool_calls"] if each["name"] == "todoUpdate"]


PLANS = [
    (
        "帮我计划：1. 查北京时间 2. 查东京时间",
        ["查北京时间", "查东京时间"],
        ["Asia/Shanghai", "Asia/Tokyo"],
    ),
    (
        "Plan: check the time in Paris; check the time in Tokyo",
        ["check the time in Paris", "check the time in Tokyo"],
        ["Europe/Paris", "Asia/Tokyo"],
    ),
    ("todo list: time in Paris", ["time in Paris"], ["Europe/Paris"]),
    (
        "Plan: time in “Paris”, or “the city of love; light”; time in Rome",
        ["time in “Paris”, or “the city of love; light”", "time in Rome"],
        ["Europe/Paris", "Europe/Rome"],
    ),
    ("待办：北京时间；纽约", ["北京时间", "纽约"], ["Asia/Shanghai", "America/New_York"]),
    ("请计划一下，先查北京时间，然后查东京时间", ["查北京时间", "查东京时间"], ["Asia/Shanghai", "Asia/Tokyo"]),
    ("1) time in Paris\n2) time in Rome", ["time in Paris", "time in Rome"], ["Europe/Paris", "Europe/Rome"]),
    (
        "Plan:\n- time in Rome\n- then time in Oslo\n- time in Paris\n- time in Cairo",
        ["time in Rome", "time in Oslo", "time in Paris", "time in Cairo"],
        ["Europe/Rome", "Europe/Oslo", "Europe/Paris", "Africa/Cairo"],
    ),
]


def new_session() -> str:
    """A conversation that no other test has."""
    return f"s-{next(_sessions)}"


async def planned(client: httpx.AsyncClient, question: str, session: str) -> dict[str, Any]:
    """The whole answer to a question that is asked with the todo list."""
    found = await client.get(
        "/todo/chat", params={"query": question, "sessionId": session}, headers={"Accept": "application/json"}
    )
    assert found.status_code == 200, found.text
    document: dict[str, Any] = found.json()
    return document


async def shown(client: httpx.AsyncClient, session: str) -> dict[str, Any]:
    document: dict[str, Any] = (await client.get(f"/todo/{session}")).json()
    return document


@pytest.fixture(scope="module", params=PLANS, ids=[question for question, *_ in PLANS])
async def done(request: pytest.FixtureRequest, toolchat: httpx.AsyncClient) -> DonePlan:
    question, texts, zones = request.param
    session = new_session()
    answer = await planned(toolchat, question, session)
    return DonePlan(texts, zones, answer, await shown(toolchat, session))


async def test_a_plan_is_written_down_whole_before_anything_else_is_done(done: DonePlan) -> None:
    assert [each["name"] for each in done.answer["tool_calls"] if each["round"] == 1] == ["todoUpdate"]
    assert [item["text"] for item in done.lists[0]] == done.texts


async def test_one_step_after_the_other_is_in_progress_and_ticked_off(done: DonePlan) -> None:
    steps = len(done.texts)
    assert len(done.lists) == steps + 1
    for finished, items in enumerate(done.lists):
        statuses = ["completed"] * finished + ["in_progress"] + ["pending"] * steps
        assert [(item["text"], item["status"]) for item in items] == list(zip(done.texts, statuses, strict=False))


async def test_in_the_end_the_list_shows_every_step_as_completed(done: DonePlan) -> None:
    assert done.shown["completed"] == done.shown["total"] == len(done.texts)


async def test_each_step_is_looked_up_once_and_in_a_round_of_its_own(done: DonePlan) -> None:
    calls = done.answer["tool_calls"]
    assert [each["arguments"]["timeZoneId"] for each in calls if each["name"] != "todoUpdate"] == done.zones
    assert {each["outcome"] for each in calls} == {"ok"}
    assert done.answer["rounds"] == len(done.texts) + 3


async def test_the_answer_lists_the_result_of_each_step(done: DonePlan) -> None:
    lines = done.answer["answer"].splitlines()
    steps = [f"{number}. {each}" for number, each in enumerate(done.texts, start=1)]
    assert [line.split(":")[0].split("：")[0] for line in lines] == steps
    assert all(zone in line for zone, line in zip(done.zones, lines, strict=True))


# No tool, no time zone, a look-up that fails, and one that does not.
HALF_POSSIBLE = "Todo: buy milk; time in Atlantis; weather in Nowhereville; time in Paris"


async def test_a_step_that_cannot_be_done_stays_pending_and_the_others_are_done(toolchat: httpx.AsyncClient) -> None:
    session = new_session()
    await planned(toolchat, HALF_POSSIBLE, session)
    items = (await shown(toolchat, session))["items"]
    assert [each["status"] for each in items] == ["pending"] * 3 + ["completed"]


async def test_the_answer_lists_pending_steps_with_the_reason(toolchat: httpx.AsyncClient) -> None:
    answer = (await planned(toolchat, HALF_POSSIBLE, new_session()))["answer"]
    lines = [each for each in answer.splitlines() if each[:2] in ("1.", "2.", "3.", "4.")]
    assert [" (still pending):" in each for each in lines] == [True, True, True, False]
    assert "None of the tools can do this step" in lines[0]
    assert '"Atlantis"' in answer[answer.index(lines[1]) : answer.index(lines[2])]
    assert "look-up failed" in lines[2]


async def test_the_list_of_a_plan_can_be_shown_afterwards(toolchat: httpx.AsyncClient) -> None:
    session = new_session()
    await planned(toolchat, HALF_POSSIBLE, session)
    read = await planned(toolchat, "what is on my todo list?", session)
    assert [each["name"] for each in read["tool_calls"]] == ["todoRead"]
    assert read["answer"] == (await shown(toolchat, session))["text"]


@pytest.mark.parametrize("count", [4, 7, 8, 15, 21])
async def test_a_long_plan_finishes_within_the_rounds_and_steps_beyond_twenty_are_named(
    count: int, toolchat: httpx.AsyncClient
) -> None:
    cities = (
        *("Paris", "Rome", "London", "Tokyo", "Cairo", "Oslo", "Berlin", "Madrid", "Vienna", "Athens", "Lisbon"),
        *("Dublin", "Beijing", "Seoul", "Bangkok", "Hanoi", "Manila", "Jakarta", "Sydney", "Moscow", "Delhi"),
    )[:count]
    session = new_session()
    answer = await planned(toolchat, "Plan: " + "; ".join(f"time in {city}" for city in cities), session)
    items = await shown(toolchat, session)
    lines = answer["answer"].splitlines()
    assert (items["completed"], items["total"]) == (min(count, 20), min(count, 20))
    assert max(each["round"] for each in answer["tool_calls"]) < 10
    assert all(f"In {city} it is" in line for city, line in zip(cities[:20], lines, strict=False))
    assert lines[20:] == ["I look up at most 20 at a time and left out: time in Delhi."] * (count > 20)


async def test_a_failed_list_update_is_reported_and_does_not_stop_the_steps() -> None:
    failure = json.dumps({"error": {"kind": "no-conversation", "message": "there is no conversation"}})
    messages: tuple[Message, ...] = (UserMessage("Plan: time in Paris; time in Rome"),)
    called: list[str] = []
    while calls := (answer := await response(*messages, tools=(CLOCK, TODO_WRITE))).message.tool_calls:
        results = tuple(
            ToolResponse(each.id, each.name, failure if each.name == TODO_WRITE.name else json.dumps(CLOCK_RESULT))
            for each in calls
        )
        messages = (*messages, answer.message, ToolResponseMessage(results))
        called += [each.name for each in calls]
        assert len(called) <= 3
    assert called == [TODO_WRITE.name, CLOCK.name, CLOCK.name]
    assert answer.message.text.count("20:53:31") == 2
    assert "there is no conversation" in answer.message.text


async def test_a_plan_that_is_cut_off_reports_the_results_so_far() -> None:
    # In the last round that a question gets, no tools are offered any more.
    question, tools = UserMessage("Plan: time in Paris; time in Rome; time in Oslo"), (CLOCK, TODO_WRITE)
    messages: tuple[Message, ...] = (question,)
    for _ in range(2):
        calling = (await response(*messages, tools=tools)).message
        played = tuple(ToolResponse(each.id, each.name, json.dumps(CLOCK_RESULT)) for each in calling.tool_calls)
        messages = (*messages, calling, ToolResponseMessage(played))
    last = (await response(*messages)).message
    assert last.tool_calls == ()
    assert "20:53:31" in last.text


async def test_a_stream_reports_the_progress_after_each_step(toolchat: httpx.AsyncClient) -> None:
    stream = await toolchat.get(
        "/todo/chat",
        params={"query": "计划：1. 北京时间 2. 东京时间", "sessionId": new_session()},
        headers={"Accept": "text/event-stream"},
    )
    done = [each.data["completed"] for each in events_of(stream.text) if each.name == "todo"]
    assert done == [0, 1, 2]


PIECES = st.sampled_from(
    [
        *("计划：", "Plan:", "todo", "1. ", "2、", "3) ", "；", "\n", "，", "然后"),
        *("time in ", "Paris", "北京", "时间", "那", "呢？"),
    ]
)


@settings(max_examples=60, deadline=None, database=None)
@given(questions=st.lists(st.lists(PIECES | st.text(max_size=9), max_size=12).map("".join), min_size=1, max_size=4))
async def test_no_conversation_makes_it_raise_and_every_plan_ends_before_the_rounds_do(questions: list[str]) -> None:
    messages = talk(*questions)
    for _ in range(10):
        answer = await response(*messages, tools=(CLOCK, TODO_WRITE, TODO_READ))
        if not answer.message.tool_calls:
            break
        results = tuple(
            ToolResponse(each.id, each.name, json.dumps(CLOCK_RESULT)) for each in answer.message.tool_calls
        )
        messages = (*messages, answer.message, ToolResponseMessage(results))
    assert answer.message.text.strip()
