"""The offline model in a conversation: follow-ups, what was said before, and plans kept as a todo list."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from app.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, UserMessage
from app.sandbox import create_sandbox
from app.tool_calling.definition import ToolDefinition
from app.tools.module import discover
from tests.chat_models.test_offline import (
    ALARM,
    ALL,
    CLOCK,
    CLOCK_RESULT,
    ORDER,
    TRANSLATE,
    answered,
    parameters,
    response,
    text,
)
from tests.serving import events_of, running, service

README = Path(__file__).parents[2] / "README.md"
ITEM = parameters("id", "text", "status", id=text(), text=text(), status={"enum": ["pending", "completed"]})
WRITE = ToolDefinition("todo_write", "Keep the task list", parameters("todos", todos={"type": "array", "items": ITEM}))
READ = ToolDefinition("todo_read", "Show the task list", parameters())


def talk(*questions: str) -> tuple[Message, ...]:
    """A conversation of these questions, each but the last answered."""
    pairs = [(UserMessage(each), AssistantMessage("An answer.")) for each in questions]
    return tuple(message for pair in pairs for message in pair)[:-1]


async def calls_for(*questions: str) -> list[dict[str, Any]]:
    """The arguments of the calls for the last of these questions."""
    answer = await response(*talk(*questions), tools=ALL)
    return [json.loads(call.arguments) for call in answer.message.tool_calls]


async def said(*questions: str, tools: tuple[ToolDefinition, ...] = ALL) -> str:
    answer = await response(*talk(*questions), tools=tools)
    assert answer.message.tool_calls == ()
    return answer.message.text


@asynccontextmanager
async def toolchat() -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service with the offline model, and the tools' upstreams played by the sandbox."""
    sandbox = uvicorn.Server(uvicorn.Config(create_sandbox(), log_config=None, lifespan="off"))
    async with running(sandbox) as url, service(CHAT_PROVIDER="offline", SANDBOX_URL=url) as client:
        yield client


async def planned(client: httpx.AsyncClient, question: str, session: str = "s-1") -> dict[str, Any]:
    """The whole answer to a question that is asked with the todo list."""
    found = await client.get(
        "/todo/chat", params={"query": question, "sessionId": session}, headers={"Accept": "application/json"}
    )
    assert found.status_code == 200, found.text
    document: dict[str, Any] = found.json()
    return document


@pytest.mark.parametrize(
    ("questions", "zones"),
    [
        (("东京现在几点？", "那纽约呢？"), ["America/New_York"]),
        (("What time is it in Tokyo?", "And in Paris?"), ["Europe/Paris"]),
        (("What time is it in Tokyo?", "what about London?"), ["Europe/London"]),
        (("东京现在几点？", "那纽约呢？", "还有巴黎呢？"), ["Europe/Paris"]),
        (("纽约和东京现在分别是几点？", "那伦敦呢"), ["Europe/London"]),
        (("time in Tokyo", "New York and London?"), ["America/New_York", "Europe/London"]),
        (("法国巴黎现在几点", "那纽约呢"), ["America/New_York"]),
        (("现在几点？", "北京"), ["Asia/Shanghai"]),
        (("what time is it?", "Paris"), ["Europe/Paris"]),
        (("weather in Tokyo", "and what time is it?"), ["Asia/Tokyo"]),
    ],
)
async def test_a_place_alone_is_asked_about_as_the_place_before(questions: tuple[str, ...], zones: list[str]) -> None:
    """Only the new place is looked up, with the tool of the question before."""
    assert await calls_for(*questions) == [{"timeZoneId": zone} for zone in zones]


@pytest.mark.parametrize(
    ("questions", "city", "days"),
    [
        (("上海未来三天天气怎么样", "北京呢"), "北京", 3),
        (("weather in Springfield tomorrow", "and in Paris?"), "Paris", 2),
        (("weather in Paris tomorrow", "what about Springfield?"), "Springfield", 2),
        (("weather in Paris, France", "what about Rome, Italy?"), "Rome, Italy", 1),
        (("请告诉我北京1天以后的天气", "那后天呢？"), "北京", 3),
        (("weather in Paris", "and tomorrow?"), "Paris", 2),
        (("weather in Paris tomorrow", "and in 3 days?"), "Paris", 4),
        (("东京现在几点？", "那天气呢？"), "东京", 1),
    ],
)
async def test_a_follow_up_keeps_what_it_does_not_name(questions: tuple[str, ...], city: str, days: int) -> None:
    """A new place keeps the days, a new day keeps the place, a new topic keeps the place."""
    assert await calls_for(*questions) == [{"city": city, "days": days}]


