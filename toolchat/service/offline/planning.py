"""Planning: which calls answer a question, and what it lacks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from toolchat.service.offline.literals import find_literals
from toolchat.service.offline.reading import Reading, read
from toolchat.service.offline.text import Text
from toolchat.service.offline.tools import OfferedTool

_MOST_CALLS, _LONGEST = 5, 1000
_CONDITION = re.compile(r"\b(?:if|unless|in case)\b|如果|要是|假如")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call, with the place and the single days that the question names: each day's words, and how far away it is."""

    tool: OfferedTool
    arguments: dict[str, Any]
    place: str = ""
    days: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question leads to.

    Args:
        readings: What a tool can answer, or could if nothing were missing: the whole question, or both of its halves.
        is_confirmed: Whether the user has answered the proposed calls with yes; ``None``: not yet.
    """

    text: Text
    readings: tuple[Reading, ...] = ()
    is_confirmed: bool | None = None

    @property
    def calls(self) -> list[PlannedCall]:
        """The calls; none as long as something is missing, or there are too many."""
        if not all(each.is_complete for each in self.readings) or self.is_confirmed is False:
            return []
        calls = list(chain.from_iterable(map(_calls, self.readings)))
        return calls if len(calls) <= _MOST_CALLS else []

    @property
    def needs_yes(self) -> bool:
        """Whether a call may change something and was not ordered in so many words."""
        unsure = [each for each in self.readings if not each.is_order]
        return self.is_confirmed is None and any(each.arguments.tool.changes_something for each in unsure)


def _calls(reading: Reading) -> Iterator[PlannedCall]:
    """The calls of a reading: one, and one for each further value of an argument."""
    given = reading.arguments
    days = tuple((each.text, each.value - 1) for each in given.literals if each.kind == "day")
    places = [each.text for each in given.literals if each.kind in ("place", "name", "zone")]
    variants = [given.values, *({**given.values, name: value} for name, value in given.others)]
    for n, values in enumerate(variants):
        yield PlannedCall(given.tool, values, places[n] if len(places) == len(variants) else "", days)


def plan(text: Text, tools: Sequence[OfferedTool]) -> Plan:
    """Plan the calls for a question that stands alone: for the whole, or both halves, which then order nothing."""
    if len(text.command.replace("\0", "")) > _LONGEST:
        return Plan(text)
    whole = _best(text, tools)
    # A condition is no request of its own.
    if whole is None or (whole.is_complete and not whole.arguments.is_loose) or _CONDITION.search(text.command):
        return Plan(text, (whole,) if whole else ())
    for first, second in text.halves([(each.start, each.end) for each in whole.arguments.literals]):
        if (one := _best(first, tools)) and one.is_complete and (other := _best(second, tools)) and other.is_complete:
            return Plan(text, (replace(one, is_order=False), replace(other, is_order=False)))
    return Plan(text, (whole,))


def _best(text: Text, tools: Sequence[OfferedTool]) -> Reading | None:
    """The tool that fits a text best, preferably with all behind a colon as one value; ``None`` if none is named."""
    payload = text.with_payload()
    best = _fitting(payload, tools) if payload else None
    if payload and best and payload.raw[slice(*payload.quotes[-1])] in best.arguments.values.values():
        return best
    return _fitting(text, tools)


def _fitting(text: Text, tools: Sequence[OfferedTool]) -> Reading | None:
    literals = find_literals(text)
    readings = [found for each in tools if (found := read(each, text, literals))]
    return max(readings, key=lambda each: each.rank, default=None)
