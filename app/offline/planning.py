"""Planning: which calls answer a question, and what it lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

from app.offline.arguments import Arguments, named_arguments
from app.offline.days import Days
from app.offline.literals import Literal, find_literals
from app.offline.reading import Reading, is_forbidden, names, read
from app.offline.text import Span, Text
from app.offline.tools import OfferedTool, Parameter

__all__ = ["Plan", "PlannedCall", "plan", "with_literals"]

_MOST_CALLS = 5


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
        ignored: Parts of the question that no tool fits, as written.
        is_confirmed: Whether the user has answered the proposed calls with yes; ``None``: not yet.
    """

    text: Text
    readings: tuple[Reading, ...] = ()
    ignored: tuple[str, ...] = ()
    is_confirmed: bool | None = None

    @property
    def calls(self) -> list[PlannedCall]:
        """The calls, each once; none as long as a part lacks something, or there are too many."""
        if not all(each.is_complete for each in self.readings) or self.is_confirmed is False:
            return []
        every = list(chain.from_iterable(map(_calls, self.readings)))
        once = {(each.tool.name, repr(sorted(each.arguments.items()))): each for each in reversed(every)}
        return list(reversed(once.values())) if len(once) <= _MOST_CALLS else []

    @property
    def needs_yes(self) -> bool:
        """Whether a call may change something and was not ordered in so many words."""
        unsure = [each for each in self.readings if not each.is_certain or self.ignored]
        return self.is_confirmed is None and any(each.tool.changes_something for each in unsure)


def _calls(reading: Reading) -> Iterator[PlannedCall]:
    """The calls of a reading: one, and one for each further value of an argument."""
    days = [
        each.value if each.kind == "days" else Days(on=each.value)
        for each in reading.literals
        if each.kind in ("days", "date")
    ]
    places = [each.value.name for each in reading.literals if each.kind == "place"]
    given = reading.arguments
    variants = [given.values, *({**given.values, name: value} for name, value in given.others)]
    places = (
        places
        if len(places) == len(variants)
        else places[:1] * len(variants)
        if len(places) == 1
        else [""] * len(variants)
    )
    for values, place in zip(variants, places, strict=True):
        yield PlannedCall(reading.tool, values, tuple(days), place)


def plan(text: Text, tools: Sequence[OfferedTool]) -> Plan:
    """Plan the calls for a question that stands alone."""
    text = (text.with_payload() or text) if text.is_too_long else text
    if text.is_too_long or not tools or is_forbidden(text):
        return Plan(text)
    return _of_payload(text, tools) or _planned(text, tools)


def _of_payload(text: Text, tools: Sequence[OfferedTool]) -> Plan | None:
    """The plan in which all behind a colon is the text for a tool; ``None`` if no tool takes one there."""
    payload = text.with_payload()
    takers = [each for each in tools if any(map(_takes_text, each.parameters))]
    if payload is None or any(named_arguments(each, text) for each in takers if each.find_name(text.readable)):
        return None
    planned, tail = _planned(payload, takers), payload.raw[slice(*payload.quotes[-1])]
    is_taken = all(tail in each.arguments.values.values() and not each.leftover for each in planned.readings)
    return planned if planned.readings and is_taken else None


def _takes_text(parameter: Parameter) -> bool:
    return parameter.role == "text" or (parameter.role == "other" and parameter.required)


def _planned(text: Text, tools: Sequence[OfferedTool]) -> Plan:
    literals = find_literals(text)
    clauses = text.clauses([(each.start, each.end) for each in literals])
    topics = [
        span for span in clauses if any(names(each, text.within([span]), _inside([span], literals)) for each in tools)
    ]
    strange = [span for span in clauses if topics and span not in topics and not _inside([span], literals)]
    whole = _best(text, literals, tools)
    if whole and not whole.is_complete and strange:
        # What no tool fits is left out, and said to be.
        kept = [span for span in clauses if span not in strange]
        shorter = _best(text.within(kept), literals, tools)
        if shorter and (shorter.is_complete or len(topics) > 1):
            ignored = tuple(text.raw[slice(*span)].strip() for span in strange)
            return replace(_grouped(text, shorter, kept, topics, literals, tools), ignored=ignored)
    return _grouped(text, whole, clauses, topics, literals, tools) if whole else Plan(text)


def _grouped(
    text: Text,
    whole: Reading,
    clauses: list[Span],
    topics: list[Span],
    literals: list[Literal],
    tools: Sequence[OfferedTool],
) -> Plan:
    """The whole as one reading if that explains all, else one for each clause that names a tool, with its followers."""
    is_one_text = not whole.arguments.is_loose or len(topics) < 2 or "," not in text.command
    if len(topics) < 2 or (whole.is_complete and is_one_text):
        return Plan(text, (whole,))
    starts = [clauses[0][0], *(start for start, _ in topics[1:]), len(text.raw)]
    groups = [[span for span in clauses if start <= span[0] < end] for start, end in pairwise(starts)]
    found = [_best(text.within(group), _inside(group, literals), tools) for group in groups]
    readings = [each for each in found if each is not None]
    readings = [each if not each.arguments.missing else _borrowing(each, readings) for each in readings]
    return Plan(text, tuple(readings))


def _inside(spans: Sequence[Span], literals: Sequence[Literal]) -> list[Literal]:
    return [each for each in literals if any(start <= each.start < end for start, end in spans)]


def _best(text: Text, literals: Sequence[Literal], tools: Sequence[OfferedTool]) -> Reading | None:
    """The tool that fits a part best; ``None`` if none is named."""
    readings = [found for each in tools if (found := read(each, text, literals))]
    return max(readings, key=lambda each: each.rank, default=None)


def _borrowing(reading: Reading, others: Sequence[Reading]) -> Reading:
    """The reading with what it lacks from another part: "the weather and the time in Rome"."""
    own = {each.kind for each in reading.literals}
    lent = [each for other in others if other is not reading for each in other.literals]
    return with_literals(
        reading, [each for each in lent if each.kind not in own and each.kind in ("place", "days", "date")]
    )


def with_literals(reading: Reading, lent: Sequence[Literal]) -> Reading:
    """The reading with literals from elsewhere, which explain none of its own words."""
    literals = (*(replace(each, start=0, end=0, before="") for each in lent), *reading.literals)
    given = reading.arguments
    return replace(
        reading,
        literals=literals,
        arguments=Arguments(reading.tool, reading.text, literals, given.pieces, given.named).fill(),
    )