@pytest.mark.parametrize(
    ("questions", "q", "target"),
    [
        (("把“早上好”翻译成日语", "那“晚安”呢？"), "晚安", "ja"),
        (("Translate hello to French", "And goodbye?"), "goodbye", "fr"),
        (("translate a to French", "what about b?"), "b", "fr"),
        (("how do you say thank you in Japanese?", "and “good night”?"), "good night", "ja"),
        (("把你好翻译成日语", "那法语呢？"), "你好", "fr"),
        (("Translate hello to French", "and into German?"), "hello", "de"),
    ],
)
async def test_a_text_or_a_language_alone_is_translated_as_the_one_before(
    questions: tuple[str, ...], q: str, target: str
) -> None:
    """The rest of the request stays as it was."""
    assert await calls_for(*questions) == [{"q": q, "from": "auto", "to": target}]


@pytest.mark.parametrize(
    "questions",
    [
        ("东京现在几点？", "谢谢"),
        ("东京现在几点？", "那你呢？"),
        ("Translate hello to French", "and who is the president?"),
        ("Translate hello to French", "thanks"),
        ("给我讲个故事", "那纽约呢？"),
        ("那纽约呢？",),
    ],
)
async def test_what_names_nothing_or_follows_nothing_calls_nothing(questions: tuple[str, ...]) -> None:
    """A follow-up is not read into chit-chat, nor an intent into a lone name."""
    assert await calls_for(*questions) == []


async def test_a_follow_up_is_answered_in_its_own_language() -> None:
    """English after Chinese is answered in English, and a bare name in the language of the question before."""
    for last, answer in (("And in Paris?", "In Paris it is"), ("巴黎", "巴黎现在是")):
        messages = (
            *talk("东京现在几点？", last),
            AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, '{"timeZoneId":"Europe/Paris"}'),)),
            ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT)),)),
        )
        assert (await response(*messages, tools=ALL)).message.text.startswith(answer)


async def test_results_of_earlier_questions_are_not_told_again() -> None:
    """A conversation that keeps its tool rounds leads to a new look-up, and only that is told."""
    old = ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT | {"time": "01:01:01"})),))
    new = ToolResponseMessage((ToolResponse("call_2", CLOCK.name, json.dumps(CLOCK_RESULT)),))
    before = (UserMessage("东京几点"), AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, "{}"),)), old)
    asked = (*before, AssistantMessage("东京现在是……"), UserMessage("那北京呢？"))
    (call,) = (await response(*asked, tools=(CLOCK,))).message.tool_calls
    assert call.id == "call_2"
    told = (await response(*asked, AssistantMessage(tool_calls=(call,)), new, tools=(CLOCK,))).message.text
    assert "20:53:31" in told
    assert "01:01:01" not in told


@pytest.mark.parametrize(
    ("questions", "answer"),
    [
        (("东京现在几点？", "谢谢", "我刚才问了什么？"), "你刚才问的是：“谢谢”"),
        (("What time is it in Tokyo?", "What did I just ask?"), 'You asked: "What time is it in Tokyo?"'),
        (("a?", "b?", "What have I asked so far?"), 'You asked: "a?", "b?"'),
        (("甲？", "乙？", "我都问了哪些问题？"), "你刚才问的是：“甲？”“乙？”"),
        (("我刚才问了什么？",), "在这之前你没有问过别的。"),
        (("What was my last question?",), "You asked nothing before this."),
        (("我叫小明", "我叫什么名字？"), "你叫小明。"),
        (("我叫小明，请问东京几点", "我是谁"), "你叫小明。"),
        (("My name is Ann", "What is my name?"), "Your name is Ann."),
        (("Hi, my name's Ann Lee. How are you?", "what's my name"), "Your name is Ann Lee."),
        (("My name is Ann", "Call me Bob!", "Who am I?"), "Your name is Bob."),
        (("我叫什么名字？",), "这次对话里你还没有告诉我你的名字。"),
        (("call me later", "What is my name?"), "You have not told me your name here."),
        (("我叫小明",), "你好，小明。"),
        (("Hello, my name is Ann.",), "Hello, Ann."),
    ],
)
async def test_what_the_user_said_is_told_in_his_own_words_or_said_to_be_unknown(
    questions: tuple[str, ...], answer: str
) -> None:
    """Nothing but what stands in the conversation, with tools and without."""
    assert await said(*questions) == answer
    assert await said(*questions, tools=()) == answer


