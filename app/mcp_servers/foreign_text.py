"""What another server says of its tools, made harmless: short, visible, and a schema that can be checked against."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema, to_json

__all__ = ["UnusableSchemaError", "shown_text", "tool_name", "usable_schema"]

_MAX_SCHEMA_BYTES = 65_536
_DEEPEST = 32
_LONGEST_NOTE = 1000
_LONGEST_NAME = 64
"""What OpenAI's function calling takes, and others after it."""

# Control characters, and those that hide or turn round what stands beside them; joiners are part of words and emoji.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_NOTES = ("description", "title", "$comment")
_IN_WORDS: dict[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}
_LEFT_OUT = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "examples")


class UnusableSchemaError(Exception):
    """A tool's schema is too large, too deep or none of an object."""


def shown_text(text: str, limit: int) -> str:
    """A foreign text without what cannot be seen, cut to a number of characters."""
    seen = _UNSEEN.sub("", text[: 2 * limit]).strip()
    return seen if len(seen) <= limit else f"{seen[: limit - 3]}..."


def tool_name(name: str, prefix: str = "") -> str:
    """A tool's name in the characters and the length that every provider takes; another one for every other name."""
    whole = f"{prefix}_{name}" if prefix else name
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME - 9]}_{sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's input schema as it is shown and checked by.

    Notes in it are bounded like descriptions. Patterns that need backtracking are left to the server: one that it has
    written to that end would keep the event loop busy for ever.

    Raises:
        UnusableSchemaError: it cannot be used; the message says why.
    """
    if len(to_json(schema)) > _MAX_SCHEMA_BYTES:
        raise UnusableSchemaError(f"its schema is longer than {_MAX_SCHEMA_BYTES} bytes")
    if schema.get("type", "object") != "object":
        raise UnusableSchemaError("its schema is not one of an object")
    usable: dict[str, Any] = _usable(schema, 0)
    return {"type": "object", **usable}


def _usable(part: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise UnusableSchemaError(f"its schema is nested deeper than {_DEEPEST}")
    if isinstance(part, list):
        return [_usable(each, depth + 1) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _usable_part(key, value, depth + 1) for key, value in part.items() if _is_kept(key, value)}


def _usable_part(key: str, value: Any, depth: int) -> Any:
    if key in _NOTES and isinstance(value, str):
        return shown_text(value, _LONGEST_NOTE)
    if key == "properties" and isinstance(value, dict):  # true and false are schemas that few people expect
        value = {name: _IN_WORDS[each] if isinstance(each, bool) else each for name, each in value.items()}
    return _usable(value, depth)


def _is_kept(key: str, value: Any) -> bool:
    if isinstance(value, dict):  # a property may have any name; then a schema stands there
        return True
    if key == "pattern":
        return isinstance(value, str) and _is_linear(value)
    return key not in _LEFT_OUT and (key not in _NOTES or isinstance(value, str))


def _is_linear(pattern: str) -> bool:
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True
