"""Entity extraction: the places, dates, numbers and other values of a question, by the role of a parameter."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice

from app.gazetteer.gazetteer import Place, mentions, zone_ids
from app.gazetteer.languages import language_of
from app.gazetteer.qualifiers import find_qualifier
from app.gazetteer.regions import is_country, is_region
from app.offline import lexicon
from app.offline.days import days_in
from app.offline.languages import languages_in, text_to_handle
from app.offline.numbers import dates, numbers, spans_from_now, times_of_day
from app.offline.question import Entity, Question, blank_out, concepts_in
from toolchat.tool_calling.text_normalization import fold

__all__ = ["NamedPlace", "extract_entities"]


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place in a question."""

    name: str
    """As it was written."""
    zone: str | None = None
    """Its time zone; ``None`` for a place that the gazetteer does not know."""
    english: str | None = None
    """Its name with its country; ``None`` for a bare time zone such as ``UTC+8`` and for an unknown place."""

    @property
    def is_place(self) -> bool:
        """Whether it is more than a time zone."""
        return self.zone is None or self.english is not None


_MOST = 30

# Time zones by themselves as they are written: Asia/Tokyo, PST; then in folded text: UTC+8, +08:00; 东八区; Greenwich.
_ZONE = re.compile(
    r"\b[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}|\b(?:UTC|GMT|[ECMP][SD]?T|AK[SD]T|HST|JST|KST|IST|BST|CES?T|EES?T|MSK|HKT"
    r"|SGT|AE[SD]T|NZ[SD]T)\b",
    re.ASCII,
)
_OFFSET = re.compile(
    r"\b(?:utc|gmt)\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?|(?<![0-9a-z])[+-][0-9]{1,2}:[0-5][0-9]\b"
    r"|(?P<side>[东西])(?P<hours>[一二三四五六七八九十]{1,2}|[0-9]{1,2})区|(?P<gmt>格林[威尼]治(?:标准)?"
    r"|\bgreenwich(?: mean)?\b)"
)
_CAPITAL = r"[A-Z][\w'’.-]{0,40}(?:,? [A-Z][\w'’.-]{0,40}){0,3}"
_SMALL = r"[a-z][a-z'-]{1,40}"
_AND = r"\s*(?:,\s*and\b|,\s*or\b|,|and\b|or\b|&)\s*(?:in\s+)?"
_CHINESE_AND = r"(?:[和与與跟及、,]|以及|还是)"
# Names beside a known one: "in Blorptown and", "Paris and Blorptown"; 巴黎和布洛普镇.
_BESIDE = (
    re.compile(rf"\b(?:in|at|for|of|near)\s+({_CAPITAL})(?=\s*(?:[,&?.!]|and\b|or\b|$))"),
    re.compile(rf"{lexicon.MARK}{_AND}({_CAPITAL}|{_SMALL}(?=\s*(?:[?!.]|$)))"),
    re.compile(rf"(?:\b|\bin\s+(?=[a-z]))({_CAPITAL}|(?<=in ){_SMALL}){_AND}{lexicon.MARK}"),
    re.compile(rf"{lexicon.MARK}{_CHINESE_AND}\s*([㐀-鿿·]{{2,12}})"),
    re.compile(rf"([㐀-鿿·]{{2,12}}?){_CHINESE_AND}\s*{lexicon.MARK}"),
)
# Names where none is known: "in little rock today", "Springfield weather"; 阿克苏今天的天气.
_ALONE = (
    re.compile(rf"([㐀-鿿·]{{2,16}}?)(?:{lexicon.FILLER}|[0-9]){{0,8}}+(?:{lexicon.TOPIC})"),
    re.compile(rf"\b(?:in|at|for|of|near)\s+(?:the city of\s+)?({_CAPITAL})"),
    re.compile(r"\b([A-Z][\w'.-]{0,40}(?: [A-Z][\w'.-]{0,40}){0,3})(?:'s)?\s+(?:weather|forecast|temperature)\b"),
    re.compile(
        rf"\b(?:in|at|for|near)\s+({_SMALL}(?: [a-z'-]{{1,40}}){{0,2}}?)"
        r"(?=\s+(?:today|tomorrow|now|right|for|in|next|this|please|the|over|on)\b|\s*[?.!,;]|\s*$)"
    ),
)
# What is cut off a Chinese name in front and behind.
_LEADING = re.compile(rf"^(?:{lexicon.FILLER})+")
_TRAILING = re.compile(rf"(?:{lexicon.FILLER}|{lexicon.TOPIC}|[是呢吗和与與跟及更]|还是).*$")


def extract_entities(question: Question, role: str) -> list[Entity]:
    """The entities of a question for a role; extracted once and cached."""
    if role in question.overrides:
        return question.overrides[role]
    if role not in question.entities:
        question.entities[role] = list(_EXTRACTORS[role](question))
    return question.entities[role]


def _places(question: Question) -> Iterator[Entity]:
    """The known places and time zones, in order and without overlaps; without any, a word that looks like a place."""
    readable = blank_out(question.readable, [each.span for each in dates(question.command)])
    known = list(_known(readable, question.command))
    marked = blank_out(readable, [each.span for each in known[:_MOST]], lexicon.MARK)
    beside = (each for each in _unknown(_BESIDE, marked) if not any(concepts_in(fold(each.value.name))))
    end = -1
    for each in sorted([*known, *beside], key=lambda each: (each.start, -each.end)) if known else ():
        if each.start >= end:
            end = each.end
            yield each
    if not known:
        yield from islice(_unknown(_ALONE, readable), 1)


