"""The JSON Schema toolkit, and the validator that is made of a schema, each by a table of schemas."""

from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from toolchat.tool_calling.json_schema import alternatives, map_subschemas, resolve, schema_validator

PLACE = {"type": "object", "properties": {"name": {"type": "string"}}}
ROOT: dict[str, Any] = {
    "$defs": {
        "Place": PLACE,
        "a/b": {"type": "integer"},
        "~1": {"type": "null"},
        "a b": {"type": "boolean"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Maybe": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
    },
    "properties": {"where": {"$ref": "#/$defs/Place"}},
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#/$defs/Place", PLACE),
        ("#/properties/where", {"$ref": "#/$defs/Place"}),
        ("#/$defs/a~1b", {"type": "integer"}),
        ("#/$defs/~01", {"type": "null"}),
        ("#/$defs/a%20b", {"type": "boolean"}),
    ],
)
def test_a_reference_is_resolved(reference: str, target: Any) -> None:
    assert resolve(reference, ROOT) == target


@pytest.mark.parametrize("reference", ["#/$defs/Gone", "#/$defs/Place/type/object", "other.json#/a", ""])
def test_a_reference_without_a_target_is_an_error(reference: str) -> None:
    with pytest.raises(LookupError):
        resolve(reference, ROOT)


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "string"}, [{"type": "string"}]),
        ({"$ref": "#/$defs/Place"}, [PLACE]),
        ({"$ref": "#/$defs/Maybe"}, [PLACE, {"type": "null"}]),
        ({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Maybe"}]}, [{"type": "string"}, PLACE, {"type": "null"}]),
        ({"$ref": "#/$defs/Gone"}, [{}]),
        ({"$ref": "#/$defs/Loop"}, [{}]),
        (True, [{}]),
        (None, [{}]),
    ],
)
def test_alternatives_follow_references_and_unions(schema: Any, found: list[Any]) -> None:
    assert list(alternatives(schema, ROOT)) == found


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"$id": "1", "items": {"$id": "2", "not": {"$id": "3"}}}, "321"),
        ({"$id": "1", "anyOf": [{"$id": "2"}, True, {"$id": "3"}]}, "231"),
        ({"$id": "1", "properties": {"enum": {"$id": "2"}}, "patternProperties": {"^x": {"$id": "3"}}}, "231"),
        ({"$id": "1", "default": {"$id": "x"}, "enum": [{"$id": "x"}], "const": {"$id": "x"}}, "1"),
        ({"$id": "1", "$defs": {"A": {"$id": "2"}}, "prefixItems": ({"$id": "3"},)}, "231"),
    ],
)
def test_a_change_reaches_every_schema_and_no_data(schema: dict[str, Any], names: str) -> None:
    seen: list[str] = []

    def change(part: dict[str, Any]) -> dict[str, Any]:
        seen.append(part["$id"])
        return {**part, "seen": True}

    before = repr(schema)
    assert repr(map_subschemas(schema, change)).count("'seen': True") == len(names)
    assert "".join(seen) == names
    assert repr(schema) == before


EXTENSIONS = {"^x-": {"type": "string"}, "^n-": {"type": "integer"}}
CLOSED = {"properties": {"a": {"type": "integer"}}, "patternProperties": EXTENSIONS, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (CLOSED, {"x-a": "b"}),
        (CLOSED, {"a": 1, "x-a": "b", "n-b": 2}),
        (CLOSED, {}),
        ({"patternProperties": {"^x-": {"type": "string"}}}, {"x-a": "b", "other": 3}),
        ({"patternProperties": EXTENSIONS, "additionalProperties": {"type": "boolean"}}, {"x-a": "b", "c": True}),
        ({"properties": {"in": {"patternProperties": {"(?=x)": {}}, "additionalProperties": False}}}, {"in": {"x": 1}}),
    ],
)
def test_pattern_properties_allow_what_matches(schema: dict[str, Any], value: Any) -> None:
    assert schema_validator(schema).validate_json(to_json(value), strict=True) == value


@pytest.mark.parametrize(
    ("schema", "value", "place"),
    [
        (CLOSED, {"y-a": "b"}, "y-a"),
        (CLOSED, {"x-a": [3]}, "x-a"),
        (CLOSED, {"a": "b"}, "a"),
        ({"patternProperties": EXTENSIONS, "additionalProperties": {"type": "boolean"}}, {"c": [3]}, "c"),
    ],
)
def test_pattern_properties_refuse_what_does_not_match(schema: dict[str, Any], value: Any, place: str) -> None:
    with pytest.raises(ValidationError) as refused:
        schema_validator(schema).validate_json(to_json(value), strict=True)
    assert {error["loc"][0] for error in refused.value.errors()} == {place}