async def test_a_very_long_earlier_question_is_quoted_in_part() -> None:
    """A quotation has a bound."""
    assert len(await said("x" * 5000, "What did I just ask?")) < 400


@pytest.mark.parametrize(
    "result",
    [
        json.dumps(CLOCK_RESULT) + "\n\n<reminder>Update your todos.</reminder>",
        "<reminder>Update your todos.</reminder>\n" + json.dumps(CLOCK_RESULT),
        "It is 20:53:31.\n\n<reminder>Update\nyour todos.</reminder>",
        '"It is 20:53:31."\n\n<reminder>a</reminder><reminder>b</reminder>',
    ],
)
async def test_a_reminder_to_the_model_is_not_told_to_the_user(result: str) -> None:
    """The result beside it is read as if the reminder were not there."""
    answer = await answered("time in Beijing", result)
    assert "20:53:31" in answer
    assert "reminder" not in answer
    assert "description" not in answer


async def test_a_reminder_that_is_part_of_a_result_is_told() -> None:
    """What the user himself had translated is no word to the model."""
    result = {"from": "zh", "to": "en", "text": "<reminder>Tea</reminder>"}
    assert await answered("翻译：茶", result, TRANSLATE) == "译文（英语）：<reminder>Tea</reminder>"


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("What time is it in Paris and tell me a joke", '"tell me a joke"'),
        ("Tell me a joke and the time in Paris", '"Tell me a joke"'),
        ("What time is it in Paris? Who is the president?", '"Who is the president"'),
        ("北京几点了，再讲个笑话", "“讲个笑话”"),
    ],
)
async def test_a_part_that_no_tool_fits_is_said_to_be_unanswered(question: str, part: str) -> None:
    """The known part is answered, and the other one is named."""
    answer = await answered(question, CLOCK_RESULT)
    assert "20:53:31" in answer
    assert part in answer


@pytest.mark.parametrize(
    "question",
    ["Time in Paris? Please tell me.", "Hello! I am Bob. Time in Paris?", "time in Tokyo, and give me the date too"],
)
async def test_politeness_is_not_called_an_unanswered_part(question: str) -> None:
    """What comes with the answer, or asks for nothing, gets no remark."""
    assert len((await answered(question, CLOCK_RESULT)).splitlines()) == 1


async def test_vancouver_in_washington_is_one_place_and_not_the_canadian_one() -> None:
    """The state is called like a city of the table, and qualifies the place all the same."""
    assert "Vancouver, Washington" in await said("time in Vancouver, Washington", tools=(CLOCK,))


@pytest.mark.parametrize(
    ("question", "texts", "zones"),
    [
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
    ],
)
async def test_a_plan_is_written_down_done_step_by_step_and_ticked_off(
    question: str, texts: list[str], zones: list[str]
) -> None:
    """The list comes first and alone, one step is in progress while it is done, and in the end all are completed."""
    async with toolchat() as client:
        answer = await planned(client, question)
        shown = (await client.get("/todo/s-1")).json()
    updates = [each["arguments"]["items"] for each in answer["tool_calls"] if each["name"] == "todoUpdate"]
    clocks = [each["arguments"]["timeZoneId"] for each in answer["tool_calls"] if each["name"] != "todoUpdate"]
    assert [[item["text"] for item in each] for each in updates] == [texts] * (len(texts) + 1)
    for done, items in enumerate(updates):
        statuses = ["completed"] * done + ["in_progress"] + ["pending"] * len(texts)
        assert [item["status"] for item in items] == statuses[: len(texts)]
    assert clocks == zones
    assert {each["outcome"] for each in answer["tool_calls"]} == {"ok"}
    assert [each["name"] for each in answer["tool_calls"] if each["round"] == 1] == ["todoUpdate"]
    assert answer["rounds"] == len(texts) + 3
    assert shown["completed"] == shown["total"] == len(texts)
    assert [line.split(":")[0].split("：")[0] for line in answer["answer"].splitlines()] == [
        f"{n}. {each}" for n, each in enumerate(texts, start=1)
    ]
    assert all(zone in line for zone, line in zip(zones, answer["answer"].splitlines(), strict=True))


