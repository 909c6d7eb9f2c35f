"""Tools that nobody foresaw are filled by their schema."""

from typing import Any

import pytest

from tests.offline.asking import asked, reading_tool, schema


def text(description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description} | more


@pytest.mark.parametrize(
    ("question", "parameter", "value"),
    [
        ("run it with alerts", {"type": "boolean"}, True),
        ("run it without alerts", {"type": "boolean"}, False),
        ("run it", {"type": "boolean"}, None),
        ("run it with 7", {"enum": [3, 7, True, None, ""]}, 7),
        ("run it for 摄氏", {"enum": ["kelvin", "celsius"]}, "celsius"),
        ("run it", {"const": "fixed"}, "fixed"),
        ("run it", {"type": "string", "default": "given"}, "given"),
        ("run it", {"anyOf": [{"type": "null"}, {"type": "integer", "default": 5}]}, 5),
        ("run it with 2.5", {"type": "number"}, 2.5),
        ("run it with 2.5", {"type": "integer"}, None),
        ("run it with 99", {"type": "integer", "maximum": 10}, None),
        ("run it with 2 and then 3 times", {"type": "object"}, None),
        ("run it on 2026-12-01 at 9:05", {"type": "string", "format": "date-time"}, "2026-12-01T09:05:00"),
        ("run it on 2026-12-01", {"type": "string", "format": "date"}, "2026-12-01"),
        ("run it tomorrow", {"type": "string", "format": "date"}, None),
        ("run it at 12 am", {"type": "string", "format": "time"}, "00:00"),
        ("run “https://a.example/b?c=1”", {"type": "string", "format": "uri"}, "https://a.example/b?c=1"),
        ("run it for job-17", {"type": "string", "format": "uuid"}, "job-17"),
        ("run “this”", {"type": "string"}, "this"),
        ("run it for 3, 4 and 5", {"type": "array", "items": {"type": "integer"}}, [3, 4, 5]),
        ("run red and blue", {"type": "array", "items": {"enum": ["blue", "green", "red"]}}, ["red", "blue"]),
    ],
)
async def test_a_required_value_comes_from_the_question_or_there_is_no_call(
    question: str, parameter: dict[str, Any], value: Any
) -> None:
    run = reading_tool("run", "Run it", "alerts", alerts=parameter)
    assert await asked(question, run) == ([] if value is None else [("run", {"alerts": value})])


@pytest.mark.parametrize(
    ("question", "name", "parameter", "value"),
    [
        ("run it for the user “Li Lei”", "userName", text(), "Li Lei"),
        ("run it, the name is Ann", "name", text(), "Ann"),
        ("run order 77", "id", {"type": "integer"}, 77),
        ("run it in 巴黎", "city", text("the city in English"), "Paris, France"),
        ("run it the day after tomorrow", "days_ahead", {"type": "integer"}, 2),
        ("run it with level is 4", "level", {"type": "integer"}, 4),
        ("run it to Berlin", "to", text(), "Berlin"),
        ("run it in euros", "currency", text(), "EUR"),
    ],
)
async def test_a_value_is_recognised_by_the_name_and_description_of_its_parameter(
    question: str, name: str, parameter: dict[str, Any], value: Any
) -> None:
    run = reading_tool("run", "Run it for an order", name, **{name: parameter})
    assert await asked(question, run) == [("run", {name: value})]


async def test_optional_parameters_that_are_not_mentioned_are_left_out() -> None:
    optional = {"n": {"type": "integer"}, "unit": {"enum": ["c", "f"]}, "id": text(), "flag": {"type": "boolean"}}
    run = reading_tool("run", "Run it", **optional, inner=schema("x", x=text()))
    assert await asked("run it", run) == [("run", {})]


async def test_a_list_takes_everything_that_is_named() -> None:
    compare = reading_tool(
        "compare_weather", "Compare the weather", "cities", cities={"type": "array", "items": text("city")}
    )
    assert await asked("比较北京、上海和广州的天气", compare) == [
        ("compare_weather", {"cities": ["北京", "上海", "广州"]})
    ]
