"""Convert a tool's return value to text for the model: text, JSON, and shortened JSON."""

import json
import re
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from toolchat.messages import sendable


class ToolResultError(Exception):
    """A tool returned a value without a JSON form. Only the log names the type: the model cannot fix the tool."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"a value of type {type_name} has no JSON form")
        self.type_name = type_name


_Data = TypeVar("_Data")


@dataclass(frozen=True, slots=True)
class ToolAnswer(Generic[_Data]):
    """A tool's result in two forms: for the model, and for the client that shows it.

    A tool annotated ``-> ToolAnswer[Forecast]`` has the output schema of ``Forecast``.
    """

    text: Any
    """For the model; converted as any result."""
    data: _Data
    """For the client, never sent to the model: anything with a JSON form. It is not shortened."""
    images: tuple[str, ...] = ()
    """For a model that takes images: their URLs, or data URLs with their bytes."""


_MAX_ITEMS = 10_000
"""Items of a collection that only claims to have a length, such as a ``range``."""
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))


def json_text(value: Any) -> str:
    """Serialize a value to JSON.

    Dates, decimals, enums, bytes, sets, dataclasses and pydantic models have a JSON form. Dataclasses and attrs objects
    are written as their public fields; a mapping, a named tuple or a database's row as an object; any other collection
    as an array; NaN and infinity as null. An ordinary object has no JSON form, since nothing says which of its
    attributes are public.
    """
    try:
        return to_json(with_names(value), inf_nan_mode="null", bytes_mode="base64", fallback=_to_plain).decode()
    except RecursionError as error:
        raise ToolResultError(type(value).__name__) from error
    except PydanticSerializationError:
        return _json_text_slowly(value)


def with_names(value: Any) -> Any:
    """The value with dicts for its named tuples, unless they are fields of a pydantic model.

    Iterators are rejected before pydantic sees them, in fields too: it would run one to its end, which may never come.
    """
    kind: Any = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, (Iterator, ToolAnswer)):  # the data of an answer within a result would reach the model
        raise ToolResultError(type(value).__name__)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return _with_names_in(value)
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return value if _is_plain(value) else [with_names(part) for part in value]
    parts = _with_names_in({name: getattr(value, name, None) for name in _fields(kind)})
    return parts if parts and not hasattr(value, "__pydantic_serializer__") else value


def _with_names_in(parts: dict[Any, Any]) -> dict[Any, Any]:
    # The test of all types takes no Python step for each value.
    return parts if _is_plain(parts.values()) else {name: with_names(part) for name, part in parts.items()}


@lru_cache(maxsize=256)
def _fields(kind: Any) -> list[str]:
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else getattr(kind, "__pydantic_fields__", ())
    return [name for name in names if not name.startswith("_")]


def _is_plain(parts: Collection[Any]) -> bool:
    return _SCALARS.issuperset(map(type, parts))


def _json_text_slowly(value: Any) -> str:
    """Serialize in Python: lone surrogates become question marks, and an unsupported type is named."""
    try:
        plain = to_jsonable_python(with_names(value), inf_nan_mode="null", bytes_mode="base64", fallback=_to_plain)
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise ToolResultError(type(value).__name__) from error
    return sendable(text)


def _to_plain(value: Any) -> Any:
    """Convert a type that pydantic cannot serialize to a dict or a list."""
    return with_names(_to_container(value))


def _to_container(value: Any) -> Any:
    attributes = getattr(type(value), "__attrs_attrs__", None)
    if attributes is not None:
        return {each.name: getattr(value, each.name) for each in attributes if not each.name.startswith("_")}
    if isinstance(value, Mapping) or hasattr(value, "keys"):  # a row of sqlite3 is no mapping, but has the names
        return dict(value)
    if isinstance(value, Sequence | Set | ValuesView) and len(value) <= _MAX_ITEMS:
        return list(islice(value, len(value)))  # the length bounds a sequence whose __getitem__ never raises
    raise ToolResultError(type(value).__name__)


DONE = "Done"
"""The text that a converter receives for the result of a function annotated ``-> None``."""

_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

ToolCallResultConverter = Callable[[Any], str]
"""Converts a tool's return value to text."""


