"""From a question and the tools on offer to the calls to make, and what these leave out or cannot do."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.offline import lexicon
from app.offline.choosing import Choice, KnownTool, chosen, pairs_in
from app.offline.languages import Targets, targets
from app.offline.numbers import Found, horizon
from app.offline.parameters import Parameter
from app.offline.phrases import listed, say
from app.offline.places import places
from app.offline.question import Question
from app.offline.slots import Slots
from app.offline.words import concepts_in

__all__ = ["Incomplete", "Plan", "PlannedCall", "left_out", "plan"]

_MOST = 5
"""Calls of one tool for the places, or the languages, that a question lists."""
_TAKES_TEXT = {"text", "subject", "name", "other", "object", "array", "pattern"}
_EDGES = " \n,，.。;；、?？!！"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool, and all the arguments that it requires."""

    tool: KnownTool
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A tool that fits the question, but required arguments are not in it."""

    tool: KnownTool
    missing: tuple[Parameter, ...]
    places: tuple[Found, ...]
    """The places that were found, as those without a known time zone."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a question; empty when no tool fits."""

    calls: tuple[PlannedCall, ...] = ()
    incomplete: tuple[Incomplete, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the calls leave out or cannot do, in sentences."""


def plan(question: Question, tools: tuple[KnownTool, ...]) -> Plan:
    """Plan the calls: one per tool that the question is about, or one per place where it names several."""
    if lexicon.FORBIDDEN.match(question.flat):
        return Plan()
    if lexicon.UNDONE.match(question.flat):
        tools = tuple(each for each in tools if each.undoes)
    choices = chosen(question, tools)
    if not choices:
        question = question.with_payloads_meant()
        choices = chosen(question, tools)
    planned = [each for choice in choices for each in _planned(choice, question)]
    remarks = [each for each in planned if isinstance(each, str)]
    if choices and not lexicon.TRANSLATE_VERB.search(question.command):
        remarks += _unanswered(question, [each.tool for each in choices])
    return Plan(
        tuple(each for each in planned if isinstance(each, PlannedCall)),
        tuple(each for each in planned if isinstance(each, Incomplete)),
        tuple(dict.fromkeys(remarks)),
    )


def left_out(names: list[str], most: int, chinese: bool) -> Iterator[str]:
    """Say what came after as many look-ups as one question gets."""
    if names:
        rest = ("……" if chinese else ", ...") * (len(names) > 20)
        yield say("left_out", chinese, most=most, names=listed(names[:20], chinese) + rest)


def _planned(choice: Choice, whole: Question) -> Iterator[PlannedCall | Incomplete | str]:
    tool, part = choice.tool, choice.part
    pairs = pairs_in(whole, tool) if tool.is_named_in(whole) else {}
    if _TAKES_TEXT.isdisjoint(tool.roles):
        part, whole = part.with_payloads_meant(), whole.with_payloads_meant()
    found = places(part) or places(whole)
    target = next((each for each in tool.parameters if each.role == "language" and not each.is_source), None)
    wanted = targets(part.command) if target else Targets()
    if target and wanted.unknown and not wanted.known:
        yield Incomplete(tool, (target,), ())
    else:
        for group, language in product(_groups(tool, found), wanted.known[:_MOST] or (None,)):
            yield _one(tool, Slots(part, whole, group, language, pairs))
    yield from _about_places(tool, part, found)
    yield from _about_languages(part, wanted)
    yield from _about_limits(tool, part)


def _one(tool: KnownTool, slots: Slots) -> PlannedCall | Incomplete:
    arguments = slots.filled(tool.parameters)
    if slots.missing:
        return Incomplete(tool, tuple(slots.missing), tuple(slots.places))
    return PlannedCall(tool, arguments)


def _groups(tool: KnownTool, found: list[Found]) -> list[list[Found]]:
    """Places for one call each, when the tool takes one and the question names several; else all for one call."""
    return [[each] for each in _suitable(tool, found)[:_MOST]] or [found]


def _suitable(tool: KnownTool, found: list[Found]) -> list[Found]:
    roles = [role for role in tool.roles if role in ("place", "time_zone")]
    if roles == ["time_zone"]:
        return [each for each in found if each.value.zone]
    return [each for each in found if each.value.is_place] if roles == ["place"] else []


def _about_places(tool: KnownTool, part: Question, found: list[Found]) -> Iterator[str]:
    suitable = _suitable(tool, found)
    if suitable and "place" not in tool.roles:
        for each in found:
            if each.value.zone is None:
                yield say("unknown_zone_left_out", part.chinese, name=each.value.name)
    yield from left_out([each.value.name for each in suitable[_MOST:]], _MOST, part.chinese)


def _about_languages(part: Question, wanted: Targets) -> Iterator[str]:
    beyond = [each.chinese if part.chinese else each.english for each in wanted.known[_MOST:]]
    yield from left_out(beyond, _MOST, part.chinese)
    for flat in wanted.unknown:
        start = part.flat.rfind(flat)
        name = part.raw[start : start + len(flat)] if start >= 0 else flat
        yield say("unknown_language", part.chinese, name=name)


def _about_limits(tool: KnownTool, part: Question) -> Iterator[str]:
    """Say which days, moments, units and judgements a tool cannot tell where the question is about such."""
    roles, command, chinese = set(tool.roles), part.command, part.chinese
    if days := next((each for each in tool.parameters if each.role == "days"), None):
        yield from _about_days(days, part)
    is_clock = "time_zone" in roles and roles <= {"time_zone", "place"}
    if is_clock and (lexicon.OTHER_MOMENT.search(command) or lexicon.PAST.search(command)):
        yield say("only_now", chinese)
    takes_a_unit = any(lexicon.TAKES_A_UNIT.search(each.about) or each.choices for each in tool.parameters)
    if "place" in roles and not takes_a_unit and lexicon.FAHRENHEIT.search(command):
        yield say("no_fahrenheit", chinese)
    if "place" in roles and lexicon.JUDGED.search(command):
        yield say("not_judged", chinese)


def _about_days(days: Parameter, part: Question) -> Iterator[str]:
    high, low = days.number("maximum"), days.number("minimum")
    if lexicon.PAST.search(part.command):
        yield say("no_past", part.chinese)
    if lexicon.CALENDAR_DAY.search(part.command):
        yield say("calendar_day", part.chinese)
    wanted = horizon(part.command)
    too_many = wanted is not None and high is not None and wanted.count > high
    if high is not None and (too_many or lexicon.ODD_DAYS.search(part.command)):
        yield say("days_limit", part.chinese, low=f"{1 if low is None else low:g}", high=f"{high:g}")


def _unanswered(question: Question, tools: list[KnownTool]) -> Iterator[str]:
    """Say which parts of a question ask for something that none of its tools is about."""
    for start, end in question.clauses() if lexicon.WISH.search(question.command) else ():
        polite = lexicon.BEFORE_WISH.match(question.command, start, end)
        wish = lexicon.WISH.match(question.command, polite.end() if polite else start, end)
        about = {concept for concept, _ in concepts_in(question.command[start:end])} - lexicon.COMES_ALONG
        is_covered = any(tool.is_about(concept) for tool in tools for concept in about)
        if wish and (about or wish["open"]) and not is_covered:
            part = lexicon.GOES_ON.sub("", question.raw[start:end].strip(_EDGES)).strip(_EDGES)
            yield say("unanswered", question.chinese, part=part)
