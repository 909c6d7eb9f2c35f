"""What a tool returned, as text for the model."""

from base64 import b64encode
from collections.abc import Callable
from types import GeneratorType
from typing import Any

from pydantic_core import from_json

from app.tool_calling.json_text import ToolResultError, json_text

__all__ = ["DONE", "ToolCallResultConverter", "convert_result", "quoted_result", "truncated"]

DONE = "Done"
"""What a function that promises nothing, ``-> None``, has returned: its converter is given this text."""

_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

ToolCallResultConverter = Callable[[Any], str]
"""Turns a tool's return value into text."""


def convert_result(result: Any) -> str:
    """Turn a return value into text: text stays as it is, all else becomes JSON, ``None`` too.

    What has a JSON form is told by :func:`json_text`; the bytes of an image become ``mimeType`` and ``data``, as in
    Spring AI.

    Raises:
        ToolResultError: it has no JSON form. A generator has none: the event loop would wait for what it yields.
    """
    if isinstance(result, str):
        return result if result.isascii() else result.encode("utf-8", "replace").decode()
    if isinstance(result, bytes) and (media_type := _image_type(result)):
        return json_text({"mimeType": media_type, "data": b64encode(result).decode()})
    if isinstance(result, GeneratorType):
        raise ToolResultError("generator")
    return json_text(result)


def quoted_result(result: Any) -> str:
    """Turn a return value into JSON, Spring AI's form since 1.0: text is put in quotes, unless it is JSON already."""
    text = convert_result(result)
    return json_text(text) if isinstance(result, str) and not _is_json(text) else text


def truncated(text: str, limit: int) -> str:
    """Cut a text to ``limit`` characters, from the middle, saying how many are missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 8
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


def _is_json(text: str) -> bool:
    try:
        from_json(text, allow_inf_nan=False)
    except ValueError:
        return False
    return True


def _image_type(data: bytes) -> str | None:
    return next((media_type for start, media_type in _IMAGES.items() if data.startswith(start)), None)
