"""Literals: the values that a question holds word for word, each with its kind and position."""

import re
from calendar import month_abbr, month_name
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from toolchat.service.gazetteer.gazetteer import zones_in_lower_case
from toolchat.service.gazetteer.languages import languages
from toolchat.service.gazetteer.regions import places_in
from toolchat.service.offline.text import Text
from toolchat.service.offline.vocabulary import FUNCTION_WORDS, SYNONYMS, concepts_of


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in a question.

    Args:
        kind: ``number``, ``date``, ``time``, ``duration``, ``day``, ``days`` (both: how many days from today on hold
            them), ``place``, ``zone``, ``language``, ``name`` (capitals that mean nothing else), ``word`` (an id, a
            path, an address), ``quoted``, or ``=`` and the name of an enumeration.
        before: The text before it, for words such as "from".
    """

    kind: str
    value: Any
    start: int
    end: int
    text: str
    before: str = ""


_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL)} | {"twenty": 20, "thirty": 30}
_HAN_NUMBERS = {word: n for n, word in enumerate("一二三四五六七八九十", 1)} | {"两": 2}
_HAN_NUMBERS |= {f"{word}十": 10 * n for word, n in _HAN_NUMBERS.items()}
_NUMERAL = (
    r"(?:(?<![-.0-9第])[0-9]{1,9}|(?<![第一二三四五六七八九十])(?:[二三四五六七八九]?十|[一二两三四五六七八九])(?![一二三四五六七八九十百千万半])"
    rf"|\b(?:an?|{'|'.join(_NUMBER_WORDS)})\b)"
)
"""A whole number that counts something; "a" is one."""
# A group's name is the number of days from today on that hold the day; others hold a numeral.
_DAY = re.compile(
    r"(?P<_3>\b(?:the )?day after tomorrow\b|(?<!大)后天)|(?P<_2>\btomorrow\b|明天)"
    rf"|(?P<_1>\btoday\b|\btonight\b|今[天日晚])|\bin (?P<n>{_NUMERAL}) days?\b|(?P<m>{_NUMERAL})\s*天[以之]?后"
)
_DAYS = re.compile(
    r"(?P<_7>(?<![下上个])(?:这个?|本)?(?:周末|(?:周|星期)[一二三四五六日](?!气))"
    r"|\b(?:on )?(?:this |the )?(?:weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b)"
    rf"|(?:未来|接下来)?(?P<n>{_NUMERAL})\s*天(?!气)|\b(?:(?:the )?next )?(?P<m>{_NUMERAL})[ -]days?\b"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<m>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DAY_OF_MONTH, _YEAR = r"(?P<d>3[01]|[12][0-9]|0?[1-9])", "(?P<y>[0-9]{4})"
_DATES = [
    re.compile(rf"(?<![0-9]){_YEAR}\s*[-/年]\s*(?P<m>1[0-2]|0?[1-9])\s*[-/月]\s*{_DAY_OF_MONTH}(?![0-9])[日号]?"),
    re.compile(rf"\b{_MONTH} {_DAY_OF_MONTH},? {_YEAR}\b"),
    re.compile(rf"\b{_DAY_OF_MONTH} {_MONTH} {_YEAR}\b"),
]
_TIME = re.compile(
    r"(?P<p>上午|早上|下午|晚上)?\s?(?<![0-9:.])(?P<h>[01]?[0-9]|2[0-3])(?:(?::|点[钟整]?)(?P<n>[0-5][0-9]|半)?(?:\s?(?P<q>[ap])\.?m\b)?"
    r"|\s?(?P<r>[ap])\.?m\b)(?![0-9:])"
)
_DURATION = re.compile(
    rf"(?:\bin )?(?<![时分天])(?P<n>(?<!个)半个?|\bhalf an?\b|{_NUMERAL})\s*个?(?P<u>秒|分|小时"
    r"|(?:sec|min|hour)[a-z]{0,4}\b)钟?(?P<l>[以之]?后| from now\b| later\b)?"
)
_UNITS = {"秒": "S", "s": "S", "分": "M", "m": "M", "小": "H", "h": "H"}
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])(?<![0-9],)[-+]?[0-9]{1,15}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,10})?(?![0-9_]|[.,][0-9])"
    r"|(?<![一二三四五六七八九十])(?:[二三四五六七八九]十(?![百千万一二三四五六七八九])|[二两三四五六七八九十](?=[个次位人枚杯份张件公小元块]))"
    rf"|\b(?!one\b)(?:{'|'.join(_NUMBER_WORDS)})\b"
)
_ZONE = re.compile(r"\b[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}")
_OFFSET = re.compile(r"\b(?:UTC|GMT)(?:\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?)?")
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
# Capitals within a sentence, and words that are no name even so.
_NO_NAMES = {*FUNCTION_WORDS, *SYNONYMS, *map(str.lower, (*month_name, *month_abbr))}
_NAME = re.compile(
    r"(?:(?<=[a-z,:㐀-鿿] )|(?<=[㐀-鿿]))(?!I\b)[A-Z](?![A-Z])[\w'’-]{0,30}(?:,? [A-Z][\w'’-]{0,30}){0,3}"
)
ROW = re.compile(
    r"\s*(?:[,、&;]|\b(?:and|or)\b|[和与跟及比]|还是|以及)(?:[\s,、]|\b(?:and|or|in|to|into|at|for|from|the)\b|[在从])*"
)
"""What stands between the values of a row."""
_Value = tuple[str, Any, int, int]


def find_literals(text: Text) -> list[Literal]:
    """Find the values of a text in their order; where two overlap, the kind that is more certain counts."""
    found: list[Literal] = []
    taken = bytearray(len(text.flat))
    for kind, value, start, end in _values(text):
        if not any(taken[start:end]) and len(found) < 60:
            taken[start:end] = b"\1" * (end - start)
            written = text.raw[start:end].strip()
            found.append(Literal(kind, value, start, end, written, text.command[max(start - 60, 0) : start]))
    return sorted(found, key=lambda each: each.start)


def _values(text: Text) -> Iterator[_Value]:
    """Each value with its kind and position, the more certain kinds first."""
    flat, readable = text.command, text.readable
    yield from (("quoted", text.raw[start:end], start, end) for start, end in text.quotes)
    yield from _read("zone", _ZONE, readable, lambda match: zones_in_lower_case().get(match[0].lower()))
    yield from _read("zone", _OFFSET, readable, lambda match: match[0].replace(" ", ""))
    yield from _read("word", _WORD, readable, lambda match: match[0].lstrip("#"))
    for form in _DATES:
        yield from _read("date", form, flat, _date)
    yield from _read("duration", _DURATION, flat, _duration)
    yield from _read("time", _TIME, flat, _time)
    yield from _read("day", _DAY, flat, _days)
    yield from _read("days", _DAYS, flat, _days)
    yield from _read("language", _language_names(), flat, lambda match: _languages()[match["name"] or match[0]])
    yield from (("place" if place else "name", place, *span) for place, span in places_in(readable))
    yield from _read("name", _NAME, readable, _name)
    if not readable.isupper() or len(re.findall("[A-Z]+", readable)) < 3:
        yield from _read("word", _CAPITALS, readable, lambda match: match[0])
    yield from _read("number", _NUMBER, flat, lambda match: _read_number(match[0]))


def _read(kind: str, form: re.Pattern[str], text: str, reader: Callable[[re.Match[str]], Any]) -> Iterator[_Value]:
    found = ((match, reader(match)) for match in form.finditer(text))
    yield from ((kind, value, *match.span()) for match, value in found if value is not None)


def _date(match: re.Match[str]) -> str | None:
    """A date as ``yyyy-mm-dd``; 30 February and one without its year are none."""
    month = int(match["m"]) if match["m"].isdecimal() else _MONTHS.index(match["m"]) + 1
    try:
        return date(int(match["y"]), month, int(match["d"])).isoformat()
    except ValueError:
        return None


def _time(match: re.Match[str]) -> str:
    """A time of day as ``HH:mm``."""
    part, hour = match["p"] or match["q"] or match["r"], int(match["h"])
    hour = hour % 12 + 12 * (part not in ("a", "上午", "早上")) if part and hour < 13 else hour
    return f"{hour:02}:{30 if match['n'] == '半' else int(match['n'] or 0):02}"


def _duration(match: re.Match[str]) -> str | None:
    """A span of one unit, counted from now, as an ISO-8601 duration."""
    is_half, unit = match["n"].startswith(("半", "half")), _UNITS[match["u"][0]]
    if not (match["l"] or match[0].startswith("in ")) or (is_half and unit != "H"):
        return None
    return "PT30M" if is_half else f"PT{_read_number(match['n'])}{unit}"


def _name(match: re.Match[str]) -> str | None:
    """Capitals that may be a name: "What Is The Time" is none."""
    words = match[0].lower().split()
    return None if any(each in _NO_NAMES or concepts_of(each) for each in words) else match[0]


def _days(match: re.Match[str]) -> int:
    """How many days from today on hold the day or the days: 2 for tomorrow."""
    group = str(match.lastgroup)
    return int(group[1]) if group[0] == "_" else int(_read_number(match[group])) + (match.re is _DAY)


def _read_number(text: str) -> float:
    """The value of a numeral; a whole one is an ``int``."""
    plain = text.replace(",", "")
    if plain.isalpha():
        return _HAN_NUMBERS.get(plain) or _NUMBER_WORDS.get(plain, 1)
    return float(plain) if "." in plain else int(plain)


@cache
def _languages() -> dict[str, str]:
    return {name: each.code for each in languages() for name in each.names}


@cache
def _language_names() -> re.Pattern[str]:
    names = [re.escape(each) for each in sorted(_languages(), key=len, reverse=True)]
    latin, others = ("|".join(each for each in names if each.isascii() == flag) for flag in (True, False))
    return re.compile(rf"(?<![a-z])(?P<name>{latin})s?(?![a-z])|{others}")
