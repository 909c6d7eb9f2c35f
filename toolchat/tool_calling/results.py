"""What a tool returned, as text for the model."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence, Set, ValuesView
from types import GeneratorType
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from toolchat.tool_calling.collecting import EndlessResultError, collected, first_items

__all__ = [
    "DONE",
    "ToolCallResultConverter",
    "ToolResultError",
    "convert_result",
    "json_text",
    "quoted_result",
    "shorten",
    "truncate",
]


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


def truncate(text: str, limit: int) -> str:
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


_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,].*|[A-Za-z0-9+/_-]{200,}={0,2}", re.DOTALL)
"""An image or other bytes as text: worth nothing without its end."""
_LEAST = 100
"""Characters below which nothing is cut or begun any more; every note takes less."""


def shorten(text: str, limit: int) -> str:
    """Bring a result down to about ``limit`` characters: JSON stays JSON, any other text is cut in its middle.

    In JSON the longest parts give way: texts are cut, lists and objects lose entries from their end, and the base64 of
    an image or of other bytes is left out whole. A note in its place says so each time.
    """
    if len(text) <= limit:
        return text
    try:
        value = from_json(text, allow_inf_nan=False) if text[:1] in '{["' else None
    except ValueError:
        value = None
    if value is None:
        return truncate(text, limit)
    fitted = _json(_fitted(value, limit))
    return fitted if len(fitted) <= limit else _json(_left_out("characters", len(text)))


def _fitted(value: Any, room: int) -> Any:
    size = len(_json(value))
    if size <= room:
        return value
    if isinstance(value, dict):
        return _fitted_object(value, room)
    if isinstance(value, list):
        return _fitted_list(value, room)
    if room < 2 * _LEAST or not isinstance(value, str) or _DATA.fullmatch(value):
        return _left_out("characters", len(value) if isinstance(value, str) else size)
    # Quotes and escapes take room of their own.
    return truncate(value, (room - _LEAST) * len(value) // size)


def _fitted_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    room -= _LEAST
    for item in items:
        if room < _LEAST:
            return [*kept, _left_out("entries", len(items) - len(kept))]
        kept.append(_fitted(item, room))
        room -= len(_json(kept[-1])) + 1
    return kept


def _fitted_object(fields: dict[str, Any], room: int) -> dict[str, Any]:
    """Shares the room: short fields stay whole and leave theirs to the long ones."""
    kept: dict[str, Any] = {}
    room -= _LEAST
    sizes = {name: len(_json(part)) for name, part in fields.items()}
    for place, name in enumerate(sorted(sizes, key=sizes.__getitem__)):
        room -= len(_json(name)) + 2
        share = max(room // (len(fields) - place), min(room, _LEAST))
        if share < min(_LEAST, sizes[name]):
            break
        kept[name] = _fitted(fields[name], share)
        room -= len(_json(kept[name]))
    ordered = {name: kept[name] for name in fields if name in kept}
    return ordered | ({"...": _left_out("fields", len(fields) - len(kept))} if len(kept) < len(fields) else {})


def _left_out(what: str, number: int) -> str:
    return f"[{number} {what} left out]"


def _json(value: Any) -> str:
    return to_json(value).decode()
