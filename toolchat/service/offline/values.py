"""Values that a question holds word for word: numbers, dates, times, days, ids, quotations."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from toolchat.service.offline.text import Text


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a question.

    Args:
        kind: ``quoted``, ``word`` (an id, a path, an address), ``date``, ``time``, ``duration``, ``day``, ``days``
            (both: how many days from today on hold them), ``number``, or the kind of a parameter.
    """

    kind: str
    value: Any
    start: int
    end: int


_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBERS = {word: n for n, word in enumerate(_SMALL)} | {"twenty": 20, "thirty": 30}
_NUMBERS |= {word: n for n, word in enumerate("一二三四五六七八九十", 1)} | {"两": 2}
_NUMBERS |= {f"{word}十": 10 * n for word, n in list(_NUMBERS.items()) if not word.isascii() and n < 10}
_NUMERAL = (
    r"(?:(?<![-.0-9第])[0-9]{1,9}|(?<![第一二三四五六七八九十])(?:[二三四五六七八九]?十|[一二两三四五六七八九])(?![一二三四五六七八九十百千万半])"
    rf"|\b(?:an?|{'|'.join(each for each in _NUMBERS if each.isascii())})\b)"
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
_DATES = (
    re.compile(rf"(?<![0-9]){_YEAR}\s*[-/年]\s*(?P<m>1[0-2]|0?[1-9])\s*[-/月]\s*{_DAY_OF_MONTH}(?![0-9])[日号]?"),
    re.compile(rf"\b{_MONTH} {_DAY_OF_MONTH},? {_YEAR}\b"),
    re.compile(rf"\b{_DAY_OF_MONTH} {_MONTH} {_YEAR}\b"),
)
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
    rf"|\b(?!one\b)(?:{'|'.join(each for each in _NUMBERS if each.isascii())})\b"
)
# An address, a path, an id of letters and digits, a file, capitals.
_WORD = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}|https?://[^\s，。]{1,500}|(?<![\w.~])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*){0,20}"
    r"|(?<![\w/.@-])#?(?:[0-9a-f]{8}-[0-9a-f-]{9,40}|[A-Za-z]{1,12}[-_]?[0-9][\w-]{0,40}|[0-9]{1,9}[A-Z][A-Z0-9]{0,20})(?![\w-])"
    r"|(?<![\w.@/-])[\w-]{1,60}\.(?:[a-z]{3,4}|py|js|md|gz)(?![\w.])|(?<![\w])[A-Z]{2,10}(?:\.[A-Z]{1,3})?(?!\w)",
    re.ASCII,
)


def find_values(text: Text) -> list[Value]:
    """Find the values of a text in their order; where two overlap, the kind that is more certain counts."""
    found: list[Value] = []
    taken = bytearray(len(text.flat))
    for each in _values(text):
        if not any(taken[each.start : each.end]) and len(found) < 60:
            taken[each.start : each.end] = b"\1" * (each.end - each.start)
            found.append(each)
    return sorted(found, key=lambda each: each.start)


def _values(text: Text) -> Iterator[Value]:
    """Each value, the more certain kinds first."""
    flat = text.command
    yield from (Value("quoted", text.raw[start:end], start, end) for start, end in text.quotes)
    yield from _read("word", _WORD, text.readable, lambda match: match[0].lstrip("#"))
    for form in _DATES:
        yield from _read("date", form, flat, _date)
    yield from _read("duration", _DURATION, flat, _duration)
    yield from _read("time", _TIME, flat, _time)
    yield from _read("day", _DAY, flat, _days)
    yield from _read("days", _DAYS, flat, _days)
    yield from _read("number", _NUMBER, flat, lambda match: _read_number(match[0]))


def _read(kind: str, form: re.Pattern[str], text: str, reader: Callable[[re.Match[str]], Any]) -> Iterator[Value]:
    found = ((match, reader(match)) for match in form.finditer(text))
    yield from (Value(kind, value, *match.span()) for match, value in found if value is not None)


def _date(match: re.Match[str]) -> str | None:
    """A date as ``yyyy-mm-dd``; 30 February is none."""
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


def _days(match: re.Match[str]) -> int:
    """How many days from today on hold the day or the days: 2 for tomorrow."""
    group = str(match.lastgroup)
    return int(group[1]) if group[0] == "_" else int(_read_number(match[group])) + (match.re is _DAY)


def _read_number(text: str) -> float:
    """The value of a numeral; a whole one is an ``int``."""
    plain = text.replace(",", "")
    if plain.isalpha():
        return _NUMBERS.get(plain, 1)
    return float(plain) if "." in plain else int(plain)
