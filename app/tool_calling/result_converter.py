"""What a tool returned, as text for the model."""

from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

__all__ = ["ToolCallResultConverter", "convert_result", "truncated"]

ToolCallResultConverter = Callable[[Any], str]
"""Turns a tool's return value into text."""


def convert_result(result: Any) -> str:
    """Turn any return value into text: text stays as it is, ``None`` becomes ``Done``, all else becomes JSON.

    Dates, sets, bytes, decimals, enums, dataclasses and pydantic models have a JSON form; what has none is named
    by its type. Nothing raises: a value that JSON cannot hold at all (a cycle) becomes its type's name.
    """
    if result is None:
        return "Done"
    if isinstance(result, str):
        return result.encode("utf-8", "replace").decode()
    try:
        return to_json(result, inf_nan_mode="strings", bytes_mode="base64", fallback=_type_name).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        return to_json(_type_name(result)).decode()


def truncated(text: str, limit: int) -> str:
    """Cut a text to ``limit`` characters, from the middle, saying how many are missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 8
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


def _type_name(value: Any) -> str:
    return f"<{type(value).__name__}>"
