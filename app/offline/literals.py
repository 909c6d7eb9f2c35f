"""Literals: the values that a question holds word for word, each with its kind and position."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from app.gazetteer.gazetteer import Place, find_place, mentions, zone_ids
from app.gazetteer.languages import Language, language_of, languages
from app.gazetteer.qualifiers import find_qualifier
from app.gazetteer.regions import is_country, is_region
from app.offline.days import find_days
from app.offline.numerals import NUMBER_WORDS, NUMERAL, read_number
from app.offline.text import Text
from app.offline.vocabulary import CURRENCIES, FUNCTION_WORDS

__all__ = ["Literal", "NamedPlace", "find_literals", "unknown_place"]


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place or a time zone as a question names it."""

    name: str
    zone: str | None = None
    """``None`` for a place that the gazetteer does not know."""
    english: str | None = None
    """The name with its country; ``None`` for a bare time zone and for an unknown place."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in a question.

    Args:
        kind: ``number``, ``date``, ``time``, ``duration``, ``days``, ``place``, ``language``, ``currency``,
            ``word`` (an id, a path, an address) or ``quoted``.
        start, end: Its position; the same for one that comes from another part of the conversation.
        before: The text before it, for words such as "from".
    """

    kind: str
    value: Any
    start: int
    end: int
    text: str
    before: str = ""


_NAMES_OF_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: n for n, name in enumerate(_NAMES_OF_MONTHS.split(), start=1)}
_MONTH, _DAY = rf"(?P<m>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?", r"(?P<d>3[01]|[12][0-9]|0?[1-9])"
_YEAR = r"(?P<y>[0-9]{4})"
_DATES = (
    rf"(?<![0-9]){_YEAR}\s*[-/.年]\s*(?P<m>1[0-2]|0?[1-9])\s*[-/.月]\s*{_DAY}(?![0-9])[日号]?",
    r"(?<![0-9])(?P<m>1[0-2]|0?[1-9]|十?[一二三四五六七八九]|十)月(?P<d>[0-9]{1,2}|[一二三四五六七八九十]{1,3})[日号]",
    rf"\b{_MONTH} {_DAY}(?:st|nd|rd|th)?\b(?:,? {_YEAR}\b)?",
    rf"\b{_DAY}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b(?:,? {_YEAR})?",
    r"\bthe (?P<d>3[01]|[12][0-9]|[1-9])(?:st|nd|rd|th)\b|(?<![0-9月第])(?P<n>3[01]|[12][0-9]"
    r"|[1-9])[日号](?![0-9线楼店])",
)
_PART = r"(?P<p>早上|上午|凌晨|早|中午|下午|傍晚|晚上|晚)?\s?"
_TIMES = (
    rf"{_PART}(?<![0-9:])(?P<h>[01]?[0-9]|2[0-3]):(?P<n>[0-5][0-9])(?::[0-5][0-9])?(?![0-9])\s*(?P<q>[ap]\.?m\b)?",
    rf"{_PART}(?P<h>[01]?[0-9]|2[0-3]|[一二两三四五六七八九十]{{1,3}})\s*[点时](?![间区差候])[钟整]?(?:(?P<half>半)"
    rf"|(?P<n>[0-5]?[0-9])\s*分?)?",
    r"\b(?P<h>1[0-2]|0?[1-9])\s?(?P<q>[ap]\.?m\b)|\b(?P<noon>noon|midnight)\b",
)
# A span of time counted from now, and one part of it.
_SPAN = re.compile(
    rf"(?P<n>[0-9]{{1,5}}(?:\.[0-9]{{1,2}})?|半|\bhalf an?\b|{NUMERAL})\s*(?P<x>个半|半个|半)?\s*个?(?P<u>秒|分钟?"
    rf"|小时|钟头"
    r"|天|(?:sec|min|hour|hr|day)[a-z]{0,5}\b)钟?(?P<y>半)?"
)
_UNNAMED = re.sub(r"\?P<\w>", "?:", _SPAN.pattern)
_FROM_NOW = re.compile(
    rf"(?P<i>\bin |再过|过)?(?P<s>{_UNNAMED}(?: ?(?:and|零|又)? ?{_UNNAMED}){{0,3}}) ?(?P<l>[以之]?[后後]"
    rf"|(?:from now|later)\b)?"
)
_SECONDS = {"秒": 1, "s": 1, "分": 60, "m": 60, "小": 3600, "钟": 3600, "h": 3600, "天": 86400, "d": 86400}
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])[-+]?[0-9]{1,15}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,10})?(?![0-9_]|\.[0-9])"
    r"|[零〇一二两三四五六七八九十百千万]{2,9}"
    rf"|[二两三四五六七八九十](?=[个次面位人枚杯份张件颗度公小元块])|\b(?!one\b)(?:{'|'.join(NUMBER_WORDS)})\b"
)
_ZONE = re.compile(r"\b[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}|\b(?:UTC|GMT|[ECMP][SD]T|JST|KST|IST|BST|CES?T|HKT|MSK)\b")
_OFFSET = re.compile(
    r"\b(?:utc|gmt)\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?|(?P<side>[东西])(?P<n>[一二三四五六七八九十]{1,2})区"
)
# An address, a path, an id of letters and digits, a file.
_WORD = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}|https?://[^\s，。]{1,500}|(?<![\w.~])(?:~"
    r"|\.{1,2})?/[\w.-]+(?:/[\w.-]*){0,20}"
    r"|(?<![\w/.@-])#?(?:[0-9a-f]{8}-[0-9a-f-]{9,40}|[A-Za-z]{1,12}[-_]?[0-9][\w-]{0,40}"
    r"|[0-9]{1,9}[A-Z][A-Z0-9]{0,20})(?![\w-])"
    r"|(?<![\w.@/-])[\w-]{1,60}\.(?:[a-z]{3,4}|py|js|md|gz)(?![\w.])",
    re.ASCII,
)
_CAPITALS = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2,10}(?:\.[A-Z]{1,3})?(?![A-Za-z0-9])")
_NAME = r"[A-Z][\w'’-]{0,30}(?: [A-Z][\w'’-]{0,30}){0,3}"
_UNKNOWN_PLACE = re.compile(
    rf"\b(?:in|at|for|of|near|about|and|or)\s+({_NAME}(?:, {_NAME})?)|^\s*({_NAME})(?= weather)|\b(?:in"
    rf"|for)\s+([a-z]{{3,20}}"
    r"(?: [a-z]{3,20})?)(?=\s*(?:$|[?!.,]|\b(?:today|tomorrow|now|please|right|this|on|next)\b))"
)
_NO_NAMES = FUNCTION_WORDS | {"fahrenheit", "celsius", "detail", "minutes", "hours", "english", "morning", "evening"}
_ROW = re.compile(r"(?:[\s,&]|\b(?:and|or|in)\b)*")


