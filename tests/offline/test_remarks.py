"""What a tool cannot answer is remarked on beside its answer; `questions.yaml` has most cases."""

import httpx
import pytest

from tests.offline.asking import (
    CLOCK,
    CLOCK_RESULT,
    FORECAST,
    answered,
    asked,
    parameters,
    text,
)
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize(
    "question",
    [
        *("现在北京几点", "What time is it in Paris and Tokyo?", "time in Rome, please"),
        *("What time is it in Paris and tell me a joke", "Tell me a joke and the time in Paris"),
        *("What time is it in Paris? Who is the president?", "北京几点了，再讲个笑话"),
        *(
            "Time in Paris? Please tell me.",
            "Hello! I am Bob. Time in Paris?",
            "time in Tokyo, and give me the date too",
        ),
    ],
)
async def test_politeness_and_parts_that_no_tool_fits_get_no_remark(question: str) -> None:
    assert {name for name, _ in await asked(question, CLOCK)} == {CLOCK.name}
    assert len((await answered(question, CLOCK_RESULT)).splitlines()) == 1


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
