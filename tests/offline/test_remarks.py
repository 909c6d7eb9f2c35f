"""What a tool was asked for and cannot tell is said beside its answer."""

import httpx
import pytest

from tests.offline.asking import (
    CLOCK,
    CLOCK_RESULT,
    FORECAST,
    WEATHER,
    answered,
    asked,
    parameters,
    text,
)
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What time is it in Blorptown and Paris?", 'I do not know the time zone of "Blorptown"'),
        ("What time is it in Paris and Blorptown?", 'I do not know the time zone of "Blorptown"'),
        ("what time is it in paris and blorptown", 'I do not know the time zone of "blorptown"'),
        ("Time in Paris, Texas and Tokyo", 'I do not know the time zone of "Paris, Texas"'),
        ("巴黎和布洛普镇现在几点", "我不知道“布洛普镇”在哪个时区"),
        ("北京、东京、伦敦、巴黎、纽约、开罗、悉尼的时间", "最多查 5 个，没有查：开罗、悉尼"),
        ("Time in Tokyo, London, Paris, Cairo, Rome and Oslo", "left out: Oslo."),
        ("time in Tokyo 3 hours from now", "only tell the current time"),
        ("what time is it in Tokyo when it is 5pm in London", "only tell the current time"),
        ("东京3小时以后几点", "只能告诉你现在的时间"),
    ],
)
async def test_requests_beyond_the_current_time_are_remarked_on(question: str, said: str) -> None:
    assert await asked(question, CLOCK)
    answer = await answered(question, CLOCK_RESULT, CLOCK)
    assert "20:53:31" in answer
    assert said in answer


@pytest.mark.parametrize("question", ["现在北京几点", "What time is it in Paris and Tokyo?", "time in Rome, please"])
async def test_a_question_that_is_answered_whole_gets_no_remark(question: str) -> None:
    assert len((await answered(question, CLOCK_RESULT, CLOCK)).splitlines()) == 1


@pytest.mark.parametrize(
    "question",
    [
        "What time is it in Paris and tell me a joke",
        "Tell me a joke and the time in Paris",
        "What time is it in Paris? Who is the president?",
        "北京几点了，再讲个笑话",
    ],
)
async def test_a_part_that_no_tool_fits_gets_nothing_made_up_beside_the_answer(question: str) -> None:
    assert len(await asked(question, CLOCK)) == 1
    assert len((await answered(question, CLOCK_RESULT)).splitlines()) == 1


@pytest.mark.parametrize(
    "question",
    ["Time in Paris? Please tell me.", "Hello! I am Bob. Time in Paris?", "time in Tokyo, and give me the date too"],
)
async def test_politeness_is_not_called_an_unanswered_part(question: str) -> None:
    # What comes with the answer, or asks for nothing, gets no remark.
    assert len((await answered(question, CLOCK_RESULT)).splitlines()) == 1


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the weather in Beijing in Fahrenheit?", "I do not convert them to Fahrenheit"),
        ("weather in Beijing in °F", "I do not convert them to Fahrenheit"),
        ("北京的天气，用华氏度", "我不换算成华氏度"),
        ("北京的天氣，用華氏度", "我不换算成华氏度"),
    ],
)
async def test_an_unsupported_unit_is_remarked_on(question: str, said: str) -> None:
    assert said in await answered(question, FORECAST, WEATHER)


async def test_a_tool_with_a_unit_parameter_receives_the_unit() -> None:
    unit = {"enum": ["celsius", "fahrenheit"]}
    tool = ToolDefinition("weather", "Weather of a city", parameters("city", "unit", city=text("city"), unit=unit))
    assert await asked("weather in Beijing in Fahrenheit", tool) == [
        ("weather", {"city": "Beijing", "unit": "fahrenheit"})
    ]
    assert "convert" not in await answered("weather in Beijing in Fahrenheit", FORECAST, tool)


async def test_thirty_days_in_fahrenheit_get_the_available_days_and_remarks(
    toolchat: httpx.AsyncClient,
) -> None:
    query = {"query": "What is the weather in Beijing for 30 days in Fahrenheit?"}
    told = (await toolchat.get("/weather/chat-tool-function", params=query)).text
    assert "days delivered 3" in told
    assert "The limit is 14 days" in told
    assert "I do not convert them to Fahrenheit" in told