def _known(readable: str, flat: str) -> Iterator[Entity]:
    for mention in islice(mentions(readable), _MOST):
        yield _qualified(readable, mention.start, mention.end, mention.place)
    for match in _ZONE.finditer(readable):
        if zone := _zones().get(match[0].lower(), match[0] if "/" not in match[0] else None):
            yield Entity("place", NamedPlace(match[0], zone), *match.span())
    for match in _OFFSET.finditer(flat):
        zone = match[0].replace(" ", "").upper()
        if match["side"]:
            hours = next(numbers(match["hours"])).value
            zone = f"UTC{'-' if match['side'] == '西' else '+'}{hours}"
        yield Entity(
            "place", NamedPlace(readable[slice(*match.span())], "GMT" if match["gmt"] else zone), *match.span()
        )


@cache
def _zones() -> dict[str, str]:
    return {zone.lower(): zone for zone in zone_ids() if "/" in zone}


def _unknown(patterns: tuple[re.Pattern[str], ...], text: str) -> Iterator[Entity]:
    """Names that the patterns match, without the function words around them."""
    for match in (match for pattern in patterns for match in pattern.finditer(text)):
        start, end = match.span(1)
        if match[1].isascii() or not "㐀" <= match[1][0] <= "鿿":
            end = start + len(match[1].rstrip(" .,"))
            is_name = lexicon.NO_NAMES.isdisjoint(re.findall("[a-z]+", match[1].lower())) and not language_of(match[1])
        else:
            start += len(match[1]) - len(_LEADING.sub("", match[1]))
            end = start + len(_TRAILING.sub("", text[start:end]))
            is_name = 2 <= end - start <= 10 and not lexicon.NO_CHINESE_NAME.search(text[start:end])
        if is_name:
            yield Entity("place", NamedPlace(text[start:end]), start, end)


def _qualified(text: str, start: int, end: int, place: Place) -> Entity:
    """A place of the gazetteer; with a qualifier that does not belong to it, it is an unknown place."""
    wider, comma = find_qualifier(text, start, end, place), ""
    if wider is None and text[end : end + 1] == " ":
        # A qualifier that follows at once, as in "paris texas": only names of countries and regions count.
        wider, comma = find_qualifier(f"{text[:end]},{text[end + 1 :]}", start, end, place), ","
        name = fold(text[end + 1 : wider[1]]).strip() if wider else ""
        wider = wider if is_country(name) or is_region(name) else None
    if wider is None:
        return Entity("place", NamedPlace(text[start:end], place.zone, place.english), start, end)
    first, last, is_own = wider
    name = text[start:end] if is_own and first != start else f"{text[first:end]}{comma}{text[end:last]}"
    return Entity("place", NamedPlace(name, *((place.zone, place.english) if is_own else ())), first, last)


def _matches(role: str, *patterns: re.Pattern[str]) -> Callable[[Question], Iterable[Entity]]:
    """An extractor of the first group of each pattern, matched in the folded text and returned as written."""
    return lambda question: [
        Entity(role, question.raw[slice(*match.span(1))].strip(), *match.span(1))
        for pattern in patterns
        for match in pattern.finditer(question.raw if pattern is lexicon.CAPITALS else question.flat)
    ]


def _numbers(question: Question) -> list[Entity]:
    """Numbers of the command, else of quoted text; none that is part of a date or time."""
    others = [each.span for each in (*dates(question.flat), *times_of_day(question.flat))]
    return [*numbers(blank_out(question.command, others))] or [*numbers(blank_out(question.flat, others))]


def _date_times(question: Question) -> Iterator[Entity]:
    """Every time of day with its date."""
    days = extract_entities(question, "date")
    for number, time in enumerate(extract_entities(question, "time_of_day") if days else ()):
        yield Entity("date_time", f"{days[min(number, len(days) - 1)].value}T{time.value}:00", *time.span)


def _texts(text: str | None) -> list[Entity]:
    return [Entity("text", text, 0, 0)] if text else []


# The extractor of each role; places and numbers are in the command only, other values also in quoted text.
_EXTRACTORS: Mapping[str, Callable[[Question], Iterable[Entity]]] = {
    "place": _places,
    "day": lambda question: days_in(question.command),
    "number": _numbers,
    "language": languages_in,
    "duration": lambda question: spans_from_now(question.flat),
    "date": lambda question: [each for each in dates(question.flat) if each.value[0] != "-"],
    "time_of_day": lambda question: times_of_day(question.flat),
    "date_time": _date_times,
    "moment": lambda question: [*extract_entities(question, "date_time"), *extract_entities(question, "duration")],
    "id": _matches("id", lexicon.ID, lexicon.CAPITALS),
    "token": lambda question: [
        each
        for each in _matches("token", lexicon.TOKEN, lexicon.ID)(question)
        if each.value.lower() not in lexicon.NO_NAMES
    ],
    "text": lambda question: _texts(text_to_handle(question)),
    "other": lambda question: _texts(question.payload),
}
