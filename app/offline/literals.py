"""Literals: the values that a question holds word for word, each with its kind and position."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Any

from app.gazetteer.gazetteer import Place, find_place, lesser_places, mentions, zone_ids
from app.gazetteer.languages import Language, language_of, languages
from app.gazetteer.qualifiers import find_qualifier
from app.offline.text import Text
from app.offline.vocabulary import CURRENCIES

__all__ = ["ROW", "Days", "Literal", "find_literals"]


@dataclass(frozen=True, slots=True)
class Days:
    """The days that one phrase names.

    Args:
        first, last: Counted from the first day of a result.
        weekdays: Only these days of the week, 0 for Monday.
        phrase: The words for them.
    """

    first: int
    last: int
    weekdays: tuple[int, ...] = ()
    phrase: str = ""

    @property
    def is_part(self) -> bool:
        """Whether a forecast that holds the days also holds others."""
        return bool(self.first or self.weekdays or self.last == 0)

    def include(self, day: date, today: date) -> bool:
        """Whether a day is among them, if the result begins with ``today``."""
        return self.first <= (day - today).days <= self.last and day.weekday() in (self.weekdays or range(7))


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in a question.

    Args:
        kind: ``number``, ``date``, ``time``, ``duration``, ``days``, ``place``, ``zone``, ``language``, ``currency``,
            ``name`` (a place that the gazetteer does not know), ``word`` (an id, a path, an address) or ``quoted``.
        before: The text before it, for words such as "from".
    """

    kind: str
    value: Any
    start: int
    end: int
    text: str
    before: str = ""


_DIGITS = {digit: n for n, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "": 0}
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL)} | {"twenty": 20, "thirty": 30}
_NUMERAL = (
    rf"(?:(?<![-.0-9第])[0-9]{{1,9}}|(?<!第)(?:[二三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])(?![百千万半])"
    rf"|\b(?:an?|{'|'.join(_NUMBER_WORDS)})\b)"
)
"""A whole number that counts something; "a" is one."""
_NAMES, _HAN = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"), "一二三四五六日"
# What is named, by its kind; the first form that fits counts.
_DAY_FORMS = {
    "2": r"\b(?:the )?day after tomorrow\b|(?<!大)后天",
    "1": r"\btomorrow\b|明天",
    "0": r"\btoday\b|\btonight\b|今[天日晚]",
    "later": rf"\bin {_NUMERAL} days?\b|{_NUMERAL}\s*天[以之]?后",
    "end": r"(?<![下上个])(?:这个?|本)?周末|\b(?:on )?(?:this |the )?weekend\b",
    "weekday": rf"(?<![下上个])(?:这个?|本)?(?:周|星期)(?P<w>[{_HAN}])(?!气)"
    rf"|\b(?:on |this )?(?P<e>{'|'.join(_NAMES)})day\b",
    "span": rf"(?:未来|接下来)?{_NUMERAL}\s*天(?!气)|\b(?:(?:the )?next )?{_NUMERAL}[ -]days?\b",
}
_DAYS = re.compile("|".join(f"(?P<_{kind}>{form})" for kind, form in _DAY_FORMS.items()))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<m>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DAY, _YEAR = r"(?P<d>3[01]|[12][0-9]|0?[1-9])", "(?P<y>[0-9]{4})"
_DATES = (
    rf"(?<![0-9]){_YEAR}\s*[-/年]\s*(?P<m>1[0-2]|0?[1-9])\s*[-/月]\s*{_DAY}(?![0-9])[日号]?",
    rf"\b{_MONTH} {_DAY},? {_YEAR}\b",
    rf"\b{_DAY} {_MONTH} {_YEAR}\b",
)
_TIME = re.compile(
    r"(?P<p>下午|晚上)?\s?(?<![0-9:.])(?P<h>[01]?[0-9]|2[0-3])(?:(?::|点[钟整]?)(?P<n>[0-5][0-9]|半)?(?:\s?(?P<q>[ap])\.?m\b)?"
    r"|\s?(?P<r>[ap])\.?m\b)(?![0-9:])"
)
_DURATION = re.compile(
    rf"(?:\bin )?(?<![时分天])(?P<n>(?<!个)半个?|\bhalf an?\b|{_NUMERAL})\s*个?(?P<u>秒|分|小时"
    r"|(?:sec|min|hour)[a-z]{0,4}\b)钟?(?P<l>[以之]?后| from now\b| later\b)?"
)
_UNITS = {"秒": "S", "s": "S", "分": "M", "m": "M", "小": "H", "h": "H"}
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])[-+]?[0-9]{1,15}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,10})?(?![0-9_]|\.[0-9])"
    rf"|[二三四五六七八九十]{{2,3}}(?![百千万])|[二两三四五六七八九十](?=[个次位人枚杯份张件公小元块])"
    rf"|\b(?!one\b)(?:{'|'.join(_NUMBER_WORDS)})\b"
)
_ZONE = re.compile(r"\b(?:[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}|(?:UTC|GMT)(?:\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?)?)")
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
_UNKNOWN_PLACE = re.compile(r"\b(?:in|at|for|to|from|near|about) ([A-Z][\w'’-]{0,30}(?:,? [A-Z][\w'’-]{0,30}){0,3})")