async def test_a_step_that_cannot_be_done_stays_pending_and_the_answer_says_so() -> None:
    """No tool, no time zone, a failed look-up: none of them is ticked off, and the others are done."""
    question = "Todo: buy milk; time in Atlantis; weather in Nowhereville; time in Paris"
    async with toolchat() as client:
        answer = await planned(client, question)
        shown = (await client.get("/todo/s-1")).json()
        read = await planned(client, "what is on my todo list?")
    assert [each["status"] for each in shown["items"]] == ["pending"] * 3 + ["completed"]
    lines = [each for each in answer["answer"].splitlines() if each[:2] in ("1.", "2.", "3.", "4.")]
    assert [" (still pending):" in each for each in lines] == [True, True, True, False]
    assert "None of the tools can do this step" in lines[0]
    assert '"Atlantis"' in lines[1]
    assert "look-up failed" in lines[2]
    assert [each["name"] for each in read["tool_calls"]] == ["todoRead"]
    assert read["answer"] == shown["text"]


@pytest.mark.parametrize("count", [4, 7, 8, 15, 21])
async def test_a_long_plan_is_done_within_the_rounds_and_its_rest_is_named(count: int) -> None:
    """Each step's result stands behind it, however many there are; what is beyond twenty is said to be left out."""
    cities = (
        *("Paris", "Rome", "London", "Tokyo", "Cairo", "Oslo", "Berlin", "Madrid", "Vienna", "Athens", "Lisbon"),
        *("Dublin", "Beijing", "Seoul", "Bangkok", "Hanoi", "Manila", "Jakarta", "Sydney", "Moscow", "Delhi"),
    )[:count]
    async with toolchat() as client:
        answer = await planned(client, "Plan: " + "; ".join(f"time in {city}" for city in cities))
        shown = (await client.get("/todo/s-1")).json()
    lines = answer["answer"].splitlines()
    assert (shown["completed"], shown["total"]) == (min(count, 20), min(count, 20))
    assert max(each["round"] for each in answer["tool_calls"]) < 10
    assert all(f"In {city} it is" in line for city, line in zip(cities[:20], lines, strict=False))
    assert lines[20:] == ["I look up at most 20 at a time and left out: time in Delhi."] * (count > 20)


async def test_a_list_that_cannot_be_written_does_not_stop_the_steps() -> None:
    """The steps are done all the same, the list is not tried again, and the failure is told."""
    failure = json.dumps({"error": {"kind": "no-conversation", "message": "there is no conversation"}})
    messages: tuple[Message, ...] = (UserMessage("Plan: time in Paris; time in Rome"),)
    called: list[str] = []
    while calls := (answer := await response(*messages, tools=(CLOCK, WRITE))).message.tool_calls:
        results = tuple(
            ToolResponse(each.id, each.name, failure if each.name == WRITE.name else json.dumps(CLOCK_RESULT))
            for each in calls
        )
        messages = (*messages, answer.message, ToolResponseMessage(results))
        called += [each.name for each in calls]
        assert len(called) <= 3
    assert called == [WRITE.name, CLOCK.name, CLOCK.name]
    assert answer.message.text.count("20:53:31") == 2
    assert "there is no conversation" in answer.message.text


async def test_the_list_is_told_to_the_client_while_the_plan_goes_on() -> None:
    """A stream shows how many steps are done after each of them."""
    async with toolchat() as client:
        stream = await client.get(
            "/todo/chat",
            params={"query": "计划：1. 北京时间 2. 东京时间", "sessionId": "s-1"},
            headers={"Accept": "text/event-stream"},
        )
    done = [each.data["completed"] for each in events_of(stream.text) if each.name == "todo"]
    assert done == [0, 1, 2]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("待办清单是什么样了", [READ.name]),
        ("show me my to-do list", [READ.name]),
        ("What is the plan?", [READ.name]),
        ("北京时间，还有我的待办清单", [CLOCK.name, READ.name]),
        ("don't show my todo list", []),
        ("不要计划：1. 北京时间 2. 东京时间", []),
        ("翻译：计划：甲；乙", [TRANSLATE.name]),
        ("把“计划：甲；乙”翻译成英文", [TRANSLATE.name]),
        ("translate plan to French", [TRANSLATE.name]),
        ("I plan to go to Paris tomorrow, what time is it there?", [CLOCK.name]),
        ("update the status: check what remains of the tasks", []),
    ],
)
async def test_the_list_is_read_or_written_only_when_that_is_asked(question: str, names: list[str]) -> None:
    """A plan in a text, a plan to travel and a prohibition are no plan to write."""
    answer = await response(UserMessage(question), tools=(*ALL, WRITE, READ))
    assert [each.name for each in answer.message.tool_calls] == names


