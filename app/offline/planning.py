"""Planning: which calls answer a question, and what it lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

from app.offline.arguments import Arguments
from app.offline.literals import Days, Literal, find_literals
from app.offline.reading import Reading, read
from app.offline.text import Span, Text
from app.offline.tools import OfferedTool

__all__ = ["Plan", "PlannedCall", "plan"]

_MOST_CALLS, _LONGEST = 5, 1000


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call, with the days and the place that it is about as the question names them."""

    tool: OfferedTool
    arguments: dict[str, Any]
    days: tuple[Days, ...] = ()
    place: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question leads to.

    Args:
        readings: The parts that a tool can answer, or could if nothing were missing.
        is_confirmed: Whether the user has answered the proposed calls with yes; ``None``: not yet.
    """

    text: Text
    readings: tuple[Reading, ...] = ()
    is_confirmed: bool | None = None

    @property
    def calls(self) -> list[PlannedCall]:
        """The calls; none as long as a part lacks something, or there are too many."""
        if not all(each.is_complete for each in self.readings) or self.is_confirmed is False:
            return []
        calls = list(chain.from_iterable(map(_calls, self.readings)))
        return calls if len(calls) <= _MOST_CALLS else []

    @property
    def needs_yes(self) -> bool:
        """Whether a call may change something and was not ordered in so many words."""
        unsure = [each for each in self.readings if not each.is_certain]
        return self.is_confirmed is None and any(each.tool.changes_something for each in unsure)


def _calls(reading: Reading) -> Iterator[PlannedCall]:
    """The calls of a reading: one, and one for each further value of an argument."""
    days = tuple(each.value for each in reading.literals if each.kind == "days")
    places = [each.text for each in reading.literals if each.kind in ("place", "name", "zone")]
    given = reading.arguments
    variants = [given.values, *({**given.values, name: value} for name, value in given.others)]
    for n, values in enumerate(variants):
        yield PlannedCall(reading.tool, values, days, places[n] if len(places) == len(variants) else "")


def plan(text: Text, tools: Sequence[OfferedTool]) -> Plan:
    """Plan the calls for a question that stands alone."""
    payload = text.with_payload()
    if payload and not any(each.find_name(text.readable) for each in tools):
        # All behind a colon is one text, if a tool takes it there.
        planned, tail = _planned(payload, tools), payload.raw[slice(*payload.quotes[-1])]
        if any(tail in each.arguments.values.values() for each in planned.readings if not each.leftover):
            return planned
    return _planned(text, tools)


def _planned(text: Text, tools: Sequence[OfferedTool]) -> Plan:
    """The whole as one reading if that explains all, else one for each clause that names a tool, with its followers."""
    if len(text.command.replace("\0", "")) > _LONGEST:
        return Plan(text)
    literals = find_literals(text)
    whole = _best(text, literals, tools)
    clauses = text.clauses([(each.start, each.end) for each in literals]) if whole else []
    topics = [span for span in clauses if _best(text.within([span]), _inside([span], literals), tools)]
    if whole is None or len(topics) < 2 or (whole.is_complete and not whole.arguments.is_loose):
        return Plan(text, (whole,) if whole else ())
    starts = [0, *(start for start, _ in topics[1:]), len(text.raw)]
    groups = [[span for span in clauses if start <= span[0] < end] for start, end in pairwise(starts)]
    readings = [_best(text.within(group), _inside(group, literals), tools) for group in groups]
    found = [each for each in readings if each is not None]
    if len(found) < len(groups) or (whole.is_complete and not all(each.is_complete for each in found)):
        return Plan(text, (whole,))
    return Plan(text, tuple(_borrowing(each, found) if each.arguments.missing else each for each in found))


def _inside(spans: Sequence[Span], literals: Sequence[Literal]) -> list[Literal]:
    return [each for each in literals if any(start <= each.start < end for start, end in spans)]


def _best(text: Text, literals: Sequence[Literal], tools: Sequence[OfferedTool]) -> Reading | None:
    """The tool that fits a part best; ``None`` if none is named."""
    readings = [found for each in tools if (found := read(each, text, literals))]
    return max(readings, key=lambda each: each.rank, default=None)


def _borrowing(reading: Reading, others: Sequence[Reading]) -> Reading:
    """The reading with what it lacks from another part: "the weather and the time in Rome"."""
    takes_days = any(each.role == "days" for each in reading.tool.parameters)
    kinds = {"place", "zone", "name", *(["days"] if takes_days else [])} - {each.kind for each in reading.literals}
    lent = (replace(each, before="") for other in others for each in other.literals if each.kind in kinds)
    literals = (*lent, *reading.literals)
    arguments = Arguments(reading.tool, reading.text, literals, reading.arguments.topic).fill()
    return replace(reading, literals=literals, arguments=arguments)
