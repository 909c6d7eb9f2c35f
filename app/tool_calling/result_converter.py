"""What a tool returned, as text for the model."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

__all__ = ["ToolCallResultConverter", "convert_result", "quoted_result", "truncated"]

_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

ToolCallResultConverter = Callable[[Any], str]
"""Turns a tool's return value into text."""


def convert_result(result: Any) -> str:
    """Turn any return value into text: text stays as it is, ``None`` becomes ``Done``, all else becomes JSON.

    Dates, sets, bytes, decimals, enums, dataclasses and pydantic models have a JSON form; the bytes of an image become
    ``mimeType`` and ``data``, as in Spring AI. Nothing raises: what JSON cannot hold (a lock, a cycle) is named by its
    type.
    """
    if result is None:
        return "Done"
    if isinstance(result, str):
        return result.encode("utf-8", "replace").decode()
    if isinstance(result, bytes) and (media_type := _image_type(result)):
        return to_json({"mimeType": media_type, "data": b64encode(result).decode()}).decode()
    try:
        return to_json(result, inf_nan_mode="strings", bytes_mode="base64", fallback=_type_name).decode()
    except (PydanticSerializationError, ValueError, RecursionError):
        return to_json(_type_name(result)).decode()


def quoted_result(result: Any) -> str:
    """Turn any return value into JSON, text and ``Done`` too, in quotes: Spring AI's form since 1.0."""
    text = convert_result(result)
    return to_json(text).decode() if result is None or isinstance(result, str) else text


def truncated(text: str, limit: int) -> str:
    """Cut a text to ``limit`` characters, from the middle, saying how many are missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 8
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


def _image_type(data: bytes) -> str | None:
    return next((media_type for start, media_type in _IMAGES.items() if data.startswith(start)), None)


def _type_name(value: Any) -> str:
    return f"<{type(value).__name__}>"
