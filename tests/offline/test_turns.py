"""The offline model as a chat model: its turns, its stream, its place in the tool loop."""

import json
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from app.offline import OfflineChatModel
from app.tools.weather.forecast import Weather
from tests.models.responding import events_of, streamed_text
from tests.offline.asking import ALL, CLOCK, CLOCK_RESULT, OTHERS, parameters, response, said
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
)
from toolchat.models.base import ChatResponse, Prompt, TextDelta
from toolchat.tool_calling.callback import StaticToolCallbackResolver
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, tool
from toolchat.tool_calling.manager import ToolCallingManager


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


async def test_a_streamed_call_has_no_text_and_the_finish_reason_tool_calls() -> None:
    (only,) = await events_of(OfflineChatModel(), Prompt((UserMessage("北京时间几点"),), (CLOCK,), stream=True))
    assert isinstance(only, ChatResponse)
    assert (only.message.text, only.finish_reason) == ("", "tool_calls")


async def test_it_calls_itself_offline_and_counts_no_tokens() -> None:
    model = OfflineChatModel()
    answer = await response(UserMessage("hello"))
    assert (model.provider, model.name, answer.model, answer.usage) == ("offline", "offline", "offline", Usage())


async def test_the_same_conversation_gets_the_same_answer_from_the_same_and_from_another_model() -> None:
    question, tools = UserMessage("东京时间和巴黎天气，把“你好”翻译成英文"), (*ALL, *OTHERS)
    model = OfflineChatModel()
    first, again = [await response(question, tools=tools, model=model) for _ in range(2)]
    assert first == again == await response(question, tools=tools)


async def test_tools_of_the_same_name_with_another_schema_are_not_mixed_up() -> None:
    model = OfflineChatModel()
    for name in ("sides", "faces", "n"):
        dice = ToolDefinition("rollDice", "Roll a dice", parameters(name, **{name: {"type": "integer"}}))
        answer = await response(UserMessage("roll a dice with 8 sides"), tools=(dice,), model=model)
        assert json.loads(answer.message.tool_calls[0].arguments) == {name: 8}


@tool(name="getWeatherMethod", description="Weather of a city")
async def weather_of(city: Annotated[str, "city name"], days: Annotated[int, Field(ge=1, le=14)] = 1) -> Weather:
    if city == "Atlantis":
        raise ToolExecutionError("there is no place 'Atlantis'", kind="no-such-place")
    return {"place": {"name": city}, "days": [{"date": "2026-11-20", "maxtemp_c": days}]}


class Alarm(BaseModel):
    time: str
    repeat: Literal["once", "daily"] = "once"


@tool(description="Set an alarm")
async def alarm(request: Alarm) -> str:
    return f"Alarm at {request.time}, {request.repeat}."


@pytest.mark.parametrize(
    ("question", "answer", "outcomes"),
    [
        ("杭州今天的天气", "地点：杭州\n2026-11-20：最高 1 °C", ["ok"]),
        (
            "weather in Atlantis and in Paris",
            "The look-up failed: getWeatherMethod reported: there is no place 'Atlantis'\n"
            "Place: Paris\n2026-11-20: high 1 °C",
            ["error", "ok"],
        ),
        (
            "weather in Atlantis",
            "The look-up failed: getWeatherMethod reported: there is no place 'Atlantis'",
            ["error"],
        ),
        ("每天7:30的闹钟", "Alarm at 07:30, daily.", ["ok"]),
    ],
)
async def test_the_loop_runs_its_calls_once_and_gets_an_answer(question: str, answer: str, outcomes: list[str]) -> None:
    advisors = (ToolCallingAdvisor(ToolCallingManager()),)
    client = ChatClient(OfflineChatModel(), StaticToolCallbackResolver(()), advisors)
    offered = (FunctionToolCallback.from_function(weather_of), FunctionToolCallback.from_function(alarm))
    given_answer = await client.prompt(question).tools(*offered).call().response()
    assert given_answer.message.text == answer
    assert [each.outcome for each in given_answer.executions] == outcomes
    assert given_answer.rounds == 2


async def test_results_of_earlier_questions_are_looked_up_anew() -> None:
    old = ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT | {"time": "01:01:01"})),))
    new = ToolResponseMessage((ToolResponse("call_2", CLOCK.name, json.dumps(CLOCK_RESULT)),))
    before = (UserMessage("东京几点"), AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, "{}"),)), old)
    asked = (*before, AssistantMessage("东京现在是……"), UserMessage("那北京呢？"))
    (call,) = (await response(*asked, tools=(CLOCK,))).message.tool_calls
    assert call.id == "call_2"
    told = (await response(*asked, AssistantMessage(tool_calls=(call,)), new, tools=(CLOCK,))).message.text
    assert "20:53:31" in told
    assert "01:01:01" not in told


async def test_a_very_long_earlier_question_is_quoted_in_part() -> None:
    assert len(await said("x" * 5000, "What did I just ask?")) < 400
