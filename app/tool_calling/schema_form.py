"""The form in which a model is given a schema: as short as it can be, and closed."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_jsonable_python

__all__ = ["MEMBER_NAMES", "NamedMembers", "tidy_schema"]

MEMBER_NAMES = "x-member-names"
"""Where :class:`NamedMembers` notes an enum's members, pairs of name and value; the model is not told this key."""

_PREFIX = "#/$defs/"
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs")
_UNTOLD = {"title": str, MEMBER_NAMES: list}
_VALUES = ("default", "const", "enum", "examples", MEMBER_NAMES)


class NamedMembers(GenerateJsonSchema):
    """Makes a JSON Schema that knows the names of an enum's members, since a model may write these too."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """See :meth:`GenerateJsonSchema.enum_schema`."""
        members: Mapping[str, Any] = schema["cls"].__members__
        pairs = [[name, to_jsonable_python(member.value)] for name, member in members.items()]
        return {**super().enum_schema(schema), MEMBER_NAMES: pairs}


def tidy_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten the schema that pydantic derives, without a change in what it means, and close its objects.

    Titles go: they cost tokens and repeat the names. A definition that is used once stands where it is used, so that
    ``$defs`` is left to recursive and shared types; the root is an object, never a reference. An object with named
    properties allows no others, unless its type says so, as in Spring AI. Values of an enum that are no text are told
    with their names.
    """
    definitions = dict(schema.get("$defs", {}))
    root = {key: value for key, value in schema.items() if key != "$defs"}
    if "$ref" in root:
        root = {**definitions[root["$ref"].removeprefix(_PREFIX)], **{k: v for k, v in root.items() if k != "$ref"}}
    uses: Counter[str] = Counter()
    _transformed({**root, "$defs": definitions}, lambda part: _counted(part, uses))
    shared = {name for name in definitions if uses[name] > 1}

    def in_place(part: dict[str, Any]) -> dict[str, Any]:
        name = str(part.get("$ref", "")).removeprefix(_PREFIX)
        if name in definitions and name not in shared:
            siblings = {key: value for key, value in part.items() if key != "$ref"}
            inlined: dict[str, Any] = _transformed({**definitions[name], **siblings}, in_place)
            return inlined
        return _closed(part)

    tidy: dict[str, Any] = _transformed(root, in_place)
    kept = {name: _transformed(part, in_place) for name, part in definitions.items() if name in shared}
    return {"$defs": kept, **tidy} if kept else tidy


def _transformed(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Apply a change to a schema and to every schema within, innermost first; plain values are left alone."""
    if isinstance(schema, list):
        return [_transformed(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return change({key: _inside(key, value, change) for key, value in schema.items()})


def _inside(key: str, value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
        return {name: _transformed(part, change) for name, part in value.items()}
    return value if key in _VALUES else _transformed(value, change)


def _counted(part: dict[str, Any], uses: Counter[str]) -> dict[str, Any]:
    if "$ref" in part:
        uses[part["$ref"].removeprefix(_PREFIX)] += 1
    return part


def _closed(part: dict[str, Any]) -> dict[str, Any]:
    members = part.get(MEMBER_NAMES, ())
    part = {key: value for key, value in part.items() if key not in _UNTOLD or not isinstance(value, _UNTOLD[key])}
    if not all(isinstance(value, str) for _, value in members):
        names = ", ".join(f"{value} = {name}" for name, value in members)
        part["description"] = f"{part['description']} ({names})" if "description" in part else names
    if part.get("type") != "object":
        return part
    if "properties" in part:
        return {"additionalProperties": False} | part
    return part | {"properties": {}} if part.get("additionalProperties") is False else part
