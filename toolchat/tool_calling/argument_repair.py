"""Repair of arguments that do not fit a tool's schema, where only one reading is possible."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.tool_calling.errors import ToolArgumentsError
from toolchat.tool_calling.json_schema import Schema, alternatives

MEMBER_NAMES = "x-member-names"
"""The schema key that holds an enum's members as pairs of name and value; it is not sent to the model."""
EXACT = "x-exact"
"""The schema key of a decimal, which must not pass through a float, and of a date or a time, which is no number; it is
not sent to the model."""

_TYPES = {
    type(None): "null", str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"
}  # fmt: skip
_TEXT_OR_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"?)|,(?=\s*[}\]])', re.DOTALL)
"""A string, even an unterminated one, or a trailing comma.

Nothing after the opening quote can fail to match, so that a long string is read once and does not block the event loop.
"""

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
_ISO = {"date": "2026-11-20", "date-time": "2026-11-20T20:00:00Z", "time": "20:00:00"}

_ESCAPE_OR_CONTROL = re.compile(r"\\.|[\x00-\x1f]", re.DOTALL)
"""An escape, or a control character, which JSON allows in a string only as an escape."""


class _WrittenFloat(float):
    """A number that remembers its text: as a version, 3.10 is not 3.1."""

    def __new__(cls, text: str) -> "_WrittenFloat":
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def parse_json(text: str) -> Any:
    """Parse JSON text for :func:`repair_arguments`."""
    from_json(text, allow_inf_nan=False)  # has these limits, while the standard library keeps the text of a number
    return json.loads(text, parse_float=_WrittenFloat)


def strip_wrapping(text: str) -> str:
    """Remove a byte order mark, a code fence and trailing commas from JSON text, and escape line breaks in strings."""
    bare = text.removeprefix("\ufeff").strip()
    if bare.startswith("```") and bare.endswith("```") and len(bare) >= 6:
        # Not one pattern for the whole fence: with blanks on both sides of a group it takes hours for a page of blanks.
        bare = re.sub(r"\A\w*", "", bare[3:-3]).strip()
    return _TEXT_OR_COMMA.sub(lambda match: _ESCAPE_OR_CONTROL.sub(_escaped, match[1] or ""), bare)


def _escaped(match: re.Match[str]) -> str:
    character = match[0][-1]
    return match[0] if character >= " " else f"\\u{ord(character):04x}"


def repair_arguments(arguments: Any, schema: Schema) -> Any:
    """Repair arguments that do not fit a schema; a value with no single reading is left unchanged.

    - ``null`` becomes ``{}``, as does an empty value for a tool without parameters.
    - ``null`` for a property that cannot be null is removed, so that its default applies.
    - A string becomes the object, list, number or boolean that it contains as JSON, if the schema allows no string.
    - A number becomes text as the model wrote it, if the schema allows text and no number.
    - An enum member's name becomes its value.
    """
    if isinstance(arguments, str):  # encoded twice: the object is the content of a JSON string
        arguments = _parse(strip_wrapping(arguments) or "{}")
    if arguments is None or (_is_empty(arguments) and _takes_no_arguments(arguments, schema)):
        return {}
    return _repair(arguments, list(alternatives(schema, schema)), schema)


def _repair(value: Any, options: Sequence[Schema], root: Schema) -> Any:
    if (exact := [each for each in options if EXACT in each]) and isinstance(value, str | int | float):
        value = _exact(value, exact, options)
    if isinstance(value, str | int | float) and not any(_accepts(each, value) for each in options):
        value = _read_text(value, options) if isinstance(value, str) else _write_number(value, options)
    fitting = [each for each in options if isinstance(value, dict | list) and _accepts(each, value)]
    # If several alternatives accept an object, nothing says which of them its properties belong to.
    if len(fitting) != 1:
        return value
    if isinstance(value, dict):
        return dict(_repair_properties(value, fitting[0], root))
    return _repair_items(value, fitting[0], root)


def _exact(value: str | float, exact: Sequence[Schema], options: Sequence[Schema]) -> Any:
    """A decimal as it is written.

    Raises:
        ToolArgumentsError: a number is no date, which pydantic would read as seconds since 1970.
    """
    kind = exact[0].get("format")
    if kind is None:
        return value.text if isinstance(value, _WrittenFloat) else value
    if _NUMBER.fullmatch(str(value)) and not any(_accepts(each, value) for each in options if EXACT not in each):
        raise ToolArgumentsError(f"{value!s:.40} is no {kind}: write it as in ISO 8601, such as {_ISO[kind]}")
    return value


def _repair_properties(value: Mapping[str, Any], schema: Schema, root: Schema) -> Iterator[tuple[str, Any]]:
    properties = schema.get("properties", {})
    for name, part in value.items():
        options = list(alternatives(properties.get(name, schema.get("additionalProperties")), root))
        # Models write null for what they leave out. An explicit null stays where the schema allows or ignores it.
        if part is not None or name not in properties or any(_accepts(each, None) for each in options):
            yield name, _repair(part, options, root)


def _repair_items(value: Sequence[Any], schema: Schema, root: Schema) -> list[Any]:
    first = [list(alternatives(each, root)) for each in schema.get("prefixItems", ())]
    rest = list(alternatives(schema.get("items"), root))
    return [_repair(item, first[at] if at < len(first) else rest, root) for at, item in enumerate(value)]


def _accepts(schema: Schema, value: Any) -> bool:
    """Whether a value has the type of a schema and, for an enum or a constant, one of its values."""
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    types = schema.get("type", _TYPES.values())
    name = _TYPES.get(type(value), "number")  # a subclass of float, see _WrittenFloat
    is_whole = isinstance(value, float) and value.is_integer()
    return name in types or (name == "integer" and "number" in types) or (is_whole and "integer" in types)


def _read_text(text: str, options: Sequence[Schema]) -> Any:
    """The enum value that a text names, or the value that it contains as JSON; else the text."""
    named = [value for each in options for name, value in each.get(MEMBER_NAMES, ()) if name == text]
    if len(named) == 1:
        return named[0]
    value = _parse(text)
    # ``None`` is also what the text "null" contains: it stays, since the model may mean the word.
    return value if value is not None and any(_accepts(each, value) for each in options) else text


def _write_number(number: float, options: Sequence[Schema]) -> Any:
    text = getattr(number, "text", None) or to_json(number).decode()
    fits = not isinstance(number, bool) and any(_accepts(each, text) for each in options)
    return text if fits else number


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _takes_no_arguments(arguments: Any, schema: Schema) -> bool:
    only = next(alternatives(schema, schema))
    return not only.get("properties") and not (isinstance(arguments, dict) and only.get("additionalProperties"))


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value in ("", [])
