"""From a question and the tools on offer to the calls to make, and what these leave out or cannot do."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.offline import lexicon
from app.offline.findings import found_in
from app.offline.languages import Targets, targets
from app.offline.phrases import listed, say
from app.offline.question import Found, Question, Span, concepts_in, terms
from app.offline.slots import Slots
from app.offline.tools import KnownTool, Parameter

__all__ = ["Plan", "PlannedCall", "left_out", "plan"]

_MOST = 5
"""Calls of one tool for the places, the languages or the like that a question lists."""
_TAKES_TEXT = {"text", "subject", "name", "other", "object", "array", "pattern"}
_LISTED = ("time_of_day", "date_time", "moment", "id", "number")
"""Roles of which a question may give several for a tool that takes one."""
_NO_CLOCK = frozenset(("past", "date", "holiday", "next_week", "month"))
"""Days that no clock tells anything about."""
_EDGES = " \n\0,，.。;；、?？!！"


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
        tools = tuple(each for each in tools if each.undoes)
    choices = _chosen(question, tools)
    if not choices:
        question = question.with_payloads_meant()
        choices = _chosen(question, tools)
    planned = [each for tool, part in choices for each in _planned(tool, part, question)]
    remarks = [each for each in planned if isinstance(each, str)]
    if choices and not lexicon.TRANSLATE.search(question.command):
        remarks += _unanswered(question, [tool for tool, _ in choices])
    # What is asked for twice is done once.
    calls = {(each.tool.name, repr(each.arguments)): each for each in planned if isinstance(each, PlannedCall)}
    return Plan(
        question,
        tuple(each for each in calls.values() if not each.missing),
        tuple(each for each in calls.values() if each.missing),
        tuple(dict.fromkeys(remarks)),
    )


def left_out(names: list[str], most: int, chinese: bool) -> Iterator[str]:
    """Say what came after as many look-ups as one question gets."""
    if names:
        rest = ("……" if chinese else ", ...") * (len(names) > 20)
        yield say("left_out", chinese, most=most, names=listed(names[:20], chinese) + rest)


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
        before, behind = [at for at in with_tool if at <= n], [at for at in with_tool if at >= n]
        owner = hits[behind[0] if not before or (question.chinese and behind) else before[-1]][1]
        if owner:
            spans.setdefault(id(owner), (owner, []))[1].append(span)
    return [(tool, question.part(own)) for tool, own in spans.values()]


def _best(text: str, tools: tuple[KnownTool, ...]) -> KnownTool | None:
    about = terms(text)
    best = max(tools, key=lambda tool: tool.score(about))
    return best if best.score(about)[0] else None


def _planned(tool: KnownTool, part: Question, whole: Question) -> Iterator[PlannedCall | str]:
    pairs = tool.pairs_in(whole, is_named=tool.is_named_in(whole))
    if _TAKES_TEXT.isdisjoint(tool.roles):
        part, whole = part.with_payloads_meant(), whole.with_payloads_meant()
    found = found_in(part, "place") or found_in(whole, "place")
    suitable = _suitable(tool, found)
    target = next(
        (each for each in tool.parameters if each.role == "language" and each.side != "source"),
        None,
    )
    wanted = targets(part.command) if target else Targets()
    if target and wanted.unknown and not wanted.known:
        yield PlannedCall(tool, {}, (target,))
    elif suitable or wanted.known:
        for place, language in product(suitable[:_MOST] or (None,), wanted.known[:_MOST] or (None,)):
            yield _call(tool, Slots(part, whole, {"place": [place] if place else found}, language, pairs))
    else:
        yield from _listed_calls(tool, Slots(part, whole, {"place": found}, None, pairs))
    if suitable and "place" not in tool.roles:
        for each in (each.value.name for each in found if each.value.zone is None):
            yield say("unknown_zone_left_out", part.chinese, name=each)
    languages = [each.chinese if part.chinese else each.english for each in wanted.known[_MOST:]]
    yield from left_out([each.value.name for each in suitable[_MOST:]] + languages, _MOST, part.chinese)
    for flat in wanted.unknown:
        start = part.flat.rfind(flat)
        yield say("unknown_language", part.chinese, name=part.raw[start : start + len(flat)] if start >= 0 else flat)
    yield from _about_limits(tool, part)


def _call(tool: KnownTool, slots: Slots) -> PlannedCall:
    arguments = slots.filled(tool.parameters)
    unknown = next((each.value.name for each in slots.only.get("place", ()) if each.value.zone is None), "")
    return PlannedCall(tool, arguments, tuple(slots.missing), unknown)


def _suitable(tool: KnownTool, found: list[Found]) -> list[Found]:
    """The places for one call each, when the tool takes one."""
    roles = [role for role in tool.roles if role in ("place", "time_zone")]
    if roles == ["time_zone"]:
        return [each for each in found if each.value.zone]
    return [each for each in found if each.value.is_place] if roles == ["place"] else []


def _listed_calls(tool: KnownTool, slots: Slots) -> Iterator[PlannedCall | str]:
    """One call for each of what a question lists, such as times; or for each clause that is an order by itself."""
    part = slots.question
    clauses = [span for span in part.clauses if tool.score(terms(part.command[slice(*span)]))[0]]
    if len(clauses) > 1 and not slots.pairs:
        orders = [_call(tool, Slots(part.part([span]), part.part([span]))) for span in clauses[:_MOST]]
        if not any(each.missing for each in orders):
            yield from orders
            yield from left_out([part.raw[slice(*span)].strip(_EDGES) for span in clauses[_MOST:]], _MOST, part.chinese)
            return
    role = next((each for each in _LISTED if tool.roles.count(each) == 1), None)
    several = _in_a_row(part, found_in(part, role)) if role and not slots.pairs else []
    calls = [_call(tool, Slots(part, slots.whole, {each.role: [each], role or "": [each]})) for each in several[:_MOST]]
    if len(calls) < 2 or any(each.missing for each in calls):
        yield _call(tool, slots)
        return
    yield from calls
    yield from left_out([str(each.value) for each in several[_MOST:]], _MOST, part.chinese)


def _in_a_row(part: Question, found: list[Found]) -> list[Found]:
    """The first finding, and those that follow with nothing between but small words; a range is not a list."""
    found = [
        each for each in found if each.role != "number" or not lexicon.NO_QUANTITY.search(part.flat[slice(*each.span)])
    ]
    row = found[:1]
    for each in found[1:]:
        if lexicon.IN_A_ROW.fullmatch(part.flat, row[-1].end, each.start):
            row.append(each)
    return row


def _about_limits(tool: KnownTool, part: Question) -> Iterator[str]:
    """Say which days, moments, units and judgements a tool cannot tell where the question is about such."""
    roles, command, chinese = set(tool.roles), part.command, part.chinese
    days = [each.value for each in found_in(part, "day")]
    kinds = {each.kind for each in days}
    if parameter := next((each for each in tool.parameters if each.role == "days"), None):
        high, low = parameter.number("maximum"), parameter.number("minimum")
        if "past" in kinds:
            yield say("no_past", chinese)
        if "holiday" in kinds:
            yield say("calendar_day", chinese)
        if high is not None and ("odd" in kinds or any(each.count > high for each in days)):
            yield say("days_limit", chinese, low=f"{1 if low is None else low:g}", high=f"{high:g}")
    is_clock = "time_zone" in roles and roles <= {"time_zone", "place"}
    if is_clock and (lexicon.OTHER_MOMENT.search(command) or not kinds.isdisjoint(_NO_CLOCK)):
        yield say("only_now", chinese)
    takes_a_unit = any(lexicon.TAKES_A_UNIT.search(each.about) or each.choices for each in tool.parameters)
    if "place" in roles and not takes_a_unit and lexicon.FAHRENHEIT.search(command):
        yield say("no_fahrenheit", chinese)
    if "place" in roles and lexicon.JUDGED.search(command):
        yield say("not_judged", chinese)


def _unanswered(question: Question, tools: list[KnownTool]) -> Iterator[str]:
    """Say which parts of a question ask for something that none of its tools is about."""
    for start, end in question.clauses:
        wish = lexicon.WISH.match(question.command, start, end)
        about = {concept for concept, _ in concepts_in(question.command[start:end])} if wish else set()
        about -= lexicon.COMES_ALONG
        is_covered = any(tool.is_about(concept) for tool in tools for concept in about)
        if wish and (about or wish["open"]) and not is_covered:
            part = lexicon.GOES_ON.sub("", question.raw[start:end].strip(_EDGES)).strip(_EDGES)
            yield say("unanswered", question.chinese, part=part)
