"""Values that are made for every question, and that nobody changes."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

__all__ = ["immutable"]

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[_T]) -> type[_T]:
    """Make a dataclass whose fields the type checker lets nobody set.

    Nothing stops it when the program runs, as ``frozen=True`` would: that sets every field by a call of its own, which
    was a tenth of what a question costs. Where a value is not made for every question, ``frozen=True`` is the better
    way.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
