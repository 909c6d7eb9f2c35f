"""Planning: which calls answer a question, and what it lacks."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolchat.chat.advisors.tool_search import ToolIndex
from toolchat.service.offline.reading import Reading, read
from toolchat.service.offline.text import Text
from toolchat.service.offline.tools import OfferedTool
from toolchat.service.offline.values import find_values
from toolchat.service.offline.words import terms_of
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata

_MOST_CALLS, _LONGEST, _MOST_READ, _MOST_PLANNERS = 5, 1000, 8, 16
_INSTEAD = re.compile(r"\b(?:but|instead)\b|换成|改成|好的?")
_recent: "OrderedDict[tuple[int, ...], tuple[object, Planner]]" = OrderedDict()


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call, with the place and the single days that the question names: each day's words, and how far away it is."""

    tool: OfferedTool
    arguments: dict[str, Any]
    place: str = ""
    days: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question, or both of its halves, leads to; ``is_confirmed`` is the user's yes or no, ``None``: not yet."""

    text: Text
    readings: tuple[Reading, ...] = ()
    is_confirmed: bool | None = None

    @property
    def calls(self) -> list[PlannedCall]:
        """The calls; none as long as something is missing, or there are too many."""
        if not all(each.is_complete for each in self.readings) or self.is_confirmed is False:
            return []
        calls = [call for each in self.readings for call in _calls(each)]
        return calls if len(calls) <= _MOST_CALLS else []

    @property
    def needs_yes(self) -> bool:
        """Whether a call may change something, and nobody has confirmed it; a declared example is meant."""
        unsure = [each for each in self.readings if not each.is_example]
        return self.is_confirmed is None and any(each.tool.changes_something for each in unsure)


def _calls(reading: Reading) -> Iterator[PlannedCall]:
    """The calls of a reading: one, and one for each further value of an argument."""
    found = [(reading.text.raw[each.start : each.end], each) for each in reading.found]
    days = tuple((written, each.value - 1) for written, each in found if each.kind == "day")
    variants = [reading.arguments, *({**reading.arguments, name: value} for name, value in reading.others)]
    for n, arguments in enumerate(variants):
        yield PlannedCall(
            reading.tool, arguments, reading.places[n] if len(reading.places) == len(variants) else "", days
        )


class Planner:
    """The tools of a prompt, indexed."""

    def __init__(self, tools: Sequence[OfferedTool]) -> None:
        self.tools = tools
        self._index = ToolIndex([each.definition for each in tools])
        self._by_name = {each.name: each for each in tools}
        self._called: dict[str, list[OfferedTool]] = {}
        self._last = Plan(Text.of(""))

    def plan(self, text: Text) -> Plan:
        """Plan the calls for a question that stands alone; a turn asks for it again with the results."""
        if self._last.text.raw != text.raw:
            self._last = self._planned(text)
        return self._last

    def _planned(self, text: Text) -> Plan:
        """Plan the calls for the whole question, or for both halves."""
        if len(text.command.replace("\0", "")) > _LONGEST:
            return Plan(text)
        whole = self._best(text)
        if whole is None or whole.is_complete:
            return Plan(text, (whole,) if whole else ())
        for first, second in text.halves([(each.start, each.end) for each in whole.found]):
            if (one := self._best(first)) and one.is_complete and (other := self._best(second)) and other.is_complete:
                return Plan(text, (one, other))
        return Plan(text, (whole,))

    def calls(self, example: str, tool: OfferedTool) -> bool:
        """Whether an example question calls a tool."""
        if example not in self._called:
            self._called[example] = [each.tool for each in self.plan(Text.of(example)).calls]
        return tool in self._called[example]

    def _best(self, text: Text) -> Reading | None:
        """The tool that fits a text best, preferably with all behind a colon as one value."""
        payload = text.with_payload()
        best = self._fitting(payload) if payload else None
        if payload and best and payload.raw[slice(*payload.quotes[-1])] in best.arguments.values():
            return best
        return self._fitting(text)

    def _fitting(self, text: Text) -> Reading | None:
        found = find_values(text)
        concepts = {term[1:] for word, _ in text.words() for term in terms_of(word) if term[0] == "#"}
        likely = self._index.search(" ".join((text.command.replace("\0", " "), *concepts)), _MOST_READ)
        first = [self._by_name[each.name] for each in likely]
        readings: list[Reading] = []
        for tools in (first, [each for each in self.tools if each not in first]):
            readings += [reading for each in tools if (reading := read(each, text, found))]
            if any(each.is_complete for each in readings):
                break
        best = max(readings, key=lambda each: each.rank, default=None)
        # Words that only name another tool are no value: "delete customer" finds none that is called "delete".
        named = [each for each in readings if each.missing and not (each.used or each.leftover)]
        is_filled = best and best.is_complete and best.used
        return max(named, key=lambda each: each.score, default=best) if is_filled else best

    def changed(self, before: Plan, text: Text) -> Plan | None:
        """The plan before with the values of a follow-up; ``None`` if that says anything else."""
        if len(before.readings) != 1 or len(text.raw) > 300:
            return None
        (old,) = before.readings
        text = replace(Text.of(_INSTEAD.sub(" ", text.raw)), chinese=text.chinese)  # "换成 Paris" is Chinese
        new = Reading(old.tool, text, find_values(text))
        new.fill(with_defaults=False)
        if not new.arguments or new.leftover or len(old.leftover) > len(old.missing):
            return None
        kept = [each for each in old.tool.parameters if each.name in old.arguments and each.name not in new.arguments]
        kinds = [each.kind for each in old.tool.parameters if each.name in new.arguments]
        # Which of two values of a kind is meant, such as a source or a target, is not said.
        if any(each.kind in kinds and "default" not in each.schema for each in kept):
            return None
        new.arguments = {**old.arguments, **new.arguments}
        return Plan(text, (new,))


def planner_of(tools: Sequence[tuple[ToolDefinition, ToolMetadata | None]]) -> Planner:
    """The planner of some tools, indexed once; an entry holds its definitions, so no others can have their ids."""
    key = tuple(id(part) for each in tools for part in each)
    if key not in _recent:
        _recent[key] = tools, Planner([OfferedTool(*each) for each in tools])
    _recent.move_to_end(key)
    if len(_recent) > _MOST_PLANNERS:
        _recent.popitem(last=False)
    return _recent[key][1]
