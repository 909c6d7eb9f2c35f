"""Notes of what happened, counted some at a time.

What is told is noted in a list, and counted when 256 notes have come together or somebody reads: in a row they find
code and numbers in the processor's caches, which one question after the other does not.
"""

from collections.abc import Callable, Sequence
from typing import Any

from app.observability.series import Names, Numbers

__all__ = ["ByKind", "count_told", "outcomes", "tell"]

_MOST_NOTES, _MOST_KINDS = 256, 2000
_notes: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
outcomes = Names(100)
"""The outcomes that have come up; a folder's own errors may have codes of their own."""


def tell(count: Callable[..., None], *what: Any) -> None:
    """Note something that ``count`` will be called for."""
    _notes.append((count, what))
    if len(_notes) >= _MOST_NOTES:
        count_told()


def count_told() -> None:
    """Count whatever has been told until now; whoever reads the figures calls it first."""
    notes = _notes[:]
    _notes.clear()
    for count, what in notes:
        count(*what)


class ByKind(dict[Any, Sequence[Numbers]]):
    """All numbers that a kind of event adds to, found by one look instead of one each.

    Args:
        make: looks them up for a key that is new, which it is given part by part.
    """

    def __init__(self, make: Callable[..., Sequence[Numbers]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: tuple[Any, ...]) -> Sequence[Numbers]:
        numbers = self._make(*key)
        if len(self) < _MOST_KINDS:
            self[key] = numbers
        return numbers
