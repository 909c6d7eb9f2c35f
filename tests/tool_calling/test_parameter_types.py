"""The types of a tool's parameters: what a model is told of them, and what the tool is given."""

import datetime
import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from tests.tool_calling.calls import EMPTY, Place, callback_of, schema_of
from toolchat.tool_calling.function_callback import FunctionToolCallback


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


@pytest.mark.parametrize(
    ("annotation", "schema", "sent", "given"),
    [
        (str, {"type": "string"}, '"x"', "'x'"),
        (bool, {"type": "boolean"}, "true", "True"),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", "None"),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, '"x"', "'x'"),
        (Literal["C", "F"], {"type": "string", "enum": ["C", "F"]}, '"F"', "'F'"),
        (Unit, {"type": "string", "enum": ["C", "F"]}, '"C"', "<Unit.CELSIUS: 'C'>"),
        (
            datetime.date,
            {"type": "string", "format": "date"},
            '"2026-11-20"',
            "datetime.date(2026, 11, 20)",
        ),
        (
            datetime.datetime,
            {"type": "string", "format": "date-time"},
            '"2026-11-20T08:00:00"',
            "datetime.datetime(2026, 11, 20, 8, 0)",
        ),
        (
            datetime.timedelta,
            {"type": "string", "format": "duration"},
            '"PT10M"',
            "datetime.timedelta(seconds=600)",
        ),
        (list[int], {"type": "array", "items": {"type": "integer"}}, "[1, 2]", "[1, 2]"),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1, 1]", "{1}"),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "minItems": 2,
                "maxItems": 2,
            },
            '[1, "x"]',
            "(1, 'x')",
        ),
        (
            dict[str, int],
            {"type": "object", "additionalProperties": {"type": "integer"}},
            '{"a": 1}',
            "{'a': 1}",
        ),
        (Annotated[int, Field(ge=1, lt=9)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, "8", "8"),
        (
            Annotated[str, Field(pattern="^[A-Z]+$", max_length=3)],
            {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 3},
            '"ABC"',
            "'ABC'",
        ),
        (
            Place,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "country": {"type": "string", "default": "CN"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            '{"name": "x"}',
            "Place(name='x', country='CN')",
        ),
    ],
    ids=str,
)
async def test_a_type_becomes_json_schema_and_values_arrive_as_that_type(
    annotation: Any, schema: dict[str, Any], sent: str, given: str
) -> None:
    assert schema_of(annotation) == schema
    assert await callback_of(annotation).call(f'{{"value": {sent}}}', EMPTY) == given


async def test_a_default_is_in_the_schema_and_applies_to_a_missing_argument() -> None:
    async def book(day: datetime.date, seats: int = 2, unit: Unit = Unit.CELSIUS, wait: str | None = None) -> str:
        return f"{seats} {unit.name} {wait}"

    callback = FunctionToolCallback.from_function(book)
    schema = callback.definition.input_schema
    assert schema["required"] == ["day"]
    defaults = {name: part.get("default", "none") for name, part in schema["properties"].items()}
    assert defaults == {"day": "none", "seats": 2, "unit": "C", "wait": None}
    assert await callback.call('{"day": "2026-11-20"}', EMPTY) == "2 CELSIUS None"
