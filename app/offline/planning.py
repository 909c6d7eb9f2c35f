"""Planning: which of the offered tools to call for a question, with which arguments, and what the calls leave out."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.gazetteer.languages import Language
from app.offline import lexicon
from app.offline.argument_filling import ArgumentFiller
from app.offline.entities import NamedPlace, extract_entities
from app.offline.question import Entity, Question, Span, terms
from app.offline.templates import listed, render
from app.offline.tool_profiles import Parameter, ToolProfile

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
    """A tool with its arguments; not called if required ones are missing."""

    tool: ToolProfile
    arguments: dict[str, Any]
    missing: tuple[Parameter, ...] = ()
    question: Question | None = None
    """The part of the question that it answers; ``None`` for calls such as writing a list."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls for a question; empty if no tool fits."""

    question: Question
    calls: tuple[PlannedCall, ...] = ()
    incomplete: tuple[PlannedCall, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences about what the calls leave out or cannot do."""


def plan(question: Question, tools: tuple[ToolProfile, ...]) -> Plan:
    """Plan the calls: one per tool that the question is about, or one per place or language if it names several."""
    if lexicon.FORBIDDEN.match(question.flat):
        return Plan(question)
    if lexicon.UNDONE.match(question.flat):
        tools = tuple(each for each in tools if each.is_about("cancel"))
    choices = _chosen(question, tools)
    if not choices:
        question = question.with_quotes_as_command()
        choices = _chosen(question, tools)
    planned = [each for tool, part in choices for each in _planned(tool, part, question)]
    # Equal calls run once.
    calls = {(each.tool.name, repr(each.arguments)): each for each in planned if isinstance(each, PlannedCall)}
    return Plan(
        question,
        tuple(each for each in calls.values() if not each.missing),
        tuple(each for each in calls.values() if each.missing),
        tuple(dict.fromkeys(each for each in planned if isinstance(each, str))),
    )


def left_out(names: list[str], most: int, chinese: bool) -> Iterator[str]:
    """A sentence that names what exceeds the limit of calls for one question."""
    if names:
        yield render("left_out", chinese, most=most, names=listed(names[:20], chinese) + "……" * (len(names) > 20))


def _chosen(question: Question, tools: tuple[ToolProfile, ...]) -> list[tuple[ToolProfile, Question]]:
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
    hits = {span: tool for span in question.clauses if (tool := _best(command[slice(*span)], tools))}
    if len(hits) < 2:
        best = next(iter(hits.values()), None) or _best(command, tools)
        return [(best, question)] if best else []
    # A clause that names no tool belongs to the one before, in Chinese to the next.
    owned: dict[Span, list[Span]] = {span: [] for span in hits}
    for at in question.clauses:
        nearest = min(hits, key=lambda span: (span < at if question.chinese else span > at, abs(span[0] - at[0])))
        owned[nearest].append(at)
    return [each for tool in dict.fromkeys(hits.values()) for each in _orders(tool, hits, owned, question)]


def _orders(
    tool: ToolProfile, hits: dict[Span, ToolProfile], owned: dict[Span, list[Span]], question: Question
) -> list[tuple[ToolProfile, Question]]:
    """One order for a tool, or several where each says all that the tool needs: "a small coffee and a large coffee"."""
    spans = [owned[span] for span, each in hits.items() if each is tool]
    orders = [_understood(tool, question.part(each)) for each in spans[:_MOST]]
    if len(orders) > 1 and all(
        (filler := ArgumentFiller(each)).fill(tool.parameters) and not filler.missing for each in orders
    ):
        return [(tool, each) for each in orders]
    alone = len(set(hits.values())) == 1
    return [(tool, question if alone else question.part(sorted(each for row in spans for each in row)))]


def _understood(tool: ToolProfile, question: Question) -> Question:
    """What is quoted is meant, too, for a tool that takes no text."""
    return question.with_quotes_as_command() if _TAKES_TEXT.isdisjoint(tool.roles) else question


def _best(text: str, tools: tuple[ToolProfile, ...]) -> ToolProfile | None:
    about = terms(text)
    best = max(tools, key=lambda tool: tool.score(about))
    return best if best.score(about)[0] else None


def _planned(tool: ToolProfile, part: Question, whole: Question) -> Iterator[PlannedCall | str]:
    """The calls of one tool: one for each place, language, time or the like that the question lists; then remarks."""
    pairs = tool.pairs_in(whole) if tool.is_named_in(whole) else {}
    part, whole = _understood(tool, part), _understood(tool, whole)
    # A place and a day may stand in another part: "the weather in Rome, and what time is it there?"
    part = part.with_entities(
        **{role: extract_entities(part, role) or extract_entities(whole, role) for role in ("place", "day")}
    )
    lists = {} if pairs else {role: found for role, found in _lists_in(tool, part) if found}
    for choice in product(*(found[:_MOST] for found in lists.values())):
        own = part.with_entities(**{role: [each] for role, each in zip(lists, choice, strict=True)})
        filler = ArgumentFiller(own, pairs)
        yield PlannedCall(tool, filler.fill(tool.parameters), tuple(filler.missing), own)
    yield from left_out([_named(each, part) for found in lists.values() for each in found[_MOST:]], _MOST, part.chinese)
    for each in extract_entities(part, "place") if "time_zone" in tool.roles else ():
        if each.value.zone is None:
            yield render("unknown_zone", part.chinese, name=each.value.name)
    for each in extract_entities(part, "language") if _wants_language(tool) else ():
        if not isinstance(each.value, Language):
            yield render("unknown_language", part.chinese, name=each.value)
    yield from _about_limits(tool, part)


def _wants_language(tool: ToolProfile) -> bool:
    return any(each.role == "language" and each.side != "source" for each in tool.parameters)


def _named(found: Entity, part: Question) -> str:
    """A finding as it is called in an answer."""
    if isinstance(found.value, Language):
        return found.value.chinese if part.chinese else found.value.english
    return found.value.name if isinstance(found.value, NamedPlace) else str(found.value)


def _lists_in(tool: ToolProfile, part: Question) -> Iterator[tuple[str, list[Entity]]]:
    """What a question lists for a tool that takes one, and each of which gets a call of its own, by role."""
    places = extract_entities(part, "place")
    kinds = [role for role in tool.roles if role in ("place", "time_zone")]
    if kinds == ["time_zone"]:
        yield "place", [each for each in places if each.value.zone]
    elif kinds == ["place"]:
        yield "place", [each for each in places if each.value.is_place]
    elif role := next((each for each in _LISTED if tool.roles.count(each) == 1), ""):
        yield role, _row_of(extract_entities(part, role), part)
    if _wants_language(tool):
        yield "language", [each for each in extract_entities(part, "language") if isinstance(each.value, Language)]


def _row_of(found: list[Entity], part: Question) -> list[Entity]:
    """What follows the first finding with nothing between but small words: a range is not a list."""
    row = found[:1]
    for each in found[1:]:
        if lexicon.IN_A_ROW.fullmatch(part.flat, row[-1].end, each.start):
            row.append(each)
    return row if len(row) > 1 else []


def _about_limits(tool: ToolProfile, part: Question) -> Iterator[str]:
    """Say which days, moments, units and judgements a tool cannot tell where the question is about such."""
    roles, command, chinese = set(tool.roles), part.command, part.chinese
    days = [each.value for each in extract_entities(part, "day")]
    kinds = {each.kind for each in days}
    if parameter := next((each for each in tool.parameters if each.role == "days"), None):
        high = parameter.number("maximum")
        if "past" in kinds:
            yield render("no_past", chinese)
        if "holiday" in kinds:
            yield render("calendar_day", chinese)
        if high is not None and any(each.count > high for each in days):
            yield render("days_limit", chinese, high=f"{high:g}")
    is_clock = "time_zone" in roles and roles <= {"time_zone", "place"}
    if is_clock and (lexicon.OTHER_MOMENT.search(command) or not kinds.isdisjoint(_NO_CLOCK)):
        yield render("only_now", chinese)
    takes_a_unit = any(lexicon.TAKES_A_UNIT.search(each.about) or each.choices for each in tool.parameters)
    if "place" in roles and not takes_a_unit and lexicon.FAHRENHEIT.search(command):
        yield render("no_fahrenheit", chinese)
    if "place" in roles and lexicon.JUDGED.search(command):
        yield render("not_judged", chinese)
