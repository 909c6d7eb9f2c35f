"""Schemas of other servers and of other drafts: what becomes of each oddity, and what arguments fit then."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from toolchat.tool_calling.given_schemas import SchemaValidator, upgraded
from toolchat.tool_calling.json_schema import normalized

INFINITE = float("inf")
CLOSED = {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^x-": {}}, "additionalProperties": False}
LAUGHING = {
    "anyOf": [{"$ref": "#/$defs/0"}],
    "$defs": {**{str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 8} for n in range(30)}, "30": {"type": "integer"}},
}
CIRCLE = {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}}
NEEDED = {"r": {"required": True}}
TREE = {"type": "array", "items": {"$ref": "#/properties/p"}}

# The schema of the property "p", values of it that fit, and values that do not.
ODDITIES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "number", "maximum": 1.5}, [1, 1.5, 0.7], [1.6, 2, "1"]),
    ({"type": "number", "minimum": 0.1}, [0.1, 1], [0, 0.09]),
    ({"type": "number", "multipleOf": 0.01}, [19.99, 0.07, 3, 1e15], [0.001, 19.999]),
    ({"type": "integer", "multipleOf": 2}, [4, 4.0, -2], [5, True]),
    ({"type": "integer"}, [5, 5.0], [5.5, True, "5"]),
    ({"maximum": 100, "exclusiveMaximum": True}, [50, 99.9], [100]),
    ({"maximum": 100, "exclusiveMaximum": False}, [100], [101]),
    ({"minimum": 0, "exclusiveMinimum": False}, [0], [-1]),
    ({"exclusiveMinimum": True}, [-5, 0], []),
    ({"minLength": 1.0}, ["a"], [""]),
    ({"minLength": "1", "maxLength": -1, "type": "string"}, ["", "abc"], [5]),
    ({"type": "nonsense"}, [1, "a", None], []),
    ({"type": ["string", "null"]}, ["a", None], [5]),
    ({"type": []}, [1, "a"], []),
    ({"required": False, "type": "string"}, ["a"], [5]),
    ({"required": None, "type": "string"}, ["a"], [5]),
    ({"type": "object", "properties": {"q": {"required": True}}}, [{"q": 1}], [{}]),
    (
        {"properties": {"q": {"required": True, "properties": {"r": {"required": True}}}}},
        [{"q": {"r": 1}}],
        [{"q": {}}],
    ),
    ({"type": "object", "required": ["q", "q", 5]}, [{"q": 1}], [{}]),
    ({"type": "object", "properties": {"q": True, "r": False}}, [{}, {"q": 1}], [{"r": 1}]),
    ({"type": "object", "properties": {"q": None}}, [{"q": 1}, {}], []),
    ({"type": "array"}, [[], [1, "a"]], [{}]),
    ({"type": "array", "items": True}, [[1]], [1]),
    ({"type": "array", "items": {}}, [[1]], [1]),
    ({"type": "array", "items": [{"type": "string"}]}, [["a"], ["a", 1], []], [[1]]),
    ({"type": "array", "items": [{"type": "string"}], "additionalItems": False}, [["a"]], [["a", "b"]]),
    ({"type": "array", "prefixItems": [{"type": "number"}] * 2, "maxItems": 2}, [[1, 2]], [["a"], [1, 2, 3]]),
    ({"type": "array", "prefixItems": [{"type": "string"}, {}], "items": False}, [["a", 1]], [["a", 1, 1]]),
    ({"allOf": 5, "anyOf": [], "type": "string"}, ["a"], [5]),
    ({"anyOf": [True, {"type": "string"}]}, ["a", 5], []),
    ({"default": INFINITE, "type": "number"}, [1], []),
    ({"maximum": INFINITE, "multipleOf": 0}, [1], []),
    ({"enum": "ab", "const": "a"}, ["a"], ["b"]),
    ({"type": "string", "pattern": "("}, ["a"], [5]),
    ({"type": "string", "pattern": 5, "format": 5, "description": 5}, ["a"], [5]),
    ({"$ref": "http://127.0.0.1:9/schema"}, [1, "a"], []),
    ({"$ref": "#/$defs/gone"}, [1], []),
    ({"$ref": "#/properties/p"}, [1], []),
    ({"$ref": 5, "type": "string"}, ["a"], [5]),
    ({"$ref": "#foo", "type": "integer", "$defs": {"x": {"$anchor": "foo", "type": "string"}}}, [5], ["a"]),
    ({"$dynamicRef": "#foo", "type": "integer"}, [5], ["a"]),
    ({"type": "string", "nullable": True}, ["a", None], [5]),
    ({"type": "string", "nullable": False}, ["a"], [None]),
    ({"type": "string", "pattern": "^(a+)+$"}, ["aaa"], ["a" * 60 + "b"]),
    ({"type": "string", "pattern": "^(?!x)"}, ["a"], ["x"]),
    (
        {"$id": "http://elsewhere/", "items": {"$ref": "#/properties/p/not"}, "not": {"type": "string"}},
        [["a"]],
        ["a", [5]],
    ),
    (TREE, [[], [[], [[]]]], [5, [[5]]]),
    ({"uniqueItems": True, "unevaluatedItems": False}, [[{}, {}], [1, 1]], []),
    (CLOSED, [{"a": 1, "x-b": 1}, {}], [{"b": 1}, {"a": "b"}]),
    ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "b"}]),
    ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["ab", 1], ["a"]),
]


def around(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"p": schema}}


def fits(schema: dict[str, Any], value: Any) -> bool:
    try:
        return bool(SchemaValidator(schema).validate_json(json.dumps(value)) == value)
    except ValidationError:
        return False


@pytest.mark.parametrize(("schema", "right", "wrong"), ODDITIES, ids=repr)
def test_an_odd_schema_accepts_right_values_and_refuses_wrong_ones(
    schema: dict[str, Any], right: list[Any], wrong: list[Any]
) -> None:
    converted = upgraded(around(schema))
    assert [each for each in right if not fits(converted, {"p": each})] == []
    assert [each for each in wrong if fits(converted, {"p": each})] == []


@pytest.mark.parametrize("schema", [each for each, _, _ in ODDITIES] + [LAUGHING, CIRCLE], ids=repr)
def test_every_provider_accepts_an_odd_schema(schema: dict[str, Any]) -> None:
    for whole in (around(schema), schema):
        before = repr(whole)
        sent = normalized(upgraded(whole))
        Draft202012Validator.check_schema(sent)
        json.dumps(sent, allow_nan=False)
        assert list(faults(sent)) == []
        assert not {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} & sent.keys()
        assert isinstance(sent["properties"], dict)
        assert normalized(sent) == sent
        assert repr(whole) == before


def faults(part: Any) -> Iterator[str]:
    """What OpenAI refuses anywhere in a schema."""
    if isinstance(part, list):
        yield from (fault for each in part for fault in faults(each))
    if isinstance(part, dict):
        if part.get("type") == "array" and not isinstance(part.get("items"), dict):
            yield "array schema missing items"
        if part.get("additionalProperties") is False and "properties" not in part:
            yield "object schema missing properties"
        yield from (fault for each in part.values() for fault in faults(each))


def test_a_root_that_is_a_union_offers_what_any_member_takes_and_one_of_parts_requires_what_they_do() -> None:
    a, b = {"const": "a"}, {"const": "b"}
    members = [{"properties": {"by": a, "x": {}}}, {"properties": {"by": b}}]
    assert normalized({"oneOf": members})["properties"] == {"by": {"anyOf": [a, b]}, "x": {}}
    parts = [{"properties": {"p": a}, "required": ["p"]}, {"anyOf": members, "required": ["x"]}]
    assert normalized({"allOf": parts, "required": ["q"]})["required"] == ["q", "p"]


def test_the_items_of_a_full_tuple_are_those_of_its_places() -> None:
    number, text = {"type": "number"}, {"type": "string"}
    pair = {"type": "array", "prefixItems": [number, number], "maxItems": 2}
    mixed = {"type": "array", "prefixItems": [number, text], "maxItems": 2}
    shown = normalized({"properties": {"pair": pair, "mixed": mixed}})["properties"]
    assert (shown["pair"]["items"], shown["mixed"]["items"]) == (number, {"anyOf": [number, text]})


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_a_union_at_the_root_shows_the_properties_of_its_members(keyword: str) -> None:
    members = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}]
    schema = {keyword: members, "$defs": {"b": {"properties": {"b": {"type": "integer"}}}}}
    assert normalized(schema)["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}


def test_references_that_multiply_or_lead_in_a_circle_end() -> None:
    converted = upgraded({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": LAUGHING["$defs"]})
    assert fits(converted, {"p": 5})
    assert not fits(converted, {"p": "five"})
    itself = {"properties": {"p": {"allOf": [{"$ref": "#/properties/p"}, {"type": "integer"}]}}}
    assert fits(upgraded(itself), {"p": 5})
    assert not fits(upgraded(itself), {"p": "five"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "EOF while parsing"),
        ('{"p": NaN}', "expected value"),
        ('{"p": 1e999}', "1e999 is too large"),
        ("[]", "Input should be an object"),
        (json.dumps({"p": [0] * 30_000}), "it has more than 20000 values"),
        ('{"p": ' + "[" * 190 + "]" * 190 + "}", "it is nested too deeply"),
        (json.dumps({"q": "x" * 1000}), "does not fit"),
    ],
)
def test_text_that_cannot_be_validated_is_refused(text: str, problem: str) -> None:
    tree = {"items": {"allOf": [{"allOf": [{"allOf": [{"$ref": "#/properties/p"}]}]}]}}
    schema = {"properties": {"p": tree, "q": {"maxLength": 5}}}
    with pytest.raises(ValidationError, match=problem):
        SchemaValidator(schema).validate_json(text)
