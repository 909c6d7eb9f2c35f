"""An example of what a schema asks for, for people who fill it in."""

import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

__all__ = ["example_arguments"]

_Schema = Mapping[str, Any]

_DEEPEST = 8
_MOST_PARTS = 1000
_LONGEST = 1000
_FORMATS = {
    "date": "2030-01-31",
    "time": "07:30:00",
    "date-time": "2030-01-31T07:30:00+08:00",
    "duration": "PT10M",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "ipv4": "192.0.2.1",
}
_SUCH_AS = re.compile(r"\b(?:such as|e\.g\.) ([^\s,;]+)")
"""How a description shows what it means where the schema gives no example."""


def example_arguments(schema: _Schema) -> dict[str, Any]:
    """Make arguments of what a tool's schema says: examples, defaults and enums, else the least that fits the types.

    What must be given is there, and what has an example or a default. It may not fit: no pattern is solved here, and
    of a schema that is none, as another server may send, nothing comes.
    """
    try:
        example = _Reader(schema).example(schema, 0)
    except Exception:  # noqa: BLE001 - whatever comes of a schema that is none
        return {}
    return example if isinstance(example, dict) else {}


class _Reader:
    def __init__(self, root: _Schema) -> None:
        self._root = root
        self._left = _MOST_PARTS

    def example(self, schema: Any, depth: int) -> Any:
        """An example of what one schema allows; ``None`` where it says nothing."""
        self._left -= 1
        if self._left < 0:
            raise ValueError("the schema has too many parts")
        schema = self._resolved(schema)
        given = _given(schema)
        if given is not _NOTHING:
            return given
        for choices in ("anyOf", "oneOf"):
            chosen = [each for each in schema.get(choices, ()) if self._resolved(each).get("type") != "null"]
            if chosen:
                return self.example({**chosen[0], "description": schema.get("description", "")}, depth)
        match _type(schema):
            case "object" if depth < _DEEPEST:
                return self._object(schema, depth + 1)
            case "array":
                return self._array(schema, depth + 1)
            case kind:
                return _plain(kind, schema)

    def _object(self, schema: _Schema, depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        parts = {name: self._resolved(part) for name, part in schema.get("properties", {}).items()}
        shown = [name for name, part in parts.items() if name in required or _given(part) not in (_NOTHING, None)]
        return {name: self.example(parts[name], depth) for name in shown}

    def _array(self, schema: _Schema, depth: int) -> list[Any]:
        if depth >= _DEEPEST:
            return []
        return [self.example(schema.get("items", {}), depth) for _ in range(min(max(schema.get("minItems", 0), 1), 10))]

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """A schema in whose place a reference stands; what else stands beside the reference wins."""
        found = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(_DEEPEST):
            if "$ref" not in found:
                break
            target: Any = self._root
            for part in str(found.pop("$ref")).removeprefix("#").split("/")[1:]:
                name = unquote(part).replace("~1", "/").replace("~0", "~")
                target = target.get(name, {}) if isinstance(target, Mapping) else {}
            found = {**(target if isinstance(target, Mapping) else {}), **found}
        return found


_NOTHING = object()


def _given(schema: _Schema) -> Any:
    """What the schema itself gives as a value."""
    for key in ("examples", "enum"):
        listed = schema.get(key)
        if key == "enum" and "default" in schema:
            return schema["default"]
        if isinstance(listed, list) and listed:
            return listed[0]
    return next((schema[key] for key in ("default", "const") if key in schema), _NOTHING)


def _type(schema: _Schema) -> str:
    kinds = schema.get("type", "object" if "properties" in schema else "")
    named = [kinds] if isinstance(kinds, str) else kinds
    return next((kind for kind in named if kind != "null"), "")


def _plain(kind: str, schema: _Schema) -> Any:
    hint = _SUCH_AS.search(schema.get("description", ""))
    match kind:
        case "string":
            text = hint[1].rstrip(".") if hint else _FORMATS.get(schema.get("format", ""), "string")
            return text.ljust(min(schema.get("minLength", 0), _LONGEST), "x")[: schema.get("maxLength")]
        case "integer" | "number":
            return _number(kind, schema)
        case "boolean":
            return False
        case _:
            return None


def _number(kind: str, schema: _Schema) -> float:
    """The number next to 1 that is within the bounds."""
    step = schema.get("multipleOf", 1 if kind == "integer" else 0.5)
    least = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf) + step)
    most = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf) - step)
    number: float = min(max(1, least), most)
    return math.ceil(number / step) * step if "multipleOf" in schema else number
