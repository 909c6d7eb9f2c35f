"""JSON Schema toolkit: resolve references, list alternatives, transform subschemas.

Schemas may come from other servers, so nothing here trusts their form: a keyword may hold a value of any type.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

Schema = Mapping[str, Any]

MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value maps names to schemas."""
_DATA = ("default", "const", "enum", "examples", "example")
"""Keywords whose value is data: what looks like a schema in it is none."""
_MAX_DEPTH = 20
"""References and unions on the way to an alternative; a schema that refers to itself has no end."""


def resolve(reference: str, root: Schema) -> Any:
    """Find the part of a schema that a reference such as ``#/$defs/Place`` points to (RFC 6901).

    Args:
        reference: the value of ``$ref``.
        root: the whole schema.

    Raises:
        LookupError: the reference leads out of the schema, or nowhere.
    """
    if not reference.startswith("#"):
        raise LookupError(f"{reference} is in another document")
    target: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        # "~1" must be decoded before "~0", or "~01" would become a slash.
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or name not in target:
            raise LookupError(f"{reference} has no target")
        target = target[name]
    return target


def alternatives(schema: Any, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """List the schemas of which a value must fit at least one.

    ``{"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}`` has the alternatives ``Place`` and ``null``. A schema
    without a union is its only alternative; one that cannot be resolved is empty, and so allows everything.

    Args:
        schema: a schema within the root.
        root: the whole schema, for references.
        depth: references and unions followed so far.
    """
    schema = schema if isinstance(schema, Mapping) and depth < _MAX_DEPTH else {}
    if "$ref" in schema:
        try:
            target = resolve(str(schema["$ref"]), root)
        except LookupError:
            target = {}
        yield from alternatives(target, root, depth + 1)
    elif isinstance(members := schema.get("anyOf") or schema.get("oneOf"), list) and members:
        for member in members:
            yield from alternatives(member, root, depth + 1)
    else:
        yield schema


def map_subschemas(schema: Schema, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Apply a change to every schema within a schema, innermost first, and last to the schema itself.

    Args:
        schema: left as it is.
        change: receives a copy of each schema, whose own parts have been changed already.
    """

    def changed(value: Any) -> Any:
        return map_subschemas(value, change) if isinstance(value, Mapping) else value

    def mapped(keyword: str, value: Any) -> Any:
        if keyword in _DATA:
            return value
        if keyword in MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            return {name: changed(part) for name, part in value.items()}
        return [changed(part) for part in value] if isinstance(value, list | tuple) else changed(value)

    return change({keyword: mapped(keyword, value) for keyword, value in schema.items()})
