"""Python values as JSON text."""

import json
from collections.abc import Mapping, Sequence, Set, ValuesView
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from app.tool_calling.collecting import EndlessResultError, collected, first_items

__all__ = ["ToolResultError", "json_text"]


class ToolResultError(Exception):
    """A tool returned what no model can be told: its author's fault, so only the log says which type it was."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"a value of the type {type_name} cannot be told to a model")
        self.type_name = type_name


def json_text(value: Any) -> str:
    """Write a value as JSON.

    Dates, decimals, enums, bytes, sets, dataclasses and pydantic models have a JSON form; objects of attrs classes are
    their public fields, any mapping is an object and any other collection an array. An ordinary object has none:
    nothing says which of its attributes are meant for others.

    Raises:
        ToolResultError: it is, or contains, something without a JSON form, or an iterator of too much, or itself.
    """
    try:
        value = collected(value)
    except (EndlessResultError, RecursionError) as error:
        raise ToolResultError(type(value).__name__) from error
    try:
        return to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=_plain).decode()
    except PydanticSerializationError:
        return _written_with_care(value)


def _written_with_care(value: Any) -> str:
    """Once more in Python: lone surrogates become question marks, and a type without a JSON form is named."""
    try:
        plain = to_jsonable_python(value, bytes_mode="base64", fallback=_plain)
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise ToolResultError(type(value).__name__) from error
    return text.encode("utf-8", "replace").decode()


def _plain(value: Any) -> Any:
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is not None:
        return {each.name: getattr(value, each.name) for each in fields if not each.name.startswith("_")}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set | ValuesView):
        return first_items(value)
    raise ToolResultError(type(value).__name__)
