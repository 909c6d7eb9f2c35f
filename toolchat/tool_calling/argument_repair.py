"""What a model wrote as arguments, read as it was meant, where only one reading is possible."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from toolchat.tool_calling.json_schema import Schema, alternatives

__all__ = ["MEMBER_NAMES", "repair_arguments", "strip_wrapping"]

MEMBER_NAMES = "x-member-names"
"""The schema key that holds an enum's members, pairs of name and value; the model is not sent this key."""

_TYPES = {
    type(None): "null", str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"
}  # fmt: skip
_TEXT_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[}\]])', re.DOTALL)
"""A text, even one without an end, or a comma too many. It never goes back, or a long text could hold up everybody."""


def strip_wrapping(text: str) -> str:
    """Take JSON out of its wrapping: a byte order mark, a code fence, commas before a closing bracket."""
    bare = text.removeprefix("\ufeff").strip()
    if bare.startswith("```") and bare.endswith("```") and len(bare) >= 6:
        # No pattern for the whole: one with blanks on both sides of what it looks for takes hours for a page of blanks.
        bare = re.sub(r"\A\w*", "", bare[3:-3]).strip()
    return _TEXT_OR_COMMA.sub(lambda match: match[1] or "", bare)


def repair_arguments(arguments: Any, schema: Schema) -> Any:
    """Change arguments that do not fit a schema into those that were meant; what is not understood stays.

    ``null`` stands for no arguments, and so does anything without content where none are wanted. ``null`` for a
    property that cannot be null is left out, so that its default counts. Text becomes the object, list, number or
    boolean that it holds as JSON, where the schema wants one and no text; an enum member's name becomes its value.
    """
    if isinstance(arguments, str):
        arguments = _parsed(strip_wrapping(arguments) or "{}")
    if arguments is None or (_is_empty(arguments) and _wants_nothing(arguments, schema)):
        return {}
    return _mended(arguments, list(alternatives(schema, schema)), schema)


def _mended(value: Any, forms: Sequence[Schema], root: Schema) -> Any:
    if isinstance(value, str) and not any(_takes(each, value) for each in forms):
        value = _meant(value, forms)
    fitting = [each for each in forms if isinstance(value, dict | list) and _takes(each, value)]
    if len(fitting) != 1:
        return value
    return dict(_fields(value, fitting[0], root)) if isinstance(value, dict) else _items(value, fitting[0], root)


def _fields(value: Mapping[str, Any], form: Schema, root: Schema) -> Iterator[tuple[str, Any]]:
    properties = form.get("properties", {})
    for name, part in value.items():
        forms = list(alternatives(properties.get(name, form.get("additionalProperties")), root))
        if part is not None or name not in properties or any(_takes(each, None) for each in forms):
            yield name, _mended(part, forms, root)


def _items(value: Sequence[Any], form: Schema, root: Schema) -> list[Any]:
    first = [list(alternatives(each, root)) for each in form.get("prefixItems", ())]
    rest = list(alternatives(form.get("items"), root))
    return [_mended(item, first[at] if at < len(first) else rest, root) for at, item in enumerate(value)]


def _takes(form: Schema, value: Any) -> bool:
    """Whether a value is of a form's type, and among its values where it has some; a form without a type takes all."""
    if "enum" in form or "const" in form:
        return value in form.get("enum", [form.get("const")])
    types = form.get("type", _TYPES.values())
    name = _TYPES[type(value)]
    return name in types or (name == "integer" and "number" in types)


def _meant(text: str, forms: Sequence[Schema]) -> Any:
    named = [value for each in forms for name, value in each.get(MEMBER_NAMES, ()) if name == text]
    if len(named) == 1:
        return named[0]
    value = _parsed(text)
    return value if any(_takes(each, value) for each in forms) and value is not None else text


def _parsed(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


def _wants_nothing(arguments: Any, schema: Schema) -> bool:
    form = next(alternatives(schema, schema))
    return not form.get("properties") and not (isinstance(arguments, dict) and form.get("additionalProperties"))


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value in ("", [])
