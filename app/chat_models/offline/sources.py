"""What a question has to give to the parameters of one call."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from app.chat_models.offline.question import Question
from app.chat_models.offline.schemas import Parameter
from app.chat_models.offline.texts import NamedPlace
from app.languages import Language

__all__ = ["Sources"]

_T = TypeVar("_T")


@dataclass(slots=True)
class Sources:
    """The question, and what has been taken from it: what one parameter got, another does not get."""

    question: Question
    """The part of the question that the tool is to answer."""
    whole: Question
    places: list[NamedPlace]
    language: Language | None = None
    """The one of several target languages that this call is for."""
    missing: list[Parameter] = field(default_factory=list)
    """Required parameters for which the question holds nothing."""
    taken: set[object] = field(default_factory=set)

    def take(self, kind: str, values: Iterable[_T]) -> _T | None:
        """Take the first value of a kind that is still there."""
        value = next((each for each in values if (kind, each) not in self.taken), None)
        if value is not None:
            self.taken.add((kind, value))
        return value

    def within(self) -> "Sources":
        """The same sources for an object or an array inside, with its own list of what is missing."""
        return replace(self, missing=[])