ROW = re.compile(
    r"\s*(?:[,、&;]|\b(?:and|or)\b|[和与跟及比]|还是|以及)(?:[\s,、]|\b(?:and|or|in|to|into|at|for|from)\b|[在从])*"
)
"""What stands between the values of a row."""


def find_literals(text: Text) -> list[Literal]:
    """Find the values of a text in their order; where two overlap, the kind that is more certain counts."""
    flat, readable = text.command, text.readable
    is_shouted = readable.isupper() and len(re.findall("[A-Z]+", readable)) > 2
    finders: tuple[tuple[str, Iterable[tuple[Any, int, int]]], ...] = (
        ("quoted", ((text.raw[start:end], start, end) for start, end in text.quotes)),
        ("zone", _zones(readable)),
        ("word", ((match[0].lstrip("#"), *match.span()) for match in _WORD.finditer(readable))),
        ("date", _dates(flat)),
        ("duration", _durations(flat)),
        ("time", _times(flat)),
        ("days", _find_days(flat)),
        ("currency", _named(flat, "currency")),
        ("language", _named(flat, "language")),
        ("place", _places(readable)),
        ("name", _unknown_places(readable)),
        ("word", ((match[0], *match.span()) for match in _CAPITALS.finditer(readable) if not is_shouted)),
        ("number", ((_read_number(match[0]), *match.span()) for match in _NUMBER.finditer(flat))),
    )
    found: list[Literal] = []
    taken = bytearray(len(flat))
    for kind, (value, start, end) in ((kind, each) for kind, finder in finders for each in finder):
        if not any(taken[start:end]) and len(found) < 60:
            taken[start:end] = b"\1" * (end - start)
            kind = "name" if kind == "place" and value is None else kind
            written = text.raw[start:end].strip()
            found.append(Literal(kind, value, start, end, written, flat[max(start - 12, 0) : start]))
    return sorted(found, key=lambda each: each.start)


def _find_days(text: str) -> Iterator[tuple[Days, int, int]]:
    """Find the phrases for days in a folded text, each with its position."""
    for match in _DAYS.finditer(text):
        kind = next(each for each in _DAY_FORMS if match[f"_{each}"])
        yield replace(_days(kind, match), phrase=match[0]), *match.span()


def _days(kind: str, match: re.Match[str]) -> Days:
    if kind.isdecimal():
        return Days(int(kind), int(kind))
    if kind in ("end", "weekday"):
        day = _HAN.index(match["w"]) if match["w"] else _NAMES.index(match["e"]) if match["e"] else None
        return Days(0, 6, (5, 6) if day is None else (day,))
    numeral = re.search(_NUMERAL, match[0])
    count = int(_read_number(numeral[0])) if numeral else 1
    return Days(count, count) if kind == "later" else Days(0, count - 1)


