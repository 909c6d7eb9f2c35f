"""From a question and the tools on offer to the calls to make, and what these leave out or cannot do."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.languages import Language
from app.offline import lexicon
from app.offline.findings import NamedPlace, found_in
from app.offline.phrases import listed, say
from app.offline.question import Found, Question, Span, terms
from app.offline.slots import Slots
from app.offline.tools import KnownTool, Parameter

__all__ = ["Plan", "PlannedCall", "left_out", "plan"]

_MOST = 5
"""Calls of one tool for the places, the languages or the like that a question lists."""
_TAKES_TEXT = {"text", "other", "object", "array", "pattern"}
_LISTED = ("time_of_day", "date_time", "moment", "id")
"""Roles of which a question may give several for a tool that takes one."""
_NO_CLOCK = frozenset(("past", "date", "holiday", "next_week", "month"))
"""Days that no clock tells anything about."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool with its arguments; where required ones are missing, it is not to be called."""

    tool: KnownTool
    arguments: dict[str, Any]
    missing: tuple[Parameter, ...] = ()
    unknown_place: str = ""
    """A place without a known time zone that the question names."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a question; empty when no tool fits."""

    question: Question
    calls: tuple[PlannedCall, ...] = ()
    incomplete: tuple[PlannedCall, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the calls leave out or cannot do, in sentences."""


def plan(question: Question, tools: tuple[KnownTool, ...]) -> Plan:
    """Plan the calls: one per tool that the question is about, or one per place or the like where it names several."""
    if lexicon.FORBIDDEN.match(question.flat):
        return Plan(question)
    if lexicon.UNDONE.match(question.flat):
        tools = tuple(each for each in tools if each.is_about("cancel"))
    choices = _chosen(question, tools)
    if not choices:
        question = question.with_payloads_meant()
        choices = _chosen(question, tools)
    planned = [each for tool, part in choices for each in _planned(tool, part, question)]
    # What is asked for twice is done once.
    calls = {(each.tool.name, repr(each.arguments)): each for each in planned if isinstance(each, PlannedCall)}
    return Plan(
        question,
        tuple(each for each in calls.values() if not each.missing),
        tuple(each for each in calls.values() if each.missing),
        tuple(dict.fromkeys(each for each in planned if isinstance(each, str))),
    )


def left_out(names: list[str], most: int, chinese: bool) -> Iterator[str]:
    """Say what came after as many look-ups as one question gets."""
    if names:
        yield say("left_out", chinese, most=most, names=listed(names[:20], chinese) + "……" * (len(names) > 20))


def _chosen(question: Question, tools: tuple[KnownTool, ...]) -> list[tuple[KnownTool, Question]]:
    """Pick tools by their names, else clause by clause, each once, in the order of the question; none for chit-chat.

    With each tool comes the part of the question that it is to answer.
    """
    named = [tool for tool in tools if tool.is_named_in(question)]
    if named or not tools:
        return [(tool, question) for tool in named]
    command = question.command
    # Where something can be translated, each clause is read up to that verb: what follows is not meant.
    for start, end in question.clauses if any(tool.is_about("translate") for tool in tools) else ():
        if verb := lexicon.TRANSLATE.search(command, start, end):
            command = command[: verb.start()] + "翻译".ljust(end - verb.start()) + command[end:]
    hits = [(span, _best(command[slice(*span)], tools)) for span in question.clauses]
    best = next((tool for _, tool in hits if tool), None) or _best(command, tools)
    if len({id(tool) for _, tool in hits if tool}) < 2:
        return [(best, question)] if best else []
    # A clause that names no tool belongs to the one before, in Chinese to the next.
    with_tool = [n for n, (_, tool) in enumerate(hits) if tool]
    spans: dict[int, tuple[KnownTool, list[Span]]] = {}
    for n, (span, _) in enumerate(hits):
        nearest = min(with_tool, key=lambda at: (at < n if question.chinese else at > n, abs(at - n)))
        if owner := hits[nearest][1]:
            spans.setdefault(id(owner), (owner, []))[1].append(span)
    return [(tool, question.part(own)) for tool, own in spans.values()]


def _best(text: str, tools: tuple[KnownTool, ...]) -> KnownTool | None:
    about = terms(text)
    best = max(tools, key=lambda tool: tool.score(about))
    return best if best.score(about)[0] else None


def _planned(tool: KnownTool, part: Question, whole: Question) -> Iterator[PlannedCall | str]:
    """The calls of one tool: one for each place, language, time or the like that the question lists; then remarks."""
    pairs = tool.pairs_in(whole) if tool.is_named_in(whole) else {}
    if _TAKES_TEXT.isdisjoint(tool.roles):
        part, whole = part.with_payloads_meant(), whole.with_payloads_meant()
    # A place and a day may stand in another part: "the weather in Rome, and what time is it there?"
    part = part.having(**{role: found_in(part, role) or found_in(whole, role) for role in ("place", "day")})
    target = next((each for each in tool.parameters if each.role == "language" and each.side != "source"), None)
    languages = found_in(part, "language") if target else []
    known = [each for each in languages if isinstance(each.value, Language)]
    role, several = ("", []) if pairs else _listed_in(tool, part)
    for each, language in product(several[:_MOST] or (None,), known[:_MOST] or (None,)):
        only = {role: [each], each.role: [each]} if each else {}
        yield _filled(tool, part.having(**only, **({"language": [language]} if language else {})), pairs)
    yield from left_out([_named(each, part) for each in (*several[_MOST:], *known[_MOST:])], _MOST, part.chinese)
    if "time_zone" in tool.roles and any(each.value.zone for each in found_in(part, "place")):
        for each in found_in(part, "place"):
            if each.value.zone is None:
                yield say("unknown_zone", part.chinese, name=each.value.name)
    for each in languages:
        if each not in known:
            yield say("unknown_language", part.chinese, name=each.value)
    yield from _about_limits(tool, part)


def _filled(tool: KnownTool, question: Question, pairs: dict[str, str]) -> PlannedCall:
    slots = Slots(question, pairs)
    arguments = slots.filled(tool.parameters)
    unknown = (each.value.name for each in found_in(question, "place") if not each.value.zone)
    return PlannedCall(tool, arguments, tuple(slots.missing), next(unknown, ""))


def _named(found: Found, part: Question) -> str:
    """A finding as it is called in an answer."""
    if isinstance(found.value, Language):
        return found.value.chinese if part.chinese else found.value.english
    return found.value.name if isinstance(found.value, NamedPlace) else str(found.value)


def _listed_in(tool: KnownTool, part: Question) -> tuple[str, list[Found]]:
    """The role that gets a call for each of several findings, and these."""
    places = found_in(part, "place")
    if [role for role in tool.roles if role in ("place", "time_zone")] == ["time_zone"]:
        return "place", [each for each in places if each.value.zone]
    if [role for role in tool.roles if role in ("place", "time_zone")] == ["place"]:
        return "place", [each for each in places if each.value.is_place]
    role = next((each for each in _LISTED if tool.roles.count(each) == 1), "")
    found = found_in(part, role) if role else []
    row = found[:1]
    for each in found[1:]:
        # Only what follows with nothing between but small words: a range is not a list.
        if lexicon.IN_A_ROW.fullmatch(part.flat, row[-1].end, each.start):
            row.append(each)
    return role, row if len(row) > 1 else []


def _about_limits(tool: KnownTool, part: Question) -> Iterator[str]:
    """Say which days, moments, units and judgements a tool cannot tell where the question is about such."""
    roles, command, chinese = set(tool.roles), part.command, part.chinese
    days = [each.value for each in found_in(part, "day")]
    kinds = {each.kind for each in days}
    if parameter := next((each for each in tool.parameters if each.role == "days"), None):
        high = parameter.number("maximum")
        if "past" in kinds:
            yield say("no_past", chinese)
        if "holiday" in kinds:
            yield say("calendar_day", chinese)
        if high is not None and any(each.count > high for each in days):
            yield say("days_limit", chinese, high=f"{high:g}")
    is_clock = "time_zone" in roles and roles <= {"time_zone", "place"}
    if is_clock and (lexicon.OTHER_MOMENT.search(command) or not kinds.isdisjoint(_NO_CLOCK)):
        yield say("only_now", chinese)
    takes_a_unit = any(lexicon.TAKES_A_UNIT.search(each.about) or each.choices for each in tool.parameters)
    if "place" in roles and not takes_a_unit and lexicon.FAHRENHEIT.search(command):
        yield say("no_fahrenheit", chinese)
    if "place" in roles and lexicon.JUDGED.search(command):
        yield say("not_judged", chinese)