def find_literals(text: Text) -> list[Literal]:
    """Find the values of a text in their order; where two overlap, the kind that is more certain counts."""
    flat, readable = text.command, text.readable
    finders: tuple[tuple[str, Iterable[tuple[Any, int, int]]], ...] = (
        ("quoted", ((text.raw[start:end], start, end) for start, end in text.quotes)),
        ("place", _zones(readable, flat)),
        ("word", ((match[0].lstrip("#"), *match.span()) for match in _WORD.finditer(readable))),
        ("date", _dates(flat)),
        ("duration", _durations(flat)),
        ("time", _times(flat)),
        ("days", find_days(flat)),
        ("currency", _named(flat, "currency")),
        ("language", _named(flat, "language")),
        ("place", _places(readable, flat)),
        ("word", ((match[0], *match.span()) for match in _CAPITALS.finditer(readable) if not readable.isupper())),
        ("number", ((read_number(match[0]), *match.span()) for match in _NUMBER.finditer(flat))),
    )
    found: list[Literal] = []
    taken = bytearray(len(flat))
    for kind, (value, start, end) in ((kind, each) for kind, finder in finders for each in finder):
        if not any(taken[start:end]) and len(found) < 60:
            taken[start:end] = b"\1" * (end - start)
            written = text.raw[start:end].strip()
            found.append(Literal(kind, value, start, end, written, flat[max(start - 12, 0) : start]))
    return sorted(found, key=lambda each: each.start)


def _dates(flat: str) -> Iterator[tuple[str, int, int]]:
    """Dates as ``yyyy-mm-dd``, or their end if the year or the month is not named."""
    for match in (match for form in _DATES for match in re.finditer(form, flat)):
        parts = match.groupdict()
        month, day = parts.get("m"), int(read_number(parts["d"] or parts["n"]))
        middle = f"-{_MONTHS.get(month) or int(read_number(month)):02}" if month else ""
        yield f"{parts.get('y') or ''}{middle}-{day:02}", *match.span()


def _times(flat: str) -> Iterator[tuple[str, int, int]]:
    """Times of day as ``HH:mm``."""
    for match in (match for form in _TIMES for match in re.finditer(form, flat)):
        parts = match.groupdict(default="")
        part = parts.get("p") or parts.get("q", "").replace(".", "")
        hour = int(read_number(parts["h"])) if parts["h"] else 12 * (parts["noon"] == "noon")
        late = part in ("下午", "傍晚", "晚上", "晚", "pm") or (part == "中午" and hour < 4)
        hour = hour + 12 if late and hour < 12 else 0 if part in ("am", "凌晨") and hour == 12 else hour
        minute = 30 if parts.get("half") else int(parts.get("n") or 0)
        if hour < 24:
            yield f"{hour:02}:{minute:02}", *match.span()