def _read_number(text: str) -> float:
    """The value of a numeral; a whole one is an ``int``."""
    if text[-1].isascii():
        plain = text.replace(",", "")
        return _NUMBER_WORDS.get(plain, 1) if plain.isalpha() else float(plain) if "." in plain else int(plain)
    tens, ten, ones = text.rpartition("十")
    return 10 * (_DIGITS[tens] or 1) * bool(ten) + _DIGITS[ones]


def _dates(flat: str) -> Iterator[tuple[str, int, int]]:
    """Dates as ``yyyy-mm-dd``; one without its year is none."""
    for match in (match for form in _DATES for match in re.finditer(form, flat)):
        month = int(match["m"]) if match["m"].isdecimal() else _MONTHS.index(match["m"]) + 1
        yield f"{match['y']}-{month:02}-{int(match['d']):02}", *match.span()


def _times(flat: str) -> Iterator[tuple[str, int, int]]:
    """Times of day as ``HH:mm``."""
    for match in _TIME.finditer(flat):
        part, hour = match["p"] or match["q"] or match["r"], int(match["h"])
        hour = hour % 12 + 12 * (part != "a") if part and hour < 13 else hour
        yield f"{hour:02}:{30 if match['n'] == '半' else int(match['n'] or 0):02}", *match.span()


def _durations(flat: str) -> Iterator[tuple[str, int, int]]:
    """Spans of one unit, counted from now, as ISO-8601 durations."""
    for match in _DURATION.finditer(flat):
        is_half, unit = match["n"].startswith(("半", "half")), _UNITS[match["u"][0]]
        if (match["l"] or match[0].startswith("in ")) and (unit == "H" or not is_half):
            yield "PT30M" if is_half else f"PT{_read_number(match['n'])}{unit}", *match.span()


@cache
def _names(kind: str) -> tuple[re.Pattern[str], dict[str, Any]]:
    """The names of all languages or currencies as one pattern, and what they mean."""
    spoken = {name: each for each in languages() for name in each.names}
    by_name: dict[str, Any] = dict(CURRENCIES if kind == "currency" else spoken)
    names = [re.escape(each) for each in sorted(by_name, key=len, reverse=True) if each[0].isalpha()]
    latin, others = ("|".join(each for each in names if each.isascii() == flag) for flag in (True, False))
    return re.compile(rf"(?<![a-z])(?P<name>{latin})s?(?![a-z])|{others}|[$€£]"), by_name


def _named(flat: str, kind: str) -> Iterator[tuple[Language | str, int, int]]:
    pattern, by_name = _names(kind)
    found = ((match, by_name.get(match["name"] or match[0])) for match in pattern.finditer(flat))
    yield from ((value, *match.span()) for match, value in found if value)


def _zones(readable: str) -> Iterator[tuple[str, int, int]]:
    """Time zones: UTC+8, Asia/Tokyo."""
    known = {zone.lower(): zone for zone in zone_ids()} if "/" in readable else {}
    for match in _ZONE.finditer(readable):
        name = match[0].replace(" ", "")
        if zone := known.get(name.lower()) or ("" if "/" in name else name):
            yield zone, *match.span()


def _places(readable: str) -> Iterator[tuple[Place | None, int, int]]:
    """Known places, each with the country or state beside it; ``None`` if that belongs to another of the name."""
    known = [(find_qualifier(readable, each.start, each.end, each.place), each) for each in mentions(readable)]
    for wider, each in sorted(known, key=lambda each: each[0] is None):
        start, end, is_own = wider or (each.start, each.end, True)
        yield each.place if is_own else None, start, end
    for place in lesser_places():
        for match in re.finditer(rf"(?:{'|'.join(place.names[1:])})(?=[和与、的天今明后]|未来|现在|$)", readable):
            yield place, *match.span()


def _unknown_places(readable: str) -> Iterator[tuple[None, int, int]]:
    """Names at the position of a place: in Blorptown."""
    for match in _UNKNOWN_PLACE.finditer(readable):
        if not (language_of(match[1]) or find_place(match[1]) or match[1].lower().startswith(_MONTHS)):
            yield None, *match.span(1)