def convert_result(result: Any) -> str:
    """Convert a return value to text: a string is unchanged, everything else becomes JSON, ``None`` too.

    The types with a JSON form are those of :func:`json_text`. The bytes of an image become ``mimeType`` and ``data``,
    as in Spring AI.

    Raises:
        ToolResultError: the value has no JSON form. Iterators have none, since they may be endless.
    """
    if isinstance(result, str):
        return sendable(result)
    if isinstance(result, bytes) and (media_type := _image_type(result)):
        return json_text({"mimeType": media_type, "data": b64encode(result).decode()})
    return json_text(result)


def quoted_result(result: Any) -> str:
    """Convert a return value to JSON, as Spring AI does since 1.0: a string is quoted unless it is valid JSON."""
    text = convert_result(result)
    return json_text(text) if isinstance(result, str) and json_or_text(text) is text else text


def truncate(text: str, limit: int) -> str:
    """Cut a text to about ``limit`` characters by leaving out its middle, with a note on how many are missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 8
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


def json_or_text(text: str) -> Any:
    """Parse JSON; text that is not valid JSON is returned as it is."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text


def _image_type(data: bytes) -> str | None:
    return next((media_type for start, media_type in _IMAGES.items() if data.startswith(start)), None)


_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,].*|[A-Za-z0-9+/_-]{200,}={0,2}", re.DOTALL)
"""An image or other bytes as text: useless if cut."""
_MIN_ROOM = 100
"""With less room than this, a part is left out instead of cut. Every note is shorter."""


def shorten(text: str, limit: int) -> str:
    """Shorten a result to about ``limit`` characters: JSON stays valid, other text loses its middle.

    In JSON the longest parts are shortened: strings are cut, lists and objects lose entries from their end, and base64
    data is left out as a whole. A note in its place says so.
    """
    if len(text) <= limit:
        return text
    try:
        value = from_json(text, allow_inf_nan=False) if text[:1] in '{["' else None
    except ValueError:
        value = None
    if value is None:
        return truncate(text, limit)
    short = _json(_fit(value, limit))
    return short if len(short) <= limit else _json(_left_out("characters", len(text)))


def _fit(value: Any, room: int) -> Any:
    size = len(_json(value))
    if size <= room:
        return value
    if isinstance(value, dict):
        return _fit_object(value, room)
    if isinstance(value, list):
        return _fit_list(value, room)
    if room < 2 * _MIN_ROOM or not isinstance(value, str) or _DATA.fullmatch(value):
        return _left_out("characters", len(value) if isinstance(value, str) else size)
    # The JSON text is longer than the string by its quotes and escapes, so the room shrinks in proportion.
    return truncate(value, (room - _MIN_ROOM) * len(value) // size)


def _fit_list(items: list[Any], room: int) -> list[Any]:
    fitted: list[Any] = []
    room -= _MIN_ROOM
    for item in items:
        if room < _MIN_ROOM:
            return [*fitted, _left_out("entries", len(items) - len(fitted))]
        fitted.append(_fit(item, room))
        room -= len(_json(fitted[-1])) + 1
    return fitted


def _fit_object(fields: dict[str, Any], room: int) -> dict[str, Any]:
    """Share the room equally: what short fields do not use goes to the longer ones."""
    fitted: dict[str, Any] = {}
    room -= _MIN_ROOM
    sizes = {name: len(_json(part)) for name, part in fields.items()}
    for place, name in enumerate(sorted(sizes, key=sizes.__getitem__)):
        room -= len(_json(name)) + 2
        share = max(room // (len(fields) - place), min(room, _MIN_ROOM))
        if share < min(_MIN_ROOM, sizes[name]):
            break
        fitted[name] = _fit(fields[name], share)
        room -= len(_json(fitted[name]))
    ordered = {name: fitted[name] for name in fields if name in fitted}
    return ordered | ({"...": _left_out("fields", len(fields) - len(fitted))} if len(fitted) < len(fields) else {})


def _left_out(what: str, number: int) -> str:
    return f"[{number} {what} left out]"


def _json(value: Any) -> str:
    return to_json(value).decode()
