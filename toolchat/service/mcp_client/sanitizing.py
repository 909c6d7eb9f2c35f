"""Sanitize the texts and schemas with which MCP servers describe their tools, for models and for validation."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema, to_json

from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.json_schema import Schema, map_subschemas, resolve

MAX_NOTE_CHARS = 1000
MAX_SCHEMA_BYTES = 65_536
MAX_SCHEMA_DEPTH = 32
MAX_EXPANDED_SCHEMAS = 5000
"""Parts of an expanded schema; references can multiply without end."""

# Control characters, and characters that hide or reorder their neighbours, can smuggle instructions past a reader.
# Joiners stay: they are part of words and of emoji.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_BOOLEAN_SCHEMAS: dict[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}
_DROPPED = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "examples")


def sanitize_text(text: str, limit: int) -> str:
    """Remove invisible characters from a server's text, and cut it to ``limit`` characters."""
    visible = _INVISIBLE.sub("", text[: 2 * limit]).strip()
    return visible if len(visible) <= limit else f"{visible[: limit - 3]}..."


def sanitize_schema(schema: Schema) -> dict[str, Any]:
    """Bound a tool's input schema and remove what is not needed to call the tool."""
    if not _is_within_limits(schema):
        limits = f"longer than {MAX_SCHEMA_BYTES} bytes or nested deeper than {MAX_SCHEMA_DEPTH} levels"
        raise ToolDefinitionError(f"its schema is {limits}")
    if schema.get("type", "object") != "object":
        raise ToolDefinitionError("its schema does not describe an object")
    return {"type": "object", **map_subschemas(schema, _sanitize_part)}


def visible_schema(schema: Schema | None) -> Schema:
    """A tool's output schema as it came, but for invisible characters; empty if there is none, or it is too large."""
    return dict(_visible(schema)) if schema and _is_within_limits(schema) else {}


def _visible(part: Any) -> Any:
    if isinstance(part, str):
        return _INVISIBLE.sub("", part)
    if isinstance(part, dict):
        return {_visible(name): _visible(each) for name, each in part.items()}
    return [_visible(each) for each in part] if isinstance(part, list) else part


def _is_within_limits(schema: Schema) -> bool:
    return len(to_json(schema)) <= MAX_SCHEMA_BYTES and _depth(schema) <= MAX_SCHEMA_DEPTH


def _depth(part: Any) -> int:
    """The number of objects and lists around the innermost value."""
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return max((1 + _depth(each) for each in parts), default=0)


def _sanitize_part(part: dict[str, Any]) -> dict[str, Any]:
    for note in [each for each in part if each in ("description", "title")]:
        if isinstance(part[note], str):
            part[note] = sanitize_text(part[note], MAX_NOTE_CHARS)
        else:
            del part[note]
    if not _is_linear(part.get("pattern", "")):
        del part["pattern"]
    if isinstance(properties := part.get("properties"), dict):  # not every provider accepts the schemas true and false
        part["properties"] = {n: _BOOLEAN_SCHEMAS[p] if isinstance(p, bool) else p for n, p in properties.items()}
    if not all(map(_is_linear, part.get("patternProperties", ()))):
        # Without the patterns nobody knows which names are additional.
        del part["patternProperties"]
        part.pop("additionalProperties", None)
    return {keyword: value for keyword, value in part.items() if keyword not in _DROPPED}


def _is_linear(pattern: Any) -> bool:
    """Whether pydantic's engine, which matches in linear time, supports a regular expression: others may never end."""
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


def expand_references(schema: Schema) -> dict[str, Any]:
    """Replace every ``$ref`` by the schema that it names; where a schema contains itself, anything is accepted."""
    left = MAX_EXPANDED_SCHEMAS

    def expand(part: Any, followed: tuple[str, ...]) -> dict[str, Any]:
        def inline(part: dict[str, Any]) -> dict[str, Any]:
            nonlocal left
            left -= 1
            reference = part.pop("$ref", None)
            kept = {keyword: value for keyword, value in part.items() if keyword not in ("$defs", "definitions")}
            if reference is None or reference in followed or left < 0:
                return kept
            target = expand(_resolve(str(reference), schema), (*followed, reference))
            return {**kept, "allOf": [target, *kept.get("allOf", ())]}

        return map_subschemas(part, inline) if isinstance(part, Mapping) else {}

    return {"type": "object", **expand(schema, ())}


def _resolve(reference: str, root: Schema) -> Any:
    """The schema that a reference names, unless it is only the beginning of a circle of references."""
    passed = {reference}
    target = following = resolve(reference, root)
    while isinstance(following, Mapping) and "$ref" in following:
        if following["$ref"] in passed:
            raise ToolDefinitionError("its references lead in a circle")
        passed.add(following["$ref"])
        following = resolve(str(following["$ref"]), root)
    return target
