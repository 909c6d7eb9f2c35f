"""Deferred recording: events are queued on the request path, and applied to the metrics in batches.

A batch finds code and numbers in the processor's caches, which single events between requests do not.
"""

from collections.abc import Callable, Sequence
from typing import Any

from app.observability.series import Names, Numbers

__all__ = ["ByKind", "apply_recorded", "outcomes", "record_later"]

_MAX_QUEUED, _MAX_KINDS = 256, 2000
_queue: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
outcomes = Names(100)
"""Outcomes so far; the errors of tool modules may have codes of their own."""


def record_later(record: Callable[..., None], *values: Any) -> None:
    """Queue a call of ``record`` with these values."""
    _queue.append((record, values))
    if len(_queue) >= _MAX_QUEUED:
        apply_recorded()


def apply_recorded() -> None:
    """Run all queued calls; needed before metrics are read."""
    queued = _queue[:]
    _queue.clear()
    for record, values in queued:
        record(*values)


class ByKind(dict[Any, Sequence[Numbers]]):
    """Cache of all numbers that a kind of event changes: one lookup instead of one per metric.

    Args:
        make: returns the numbers of a key that is not cached; gets the parts of the key as arguments.
    """

    def __init__(self, make: Callable[..., Sequence[Numbers]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: tuple[Any, ...]) -> Sequence[Numbers]:
        numbers = self._make(*key)
        if len(self) < _MAX_KINDS:
            self[key] = numbers
        return numbers
