"""Examples of arguments, made of schemas of every kind."""

from typing import Any

import pytest

from toolchat.tool_calling.schema_example import example_arguments


def schema_of(required: bool = True, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required else []}


@pytest.mark.parametrize(
    ("part", "example"),
    [
        ({"type": "string", "examples": ["Paris", "Rome"]}, "Paris"),
        ({"type": "string", "default": "Rome", "examples": ["Paris"]}, "Paris"),
        ({"type": "string", "enum": ["a", "b"], "default": "b"}, "b"),
        ({"enum": ["a", "b"]}, "a"),
        ({"const": 7}, 7),
        ({"type": "string"}, "string"),
        ({"type": "string", "description": "Zone, such as Asia/Shanghai, or another"}, "Asia/Shanghai"),
        ({"type": "string", "description": "A city, e.g. Oslo."}, "Oslo"),
        ({"type": "string", "format": "date"}, "2030-01-31"),
        ({"type": "string", "minLength": 8}, "stringxx"),
        ({"type": "string", "maxLength": 3}, "str"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "integer", "minimum": 3, "multipleOf": 4}, 4),
        ({"type": "number", "exclusiveMaximum": 1}, 0.5),
        ({"type": "boolean"}, False),
        ({"type": ["null", "integer"]}, 1),
        ({"anyOf": [{"type": "null"}, {"type": "string", "enum": ["x"]}]}, "x"),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"$ref": "#/$defs/Pot"}, {"name": "vase"}),
        ({"$ref": "#/$defs/Pot", "default": {"name": "bowl"}}, {"name": "bowl"}),
    ],
    ids=lambda given: repr(given)[:60],
)
def test_an_example_is_what_the_schema_says(part: dict[str, Any], example: Any) -> None:
    pot = schema_of(name={"type": "string", "examples": ["vase"]})
    made = example_arguments(schema_of(value=part) | {"$defs": {"Pot": pot}})["value"]
    assert (type(made), made) == (type(example), example)


def test_what_need_not_be_given_is_left_out_unless_the_schema_shows_a_value() -> None:
    schema = schema_of(False, plain={"type": "string"}, empty={"default": None}, shown={"default": 3})
    assert example_arguments(schema) == {"shown": 3}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"$ref": "#"},
        {"$ref": "#/$defs/Gone"},
        {"properties": 3},
        schema_of(a={"type": "integer", "multipleOf": 0}),
        schema_of(a={"type": "array", "minItems": "many"}),
        schema_of(a=True),
        schema_of(a={"type": "string", "minLength": 10**12}),
        {"$defs": {"Tree": schema_of(a={"$ref": "#/$defs/Tree"}, b={"$ref": "#/$defs/Tree"})}, "$ref": "#/$defs/Tree"},
        schema_of(a={"type": "array", "minItems": 10**9, "items": {"type": "array", "minItems": 10**9}}),
    ],
    ids=lambda given: repr(given)[:60],
)
def test_of_a_schema_that_makes_no_sense_nothing_large_comes(schema: dict[str, Any]) -> None:
    assert len(repr(example_arguments(schema))) < 20_000
