"""The JSON Schema toolkit, by tables of schemas."""

from typing import Any

import pytest

from toolchat.tool_calling.json_schema import alternatives, map_subschemas, resolve

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
def test_a_reference_without_a_target_leads_nowhere(reference: str) -> None:
    assert resolve(reference, ROOT) is None


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