@pytest.mark.parametrize("question", ["把买牛奶加到待办清单", "Add to my todo list: milk; bread", "清空待办"])
async def test_a_change_of_the_list_that_it_cannot_make_is_said_and_not_made(question: str) -> None:
    """The list is shown as it is, with a word that it did not change."""
    answer = await response(UserMessage(question), tools=(*ALL, WRITE, READ))
    assert [each.name for each in answer.message.tool_calls] == [READ.name]
    told = await answered(question, "[ ] #1: a\n(0/1 completed)", READ)
    assert told.startswith("[ ] #1: a\n(0/1 completed)")
    both = (*ALL, WRITE, READ)
    call, shown = answer.message, ToolResponse("call_1", READ.name, "No todos.")
    last = await response(UserMessage(question), call, ToolResponseMessage((shown,)), tools=both)
    assert re.search("没有改动|did not change", last.message.text)


async def test_a_list_of_another_service_is_known_by_its_shape() -> None:
    """Not the tool's name makes it a todo list, but items with a text and a status."""
    answer = await response(UserMessage("Plan: time in Paris; time in Rome"), tools=(CLOCK, WRITE))
    (call,) = answer.message.tool_calls
    assert call.name == WRITE.name
    assert [item["status"] for item in json.loads(call.arguments)["todos"]] == ["in_progress", "pending"]
    without = await response(UserMessage("Plan: time in Paris; time in Rome"), tools=(CLOCK, READ))
    assert [each.name for each in without.message.tool_calls] == [CLOCK.name, CLOCK.name]


def ordinary_questions() -> list[str]:
    """What the README and the API's documentation ask, and the defaults; not what asks for a plan."""
    lines = [line for line in README.read_text().splitlines() if "/todo/" not in line]
    quoted = re.findall(r'"query=([^"]+)"', "\n".join(lines))
    modules = discover()
    examples = [query for each in modules for query in each.examples.values()]
    return list(dict.fromkeys([*quoted, *(each.default_query for each in modules if each.default_query), *examples]))


async def test_ordinary_questions_are_answered_as_without_the_list() -> None:
    """Every documented question makes the same calls with all tools of the service as with those that are no list."""
    questions, answered_by_tools = ordinary_questions(), 0
    async with toolchat() as client:
        folders = (await client.get("/tools")).json()
        names = [tool["name"] for folder in folders for tool in folder["tools"] if tool["kind"] == "function"]
        assert "todoUpdate" in names
        for question in questions:
            made = []
            for tools in (names, [each for each in names if not each.startswith("todo")]):
                params = {"userInput": question, "tools": ",".join(tools)}
                answer = (await client.get("/chat", params=params, headers={"Accept": "application/json"})).json()
                made.append([(each["name"], each["arguments"]) for each in answer["tool_calls"]])
            assert made[0] == made[1], question
            answered_by_tools += bool(made[0])
    assert answered_by_tools >= 5


async def test_words_of_a_todo_tool_do_not_draw_other_questions_to_it() -> None:
    """A question about something else goes to the tool that fits it, whatever a list's description says."""
    for question, name in (("update the status of order 77", ORDER.name), ("set an alarm at 7:30", ALARM.name)):
        answer = await response(UserMessage(question), tools=(WRITE, READ, ORDER, ALARM))
        assert [each.name for each in answer.message.tool_calls] == [name]


PIECES = st.sampled_from(
    [
        "计划：",
        "Plan:",
        "todo",
        "1. ",
        "2、",
        "3) ",
        "；",
        "\n",
        "，",
        "然后",
        "time in ",
        "Paris",
        "北京",
        "时间",
        "那",
        "呢？",
    ]
)


@settings(max_examples=60, deadline=None, database=None)
@given(questions=st.lists(st.lists(PIECES | st.text(max_size=9), max_size=12).map("".join), min_size=1, max_size=4))
async def test_no_conversation_makes_it_raise_and_every_plan_ends(questions: list[str]) -> None:
    """Whatever was said before and however a plan reads, there is an answer before the rounds are used up."""
    messages = talk(*questions)
    for _ in range(10):
        answer = await response(*messages, tools=(CLOCK, WRITE, READ))
        if not answer.message.tool_calls:
            break
        results = tuple(
            ToolResponse(each.id, each.name, json.dumps(CLOCK_RESULT)) for each in answer.message.tool_calls
        )
        messages = (*messages, answer.message, ToolResponseMessage(results))
    assert answer.message.text.strip()
