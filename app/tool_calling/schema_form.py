"""The form in which a model is given a schema: as short as it can be, and closed."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["tidy_schema"]

_PREFIX = "#/$defs/"
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs")
_VALUES = ("default", "const", "enum", "examples")


def tidy_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten the schema that pydantic derives, without a change in what it means, and close its objects.

    Titles go: they cost tokens and repeat the names. A definition that is used once stands where it is used, so that
    ``$defs`` is left to recursive and shared types; the root is an object, never a reference. An object with named
    properties allows no others, unless its type says so, as in Spring AI.
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
    part = {key: value for key, value in part.items() if not (key == "title" and isinstance(value, str))}
    if part.get("type") != "object":
        return part
    if "properties" in part:
        return {"additionalProperties": False} | part
    return part | {"properties": {}} if part.get("additionalProperties") is False else part
