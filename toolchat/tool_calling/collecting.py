"""Iterators within what a tool returned: collected within bounds, since nothing says that one ends."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

from toolchat.tool_calling.threads import is_given_up

__all__ = ["EndlessResultError", "collected", "first_items", "holds_iterator"]

MOST_ITEMS = 10_000
"""Items of one iterator, all that they hold included."""
MOST_CHARACTERS = 4 * 1024 * 1024
"""Characters and bytes of one iterator's items."""
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))


class EndlessResultError(ValueError):
    """An iterator gives more than any model could be told, or goes on when nobody waits for it any more."""


def holds_iterator(value: Any) -> bool:
    """Whether an iterator is in a value, which may take any time."""
    kind: Any = type(value)
    if kind in _SCALARS:
        return False
    read = _reader_of(kind)
    if read is None:
        return True
    parts = read(value)
    if _SCALARS.issuperset(map(type, parts)):
        return False  # as nearly always, and found out without a step of Python's for each
    try:
        return any(map(holds_iterator, parts))
    except RecursionError:  # whoever writes it as text says so
        return False


def collected(value: Any) -> Any:
    """A value with lists in place of iterators; to be called where waiting for them harms nobody.

    Raises:
        EndlessResultError: one gives more than it may.
    """
    if not holds_iterator(value):
        return value
    if isinstance(value, Iterator):
        return first_items(value)
    if isinstance(value, dict):
        return {key: collected(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [collected(each) for each in value]
    return {name: collected(getattr(value, name)) for name in _field_names(type(value)) if hasattr(value, name)}


def first_items(iterable: Iterable[Any]) -> list[Any]:
    """All items of what may have no end.

    Raises:
        EndlessResultError: there are more than :data:`MOST_ITEMS`, or they are too long.
    """
    return _collect(iterable, _Budget())


class _Budget:
    def __init__(self) -> None:
        self.items = MOST_ITEMS
        self.characters = MOST_CHARACTERS

    def take(self, item: Any) -> None:
        self.items -= 1
        self.characters -= len(item) if isinstance(item, str | bytes) else 0
        if self.items < 0 or self.characters < 0 or is_given_up():
            raise EndlessResultError


def _collect(iterable: Iterable[Any], budget: _Budget) -> list[Any]:
    items = []
    for item in iterable:
        budget.take(item)
        items.append(_collect(item, budget) if isinstance(item, Iterator) else collected(item))
    return items


@lru_cache(maxsize=1024)
def _reader_of(kind: type) -> Callable[[Any], Collection[Any]] | None:
    """What gives the parts of values of a type; ``None`` where they are iterators."""
    if issubclass(kind, Iterator):
        return None
    if issubclass(kind, dict):
        return dict.values
    if issubclass(kind, (list, tuple, set, frozenset)):
        return lambda value: value
    fields = tuple(_field_names(kind))
    return lambda value: [getattr(value, name, None) for name in fields]


def _field_names(kind: Any) -> Iterable[str]:
    """The fields of a dataclass or of a pydantic model."""
    return getattr(kind, "__dataclass_fields__", ()) or getattr(kind, "__pydantic_fields__", ())