def _durations(flat: str) -> Iterator[tuple[str, int, int]]:
    """Spans counted from now, as ISO-8601 durations; days alone count the days of a forecast."""
    for match in _FROM_NOW.finditer(flat):
        seconds = round(sum(map(_seconds, _SPAN.finditer(match["s"]))))
        if seconds and (match["i"] or match["l"]) and not re.search(r"(?:天|days?)$", match["s"]):
            parts = (seconds // 3600, "H"), (seconds // 60 % 60, "M"), (seconds % 60, "S")
            yield "PT" + "".join(f"{amount}{unit}" for amount, unit in parts if amount), *match.span()


def _seconds(part: re.Match[str]) -> float:
    is_half = part["n"].startswith(("半", "half"))
    amount = 0.5 if is_half else read_number(part["n"])
    return (amount + 0.5 * bool(part["y"] or (part["x"] and not is_half))) * _SECONDS[part["u"][0]]


@cache
def _names(kind: str) -> tuple[re.Pattern[str], dict[str, Any]]:
    """The names of all languages or currencies as one pattern, and what they mean."""
    by_name: dict[str, Any] = dict(CURRENCIES)
    if kind == "language":
        by_name = {name: each for each in languages() for name in each.names}
    names = sorted(map(re.escape, by_name), key=len, reverse=True)
    latin, others = (
        "|".join(each for each in names if each[0].isascii() == flag and each[0] != "\\") for flag in (True, False)
    )
    return re.compile(rf"(?<![a-z])(?:{latin})s?(?![a-z])|{others}|[$]|[中英日韩法德俄]译[中英日韩法德俄]"), by_name


def _named(flat: str, kind: str) -> Iterator[tuple[Language | str, int, int]]:
    pattern, by_name = _names(kind)
    for match in pattern.finditer(flat):
        name = match[0]
        if found := by_name.get(name) or by_name.get(name.removesuffix("s")) or by_name.get(f"{name[-1]}文"):
            yield found, *match.span()


def _zones(readable: str, flat: str) -> Iterator[tuple[NamedPlace, int, int]]:
    """Time zones: UTC+8, 东八区, Asia/Tokyo, PST."""
    for match in _OFFSET.finditer(flat):
        zone = match[0].replace(" ", "").upper()
        if match["side"]:
            zone = f"UTC{'-' if match['side'] == '西' else '+'}{read_number(match['n'])}"
        yield NamedPlace(readable[slice(*match.span())], zone), *match.span()
    known = {zone.lower(): zone for zone in zone_ids()} if "/" in flat else {}
    for match in _ZONE.finditer(readable):
        if zone := known.get(match[0].lower()) or ("" if "/" in match[0] else match[0]):
            yield NamedPlace(match[0], zone), *match.span()


def _places(readable: str, flat: str) -> Iterator[tuple[NamedPlace, int, int]]:
    """Known places, each with the country or state beside it; the wider one counts where two overlap."""
    for _, start, end in _dates(flat):
        readable = readable[:start] + "\0" * (end - start) + readable[end:]
    found = [_qualified(readable, flat, each.start, each.end, each.place) for each in mentions(readable)]
    yield from sorted(found, key=lambda each: each[1] - each[2])


def _qualified(readable: str, flat: str, start: int, end: int, place: Place) -> tuple[NamedPlace, int, int]:
    """A place of the gazetteer; with a country or state that is not its own it is an unknown place."""
    wider, comma = find_qualifier(readable, start, end, place), ""
    if wider is None and readable[end : end + 1] == " ":
        # As in "paris texas": without a comma only names of countries and states count.
        wider, comma = find_qualifier(f"{readable[:end]},{readable[end + 1 :]}", start, end, place), ","
        name = flat[end + 1 : wider[1]].strip() if wider else ""
        wider = wider if name and (is_country(name) or is_region(name)) else None
    if wider is None:
        return NamedPlace(readable[start:end], place.zone, place.english), start, end
    first, last, is_own = wider
    name = readable[start:end] if is_own and first != start else f"{readable[first:end]}{comma}{readable[end:last]}"
    return NamedPlace(name, *((place.zone, place.english) if is_own else ())), first, last


def unknown_place(text: Text, known: Sequence[Literal] = ()) -> Literal | None:
    """A name at the position of a place, "in Blorptown"; beside known places only one in a row with them."""
    for match in _UNKNOWN_PLACE.finditer(text.readable):
        group = match.lastindex or 1
        name, (start, end) = match[group], match.span(group)
        rows = [text.command[end : each.start] for each in known if end <= each.start]
        rows += [text.command[each.end : start] for each in known if each.end <= start]
        is_other = language_of(name) or find_place(name) or name.lower() in CURRENCIES
        is_word = name.islower() and not _NO_NAMES.isdisjoint(name.split())
        if not is_other and not is_word and (not known or any(map(_ROW.fullmatch, rows))):
            return Literal("place", NamedPlace(name), start, end, name, text.command[max(start - 12, 0) : start])
    return None
