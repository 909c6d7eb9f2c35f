"""The offline model as a chat model: its turns, its stream, its place in the tool loop, the yes it asks for."""

import json
from collections.abc import Sequence
from typing import Annotated

import pytest
from pydantic import Field

from app.places.recognizers import find_city
from app.tools.weather.forecast import Weather
from tests.models.responding import events_of, streamed_text
from tests.service.offline.asking import CLOCK_RESULT, response
from tests.service.offline.tools import CLOCK, SETS
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.models.base import ChatOptions, ChatResponse, Prompt, TextDelta
from toolchat.service.offline.model import OfflineChatModel
from toolchat.tool_calling.callback import StaticToolCallbackResolver
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager
from toolchat.tool_calling.recognizers import Recognizer

ALL = SETS["all"]


async def test_the_last_question_counts_and_call_ids_are_new_in_the_conversation() -> None:
    messages = (
        SystemMessage("Answer in French."),
        UserMessage("东京和巴黎的时间"),
        AssistantMessage(tool_calls=(ToolCall("call_1", "t", "{}"), ToolCall("call_2", "t", "{}"))),
        ToolResponseMessage((ToolResponse("call_1", "t", "1"), ToolResponse("call_2", "t", "2"))),
        AssistantMessage("1 2"),
        UserMessage("伦敦和开罗呢，几点？"),
    )
    calls = (await response(*messages, tools=(CLOCK,))).message.tool_calls
    assert [call.id for call in calls] == ["call_3", "call_4"]
    assert [json.loads(call.arguments)["timeZoneId"] for call in calls] == ["Europe/London", "Africa/Cairo"]


async def test_streamed_pieces_are_several_and_together_the_text() -> None:
    *deltas, last = await events_of(OfflineChatModel(), Prompt((UserMessage("现在几点"),), stream=True))
    assert isinstance(last, ChatResponse)
    assert all(isinstance(each, TextDelta) for each in deltas)
    assert len(deltas) > 3
    assert streamed_text(deltas) == last.message.text


async def test_calls_that_may_not_be_parallel_are_made_one_after_another() -> None:
    messages: tuple[Message, ...] = (UserMessage("time in Paris and Tokyo"),)
    zones = []
    while calls := (answer := await said(messages)).message.tool_calls:
        zones.append([json.loads(each.arguments)["timeZoneId"] for each in calls])
        results = tuple(ToolResponse(each.id, each.name, CLOCK_RESULT) for each in calls)
        messages = (*messages, answer.message, ToolResponseMessage(results))
    assert zones == [["Europe/Paris"], ["Asia/Tokyo"]]
    assert [line[:11] for line in answer.message.text.splitlines()] == ["In Paris it", "In Tokyo it"]


async def test_a_call_that_is_forbidden_is_not_made() -> None:
    forbidden = ChatOptions(tool_choice="none")
    answer = await response(UserMessage("time in Paris"), tools=(CLOCK,), options=forbidden)
    assert answer.message.tool_calls == ()


async def said(messages: Sequence[Message]) -> ChatResponse:
    return await response(*messages, tools=(CLOCK,), options=ChatOptions(parallel_tool_calls=False))


@tool(name="getWeatherMethod", description="Weather of a city", read_only=True)
async def weather_of(
    city: Annotated[str, "city name", Recognizer(find_city)], days: Annotated[int, Field(ge=1, le=14)] = 1
) -> Weather:
    if city == "Atlantis":
        raise ToolExecutionError("there is no place 'Atlantis'", kind="no-such-place")
    return {"place": {"name": city}, "days": [{"date": "2026-11-20", "maxtemp_c": days}]}


@pytest.mark.parametrize(
    ("question", "answer", "outcomes"),
    [
        ("杭州今天的天气", "地点：名称 杭州\n预报：日期 2026-11-20，最高 1 °C", ["ok"]),
        (
            "weather in Atlantis and in Paris",
            "Nothing was found: there is no place 'Atlantis'.\nplace: name Paris\nforecast: date 2026-11-20, high 1 °C",
            ["error", "ok"],
        ),
    ],
)
async def test_the_loop_runs_its_calls_once_and_gets_an_answer(question: str, answer: str, outcomes: list[str]) -> None:
    advisors = (ToolCallingAdvisor(ToolCallingManager()),)
    client = ChatClient(OfflineChatModel(), StaticToolCallbackResolver(()), advisors)
    offered = FunctionToolCallback.from_function(weather_of)
    given_answer = await client.prompt(question).tools(offered).call().response()
    assert given_answer.message.text == answer
    assert [each.outcome for each in given_answer.executions] == outcomes
    assert given_answer.rounds == 2


async def test_results_of_earlier_questions_are_looked_up_anew() -> None:
    old = ToolResponseMessage((ToolResponse("call_1", "getCityTimeFunction", json.dumps({"time": "01:01:01"})),))
    before = (
        UserMessage("东京几点"),
        AssistantMessage(tool_calls=(ToolCall("call_1", "getCityTimeFunction", "{}"),)),
        old,
    )
    asked = (*before, AssistantMessage("东京现在是……"), UserMessage("那北京呢？"))
    (call,) = (await response(*asked, tools=(CLOCK,))).message.tool_calls
    new = ToolResponseMessage((ToolResponse("call_2", call.name, CLOCK_RESULT),))
    told = (await response(*asked, AssistantMessage(tool_calls=(call,)), new, tools=(CLOCK,))).message.text
    assert (call.id, "20:53:31" in told, "01:01:01" in told) == ("call_2", True, False)


async def test_a_follow_up_is_answered_in_its_language_though_only_a_word_of_it_is_chinese() -> None:
    asked = (UserMessage("东京几点"), AssistantMessage("东京现在是……"), UserMessage("换成 Paris"))
    (call,) = (await response(*asked, tools=(CLOCK,))).message.tool_calls
    new = ToolResponseMessage((ToolResponse(call.id, call.name, CLOCK_RESULT),))
    told = await response(*asked, AssistantMessage(tool_calls=(call,)), new, tools=(CLOCK,))
    assert told.message.text.startswith("Paris现在是")


PROPOSED = "convert 250 EUR to JPY"


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("yes", 1),
        ("Yes, please!", 1),
        ("好的", 1),
        ("no", 0),
        ("不用", 0),
        ("no, forget it", 0),
        ("算了，不换了", 0),
        ("what time is it?", 0),
    ],
)
async def test_a_proposed_call_runs_after_a_yes_and_only_then(answer: str, calls: int) -> None:
    shown = (await response(UserMessage(PROPOSED), tools=ALL)).message
    assert "exchange_money amount: 250, from: EUR, to: JPY" in shown.text
    then = await response(UserMessage(PROPOSED), shown, UserMessage(answer), tools=ALL)
    assert len(then.message.tool_calls) == calls


async def test_a_yes_to_anything_else_runs_nothing() -> None:
    other = AssistantMessage("Shall I tell you a joke?")
    for before in ((), (UserMessage(PROPOSED), other), (UserMessage("hello"), other)):
        assert (await response(*before, UserMessage("yes"), tools=ALL)).message.tool_calls == ()


async def test_a_tool_that_waits_for_approval_is_called_at_once() -> None:
    # The service shows the call itself.
    answer = await response(UserMessage("turn off the light"), tools=SETS["switchLight"])
    assert [each.arguments for each in answer.message.tool_calls] == ['{"on":false}']
