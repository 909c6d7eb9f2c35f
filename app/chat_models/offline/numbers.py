"""Numbers, spans of days, dates and times of day in a folded text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

__all__ = ["Horizon", "Number", "dates", "horizon", "numbers", "times_of_day"]

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000, "萬": 10000}
_ENGLISH = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])(?P<digits>[-+]?[0-9]{1,15}(?:,[0-9]{3})*(?:\.[0-9]{1,10})?)(?![a-z]*[0-9_])"
    r"|(?P<chinese>[零〇一二两兩三四五六七八九十百千万萬]{1,12})"
    rf"|\b(?P<english>{'|'.join(_ENGLISH)})\b"
)
_N = (
    r"((?:(?<![0-9.−负負-])|(?<=[0-9][-−]))[0-9]{1,9}(?![.0-9])|[一二两兩三四五六七八九十百千]{1,7}"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|fourteen|a)\b)"
)
_LATER = re.compile(rf"{_N}\s*天\s*(?:以后|之后|後|后|以後|之後)|in {_N} days?\b|{_N} days? (?:from now|later|ahead)\b")
_NEXT = re.compile(rf"{_N}\s*[天日](?!气|氣)|{_N}[ -]days?\b")
_WEEKS = re.compile(rf"{_N}? ?(?:个|個)?(?:周|週|星期|礼拜)(?![一二三四五六日末几]|天(?!气|氣))|{_N}?[ -]?weeks?\b")
_NEXT_WEEK = re.compile(
    r"下个?(?:周|週|星期|礼拜)|\bnext (?:week|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
)
_THIS_WEEK = re.compile(
    r"周末|週末|(?:周|週|星期|礼拜)[一二三四五六日天](?!气|氣)|\bweekend\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
)
_PAST = re.compile(
    rf"{_N} (?:days?|weeks?) ago\b|{_N}\s*[天周](?:以前|之前|前)|\b(?:last|past|previous) (?:{_N} )?(?:days?|weeks?)\b"
    r"|上个?(?:周|週|星期|礼拜)[一二三四五六日天末]?"
)
_MONTH = re.compile(r"[个個]月|\bmonths?\b")
_DAY_WORDS = (
    (3, re.compile(r"大后天|大後天")),
    (2, re.compile(r"后天|後天|day after tomorrow")),
    (1, re.compile(r"明天|明日|明早|明晚|tomorrow|tmr\b")),
    (0, re.compile(r"今天|今日|今晚|现在|現在|目前|today|tonight|right now|currently")),
)
_DATE = re.compile(r"(?<![0-9])([0-9]{4})\s*[-/.年]\s*(1[0-2]|0?[1-9])\s*[-/.月]\s*(3[01]|[12][0-9]|0?[1-9])(?![0-9])")
_CLOCK = re.compile(r"(?<![0-9:])([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?(?![0-9])\s*(am|pm)?")
_HOUR = re.compile(
    r"(早上|上午|凌晨|清晨|早|中午|下午|傍晚|晚上|今晚|明晚|夜里|晚)? ?"
    r"([01]?[0-9]|2[0-3]|[一二两兩三四五六七八九十]{1,3})\s*[点點时時](?!间|間|区|區|差)"
    r"(?:\s*(半)|\s*(一刻)|\s*([0-5]?[0-9])\s*分?)?"
)
_AM_PM = re.compile(r"\b(1[0-2]|0?[1-9])\s?(am|pm)\b")
_EVENING = ("下午", "傍晚", "晚上", "今晚", "明晚", "夜里", "晚", "pm")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands in a text."""

    value: float
    """An ``int`` where it is whole."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Horizon:
    """Which days a question is about."""

    count: int
    """Days from today on that are needed, today included."""
    offset: int | None = None
    """The one day that is meant, counted from today; ``None`` for all of them."""


def numbers(text: str) -> Iterator[Number]:
    """Find the numbers: 3, 2.5, 1,000, 三十二, seven."""
    for match in _NUMBER.finditer(text):
        value = _value(match[0])
        if value is not None:
            yield Number(value, *match.span())


def horizon(text: str) -> Horizon | None:
    """Find out which days are meant: tomorrow needs two days of a forecast and is the second of them."""
    text = _PAST.sub(" ", text)
    later = _LATER.search(text)
    if later is not None:
        offset = _count(later)
        return Horizon(offset + 1, offset)
    coming = _NEXT.search(text)
    if coming is not None:
        return Horizon(max(_count(coming), 1))
    if _NEXT_WEEK.search(text) or _MONTH.search(text):
        return Horizon(31 if _MONTH.search(text) else 14)
    weeks = _WEEKS.search(text)
    if weeks is not None:
        return Horizon(7 * max(_count(weeks), 1))
    named = next((offset for offset, word in _DAY_WORDS if word.search(text)), None)
    if named is None and _THIS_WEEK.search(text):
        return Horizon(7)
    return None if named is None else Horizon(named + 1, named)


def dates(text: str) -> Iterator[str]:
    """Find dates with a year, as ``yyyy-MM-dd``."""
    for match in _DATE.finditer(text):
        yield f"{int(match[1]):04}-{int(match[2]):02}-{int(match[3]):02}"


def times_of_day(text: str) -> Iterator[str]:
    """Find times of day, as ``HH:mm``: 7:30, 7:30 pm, 下午三点半, 8 am."""
    for match in _CLOCK.finditer(text):
        yield _time(int(match[1]), int(match[2]), match[4] or "")
    for match in _HOUR.finditer(text):
        minutes = 30 if match[3] else 15 if match[4] else int(match[5] or 0)
        hour = _value(match[2])
        if hour is not None and hour < 24:
            yield _time(int(hour), minutes, match[1] or "")
    for match in _AM_PM.finditer(text):
        yield _time(int(match[1]), 0, match[2])


def _time(hour: int, minute: int, part_of_day: str) -> str:
    if part_of_day in _EVENING and hour < 12:
        hour += 12
    elif part_of_day in ("am", "凌晨") and hour == 12:
        hour = 0
    return f"{hour:02}:{minute:02}"


def _count(match: re.Match[str]) -> int:
    text = next((group for group in match.groups() if group), "1")
    return 1 if text == "a" else int(_value(text) or 0)


def _value(text: str) -> float | None:
    if text in _english():
        return _english()[text]
    if text[-1].isascii():
        plain = text.replace(",", "")
        return float(plain) if "." in plain else int(plain)
    return _chinese(text)


def _chinese(text: str) -> int | None:
    """Read a number in Chinese characters; a mere row of digits is read digit by digit."""
    if not any(c in _UNITS for c in text):
        return int("".join(str(_DIGITS[c]) for c in text))
    total, below, digit = 0, 0, None
    for c in text:
        if c in _DIGITS:
            digit = _DIGITS[c]
        elif _UNITS[c] == 10000:
            total, below, digit = total + (below + (digit or 0)) * 10000, 0, None
        else:
            below, digit = below + (1 if digit is None else digit) * _UNITS[c], None
    return (total + below + (digit or 0)) or None


@cache
def _english() -> dict[str, int]:
    return {word: value for value, word in enumerate(_ENGLISH)} | {"a": 1}
