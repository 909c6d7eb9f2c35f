"""From signatures to schemas, and from a model's JSON to arguments."""

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.schema import input_of_function
from toolchat.tool_calling.signature import docstring_summary

T = TypeVar("T")


class Store(Generic[T]):
    def put(self, item: T) -> str:
        return repr(item)


class Numbers(Store[int]): ...


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """An order."""

    id: int = Field(description="The order's number", ge=1)
    note: str = ""


@dataclass
class Point:
    x: int
    y: int = 0


def forecast(city: Annotated[str, "City name"], days: Annotated[int, Field(ge=1, le=14)] = 1) -> None:
    """Tell the weather."""


def documented(first: int, second: str = "x") -> None:
    """Do two things.

    Only the first paragraph counts.

    Args:
        first: how many
            of them.
        second (str): which.

    Returns:
        Nothing.
    """


def aliased(time_zone: Annotated[str, Field(alias="timeZoneId", description="Zone")], from_: str) -> None: ...


def with_context(context: ToolContext, q: str) -> None: ...


def nothing() -> None: ...


def typed(
    day: datetime.date,
    color: Color,
    unit: Literal["C", "F"],
    points: list[Point],
    labels: dict[str, int],
    maybe: int | None = None,
) -> None: ...


def test_a_signature_becomes_an_object_schema_without_titles() -> None:
    assert input_of_function(forecast, "forecast").schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_descriptions_come_from_the_docstring_too() -> None:
    properties = input_of_function(documented, "documented").schema["properties"]
    assert properties["first"]["description"] == "how many of them."
    assert properties["second"]["description"] == "which."
    assert docstring_summary(documented) == "Do two things."


def test_the_names_that_the_model_sees_may_be_other_than_pythons() -> None:
    tool_input = input_of_function(aliased, "aliased")
    assert list(tool_input.schema["properties"]) == ["timeZoneId", "from"]
    assert tool_input.arguments('{"timeZoneId": "UTC", "from": "en"}') == {"time_zone": "UTC", "from_": "en"}


def test_the_context_is_no_part_of_the_schema() -> None:
    tool_input = input_of_function(with_context, "with_context")
    assert list(tool_input.schema["properties"]) == ["q"]
    assert tool_input.context_parameter == "context"


def test_a_tool_without_input_has_an_empty_object() -> None:
    assert input_of_function(nothing, "nothing").schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


@pytest.mark.parametrize("model", [Order, Point])
def test_a_single_model_is_the_whole_input(model: Any) -> None:
    def function(request: Any) -> None: ...

    function.__annotations__["request"] = model
    tool_input = input_of_function(function, "whole")
    assert tool_input.schema["additionalProperties"] is False
    text = '{"id": 1}' if model is Order else '{"x": 1}'
    assert isinstance(tool_input.arguments(text)["request"], model)


def test_dates_enums_literals_nested_and_optional_values_are_converted() -> None:
    text = '{"day":"2026-11-20","color":"red","unit":"C","points":[{"x":1}],"labels":{"a":1}}'
    assert input_of_function(typed, "typed").arguments(text) == {
        "day": datetime.date(2026, 11, 20),
        "color": Color.RED,
        "unit": "C",
        "points": [Point(1)],
        "labels": {"a": 1},
        "maybe": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Paris", "days": 3}',
        '  {"city": "Paris", "days": "3"} ',
        '```json\n{"city": "Paris", "days": 3}\n```',
        '"{\\"city\\": \\"Paris\\", \\"days\\": 3}"',
        '{"city": "Paris", "days": 3,}',
        '\ufeff{"city": "Paris", "days": 3}',
    ],
)
def test_arguments_are_repaired_where_only_one_reading_is_possible(text: str) -> None:
    assert input_of_function(forecast, "forecast").arguments(text) == {"city": "Paris", "days": 3}


def test_a_comma_inside_a_string_is_no_trailing_comma() -> None:
    assert input_of_function(forecast, "forecast").arguments('{"city": "a,}\\",]", }') == {"city": 'a,}",]', "days": 1}


@pytest.mark.parametrize("text", ["", " ", "{}", "null"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert input_of_function(nothing, "nothing").arguments(text) == {}


@pytest.mark.parametrize(
    "text",
    ["[]", '"x"', "3", "null", "{'city': 'x'}", '{"city": "x"', '{"city":"a"}{"city":"b"}', "[" * 100_000,
     '{"city": ' + "[" * 1100, '{"days": ' + "9" * 5000 + "}", '{"city": "\\ud800"}', '{"city": "x", "days": NaN}',
     '{"city": "x", "days": 1e999}', '{"city": "x", "days": 0}', '{"city": "x", "days": 15}',
     '{"city": "x", "days": 1.5}', '{"city": "x", "town": "y"}', "x" * 1_000_001],
)  # fmt: skip
def test_arguments_that_do_not_fit_become_an_error_for_the_model(text: str) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        input_of_function(forecast, "forecast").arguments(text)
    assert caught.value.kind == "invalid-arguments"
    assert len(caught.value.as_result()) < 1000


def test_the_error_names_every_field_at_fault() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        input_of_function(forecast, "forecast").arguments('{"days": 99}')
    assert [field["field"] for field in caught.value.fields] == ["city", "days"]


def _untyped(x) -> None: ...  # type: ignore[no-untyped-def]


def _variadic(*x: int) -> None: ...


def _callable(x: Callable[[], None]) -> None: ...


def _unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("function", [_untyped, _variadic, _callable, _unknown])
def test_a_parameter_that_json_cannot_carry_stops_the_definition(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="tool broken: "):
        input_of_function(function, "broken")


def test_a_type_variable_accepts_any_value() -> None:
    put = input_of_function(Numbers().put, "put")
    assert put.schema["properties"] == {"item": {}}
    assert put.arguments('{"item": ["a"]}') == {"item": ["a"]}
