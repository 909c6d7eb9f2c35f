"""JSON Schema: resolve references, list alternatives, transform subschemas, and normalize schemas for providers.

Schemas may come from other servers, so nothing here trusts their form: a keyword may hold a value of any type.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

Schema = Mapping[str, Any]

MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value maps names to schemas."""
_DATA = ("default", "const", "enum", "examples", "example")
"""Keywords whose value is data: what looks like a schema in it is none."""
_UNIONS = ("anyOf", "oneOf", "allOf")
_NOT_AT_ROOT = (*_UNIONS, "not", "enum", "const", "$ref")
_UNSEEN = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment")
"""Keywords that tell a model nothing."""


def resolve(reference: str, root: Schema) -> Any:
    """The part of a schema to which a reference such as ``#/$defs/Place`` points (RFC 6901); ``None`` without one."""
    if reference != "#" and not reference.startswith("#/"):
        return None  # an anchor, or in another document
    target: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        # "~1" must be decoded before "~0", or "~01" would become a slash.
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or name not in target:
            return None
        target = target[name]
    return target


def alternatives(schema: Any, root: Schema) -> Iterator[Schema]:
    """List the schemas of which a value must fit at least one.

    ``{"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}`` has the alternatives ``Place`` and ``null``. A schema
    without a union is its only alternative; one that cannot be resolved is empty, and so allows everything.
    """
    yield from list(_alternatives(schema, root, set())) or [{}]


def _alternatives(schema: Any, root: Schema, followed: set[str]) -> Iterator[Schema]:
    if not isinstance(schema, Mapping):
        yield {}
    elif "$ref" in schema:
        reference = str(schema["$ref"])
        if reference not in followed:  # else its alternatives are in the list, or it leads in a circle
            followed.add(reference)
            yield from _alternatives(resolve(reference, root), root, followed)
    elif isinstance(members := schema.get("anyOf") or schema.get("oneOf"), list) and members:
        for member in members:
            yield from _alternatives(member, root, followed)
    else:
        yield schema


def map_subschemas(schema: Schema, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Apply a change to a copy of every schema within a schema, innermost first, and last to the schema itself."""

    def changed(value: Any) -> Any:
        return map_subschemas(value, change) if isinstance(value, Mapping) else value

    def mapped(keyword: str, value: Any) -> Any:
        if keyword in _DATA:
            return value
        if keyword in MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            return {name: changed(part) for name, part in value.items()}
        return [changed(part) for part in value] if isinstance(value, list | tuple) else changed(value)

    return change({keyword: mapped(keyword, value) for keyword, value in schema.items()})


def normalized(schema: Schema) -> dict[str, Any]:
    """Convert the schema of a tool's input to a form that every provider accepts.

    Some reject a root that is a reference or a union or has no ``properties``, an array without ``items``, boolean
    schemas, or what is not JSON; and one rejected schema fails every request that offers the tool. What the model's
    schema loses by this, a validation by the given one still finds.
    """
    root = map_subschemas(schema, _accepted_by_all)
    if "$ref" in root:
        root = {**next(alternatives(root, root)), **root}
    members = [each for union in _UNIONS for part in root.get(union, ()) for each in alternatives(part, root)]
    properties = _merged([each.get("properties", {}) for each in members])
    kept = {keyword: value for keyword, value in root.items() if keyword not in _NOT_AT_ROOT}
    parts = [[*alternatives(part, root)] for part in root.get("allOf", ())]
    required = [
        name for part in (root, *(only for only, *more in parts if not more)) for name in part.get("required", ())
    ]
    kept |= {"required": list(dict.fromkeys(required))} if required else {}
    return kept | {"type": "object", "properties": properties | root.get("properties", {})}


def _merged(members: Sequence[Schema]) -> dict[str, Any]:
    """The properties of several schemas: one that they describe differently may be any of them."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in members for name in each):
        parts = [each[name] for each in members if name in each]
        unique = [each for place, each in enumerate(parts) if each not in parts[:place]]
        merged[name] = unique[0] if len(unique) == 1 else {"anyOf": unique}
    return merged


def _accepted_by_all(part: dict[str, Any]) -> dict[str, Any]:
    part = {keyword: value for keyword, value in part.items() if keyword not in _UNSEEN and is_json(value)}
    if part.get("additionalProperties") is False:
        part.setdefault("properties", {})
    for keyword in ("properties", "patternProperties"):
        if keyword in part:
            part[keyword] = {name: _without_boolean(each) for name, each in part[keyword].items()}
    for keyword in (*_UNIONS, "prefixItems"):
        if keyword in part:
            part[keyword] = [_without_boolean(each) for each in part[keyword]]
    return _with_items(part)


def is_json(value: Any) -> bool:
    """Whether a value has a form in JSON; an infinite number has none."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _without_boolean(schema: Any) -> Any:
    return schema if isinstance(schema, dict) else {} if schema else {"not": {}}


def _with_items(part: dict[str, Any]) -> dict[str, Any]:
    """Give an array ``items``; those of a tuple allow what any place in it does, as few models read ``prefixItems``."""
    types, first, rest = part.get("type", ()), part.get("prefixItems", []), part.get("items", True)
    if "array" not in ([types] if isinstance(types, str) else types) or isinstance(rest, dict):
        return part
    if rest is False:
        part["maxItems"] = min(len(first), part.get("maxItems", len(first)))
    unique = [each for place, each in enumerate(first) if each not in first[:place]]
    is_full = first and part.get("maxItems", len(first) + 1) <= len(first)
    part["items"] = {} if not is_full else unique[0] if len(unique) == 1 else {"anyOf": unique}
    return part
