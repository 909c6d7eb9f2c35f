"""Results that are too long for a model: text is cut, what cannot be cut is left out, and both are said."""

import re
from typing import Any

from pydantic_core import from_json, to_json

from app.tool_calling.result_converter import truncated

__all__ = ["shortened"]

_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,].*|[A-Za-z0-9+/_-]{200,}={0,2}", re.DOTALL)
"""An image or other bytes as text: worth nothing without its end."""
_LEAST = 100
"""Characters below which nothing is cut or begun any more; every note takes less."""


def shortened(text: str, limit: int) -> str:
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
        return truncated(text, limit)
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
    return truncated(value, (room - _LEAST) * len(value) // size)


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
