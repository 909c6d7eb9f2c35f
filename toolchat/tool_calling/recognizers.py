"""Recognizers: how the value of a tool's parameter is found in a question, for models that work by rules."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Recognized(NamedTuple):
    """A value that a question names.

    Args:
        value: What the parameter receives.
        start: Index of the first character that stands for it.
        end: Index behind the last one.
    """

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Recognizer:
    """Declares how a parameter's value is recognised in a question: ``Annotated[str, Recognizer(find_zone)]``.

    Only the offline model uses it; other models read the parameter's description. Two parameters with the same function
    are told apart by ``from`` and ``to``.

    Args:
        find: Finds the values in a question, in any order; it must not block.
    """

    find: Callable[[str], Iterable[Recognized]]
