"""Tools that nobody foresaw are filled by their schema."""

from typing import Any

import pytest

from tests.offline.asking import COMPARE, asked, parameters, response, text
from toolchat.messages import UserMessage
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize(
    ("question", "schema", "value"),
    [
        ("run it with details", {"type": "boolean", "description": "include the details"}, None),
        ("run it with alerts", {"type": "boolean"}, True),
        ("run it without alerts", {"type": "boolean"}, False),
        ("run it with 7", {"enum": [3, 7, True, None, ""]}, 7),
        ("run it for 摄氏", {"enum": ["kelvin", "celsius"]}, "celsius"),
        ("run it in big style", {"enum": ["small", "big"]}, "big"),
        ("run it", {"const": "fixed"}, "fixed"),
        ("run it", {"type": "string", "default": "given"}, "given"),
        ("run it", {"anyOf": [{"type": "null"}, {"type": "integer", "default": 5}]}, 5),
        ("run it with 2.5", {"type": "number"}, 2.5),
        ("run it with 2.5 and 3", {"type": "integer"}, None),
        ("run it on 2026-12-01 at 9:05", {"type": "string", "format": "date-time"}, "2026-12-01T09:05:00"),
        ("run it at 12 am", {"type": "string", "format": "time"}, "00:00"),
        ("run “https://a.example/b?c=1”", {"type": "string", "format": "uri"}, "https://a.example/b?c=1"),
        ("run it for job-17", {"type": "string", "format": "uuid"}, "job-17"),
        ("run “this”", {"type": "string"}, "this"),
        ("run it", {"type": "object"}, {}),
        ("run 3 4 4", {"type": "array", "items": {"type": "integer"}}, [3, 4]),
        ("run red and blue", {"type": "array", "items": {"enum": ["blue", "green", "red"]}}, ["red", "blue"]),
    ],
)
async def test_a_required_value_comes_by_type_enumeration_format_or_default(
    question: str, schema: dict[str, Any], value: Any
) -> None:
    run = ToolDefinition("run", "Run it", parameters("alerts", alerts=schema))
    expected = {"alerts": value if value is not None else False}
    found = await asked(question, run)
    assert found == ([("run", expected)] if value is not None or schema["type"] == "boolean" else [])


@pytest.mark.parametrize(
    ("question", "name", "schema", "value"),
    [
        ("run it for the user “Li Lei”", "userName", text(), "Li Lei"),
        ("run it，名叫“小明”", "name", text(), "小明"),
        ("run order 77", "id", {"type": "integer"}, 77),
        ("run it in 巴黎", "city", text("the city in English"), "Paris, France"),
        ("run it the day after tomorrow", "days_ahead", {"type": "integer"}, 2),
        ("run it with level is 4", "level", {"type": "integer"}, 4),
        ("run it to Berlin", "to", text(), "Berlin"),
    ],
)
async def test_a_value_is_recognised_by_the_name_and_description_of_its_parameter(
    question: str, name: str, schema: dict[str, Any], value: Any
) -> None:
    run = ToolDefinition("run", "Run it", parameters(name, **{name: schema}))
    assert await asked(question, run) == [("run", {name: value})]


async def test_optional_parameters_that_are_not_mentioned_are_left_out() -> None:
    optional = {"n": {"type": "integer"}, "unit": {"enum": ["c", "f"]}, "id": text(), "flag": {"type": "boolean"}}
    run = ToolDefinition("run", "Run it", parameters(**optional, inner=parameters("x", x=text())))
    assert await asked("run it", run) == [("run", {})]


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("book a hotel in Rome with a nice view", {}),
        ("book a hotel in Rome with a sea view on floor 5", {"extras": {"view": "sea", "floor": 5}}),
        ("book a hotel in Rome for my guest", {}),
    ],
)
async def test_an_optional_object_is_filled_only_from_meaningful_words(question: str, held: dict[str, Any]) -> None:
    extras = parameters(
        view={"enum": ["sea", "a"]}, floor={"type": "integer"}, note=text(pattern=".{1,40}"), spoken=text("a language")
    )
    guest = parameters("vip", "nights", vip={"type": "boolean"}, nights={"type": "integer", "description": "days"})
    hotel = ToolDefinition("hotel", "Book a hotel", parameters("city", city=text(), extras=extras, guest=guest))
    assert await asked(question, hotel) == [("hotel", {"city": "Rome", **held})]


async def test_a_list_takes_everything_that_is_named() -> None:
    assert await asked("比较北京、上海和广州的天气", COMPARE) == [
        ("compare_weather", {"cities": ["北京", "上海", "广州"]})
    ]


async def test_a_tool_with_other_names_and_a_chinese_description_is_filled_all_the_same() -> None:
    own = ToolDefinition("tool_7", "查询某个城市的天气预报", parameters("地点", 地点=text("城市名称")))
    assert await asked("杭州的天气预报", own) == [("tool_7", {"地点": "杭州"})]


async def test_a_parameter_for_a_person_is_not_filled_with_a_place() -> None:
    receiver = {"to": {"type": "string", "description": "Name of the receiver"}}
    schema = {"type": "object", "properties": receiver, "required": ["to"]}
    tool = ToolDefinition("sendParcel", "Send a parcel to somebody.", schema)
    answer = (await response(UserMessage("Send a parcel to Ada"), tools=(tool,))).message
    assert ("Name of the receiver" in answer.text, "place" in answer.text) == (True, False)
    told = (await response(UserMessage('Send a parcel to: "Ada"'), tools=(tool,))).message
    assert [call.arguments for call in told.tool_calls] == ['{"to":"Ada"}']


@pytest.mark.parametrize(
    ("name", "schema", "value"),
    [
        pytest.param("language", text("such as English"), "Japanese", id="a name"),
        pytest.param("lang", {"enum": ["EN", "FR", "JA"]}, "JA", id="a choice"),
    ],
)
async def test_a_language_is_written_as_the_schema_requires(name: str, schema: dict[str, Any], value: str) -> None:
    translate = ToolDefinition("translate", "Translate", parameters("text", name, text=text(), **{name: schema}))
    assert await asked("把“好”翻译成日语", translate) == [("translate", {"text": "好", name: value})]
