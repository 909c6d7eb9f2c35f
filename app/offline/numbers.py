"""Numbers, days, dates, times of day and spans of time in a folded text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.offline import lexicon

__all__ = ["Found", "Horizon", "dates", "horizon", "numbers", "spans_from_now", "times_of_day"]

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000, "萬": 10000}
_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_TO_TWENTY = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
_WORDS = f"{_TO_TWELVE} {_TO_TWENTY}".split()
_ENGLISH = {word: value for value, word in enumerate(_WORDS)} | {"a": 1, "an": 1, "thirty": 30}

# 3, 2.5, -1, 1,000; 三十二; seven. No part of a word, a date or an address.
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])[-+]?[0-9]{1,15}(?:,[0-9]{3})*(?:\.[0-9]{1,10})?(?![a-z]*[0-9_])"
    rf"|[零〇一二两兩三四五六七八九十百千万萬]{{1,12}}|\b(?:{'|'.join(_WORDS)}|thirty)\b"
)
# A whole number that counts days or weeks.
_N = (
    r"((?:(?<![0-9.−负負-])|(?<=[0-9][-−]))[0-9]{1,9}(?![.0-9])|[一二两兩三四五六七八九十百千]{1,7}"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|fourteen|a)\b)"
)
# One day, so many days from now; so many days from today on; weeks.
_LATER = re.compile(rf"{_N}\s*天\s*(?:以后|之后|後|后|以後|之後)|in {_N} days?\b|{_N} days? (?:from now|later|ahead)\b")
_NEXT = re.compile(rf"{_N}\s*[天日](?!气|氣)|{_N}[ -]days?\b")
_WEEKS = re.compile(rf"{_N}? ?(?:个|個)?(?:周|週|星期|礼拜)(?![一二三四五六日末几]|天(?!气|氣))|{_N}?[ -]?weeks?\b")
# Days that a week or a month holds, whose distance from today nobody here knows.
_NEXT_WEEK = re.compile(
    r"下个?(?:周|週|星期|礼拜)|\bnext (?:week|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
)
_THIS_WEEK = re.compile(
    r"周末|週末|(?:周|週|星期|礼拜)[一二三四五六日天](?!气|氣)|\bweekend\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
)
_MONTH = re.compile(r"[个個]月|\bmonths?\b")
_SOME_DAYS = re.compile(r"[近这]几天|(?:未来|接下来)几天|\b(?:next|coming) (?:few |couple of )?days\b")
_DAY_WORDS = (
    (3, re.compile(r"大后天|大後天")),
    (2, re.compile(r"后天|後天|day after tomorrow")),
    (1, re.compile(r"明天|明日|明早|明晚|tomorrow|tmr\b")),
    (0, re.compile(r"今天|今日|今晚|现在|現在|目前|today|tonight|right now|currently")),
)
_PAST_DAYS = re.compile(
    rf"{_N} (?:days?|weeks?) ago\b|{_N}\s*[天周](?:以前|之前|前)|\b(?:last|past|previous) (?:{_N} )?(?:days?|weeks?)\b"
    rf"|上个?(?:周|週|星期|礼拜)[一二三四五六日天末]?|{lexicon.PAST.pattern}"
)
# 2026-12-01, 2026年12月1日.
_DATE = re.compile(r"(?<![0-9])([0-9]{4})\s*[-/.年]\s*(1[0-2]|0?[1-9])\s*[-/.月]\s*(3[01]|[12][0-9]|0?[1-9])(?![0-9])")
# 7:30, 7:30 pm; 下午三点半; 8 am.
_CLOCK = re.compile(r"(?<![0-9:])([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?(?![0-9])\s*(am|pm)?")
_HOUR = re.compile(
    r"(早上|上午|凌晨|清晨|早|中午|下午|傍晚|晚上|今晚|明晚|夜里|晚)? ?"
    r"([01]?[0-9]|2[0-3]|[一二两兩三四五六七八九十]{1,3})\s*[点點时時](?!间|間|区|區|差)"
    r"(?:\s*(半)|\s*(一刻)|\s*([0-5]?[0-9])\s*分?)?"
)
_AM_PM = re.compile(r"\b(1[0-2]|0?[1-9])\s?(am|pm)\b")
_EVENING = ("下午", "傍晚", "晚上", "今晚", "明晚", "夜里", "晚", "pm")
# 10分钟, 一个半小时, half an hour, 2 hours; then such spans counted from now.
_AMOUNT = (
    r"(?:[0-9]{1,6}(?:\.[0-9]{1,3})?|[一二两兩三四五六七八九十百]{1,5}|half an?|an?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty)"
)
_UNIT = (
    r"(?:秒[钟鐘]?|分[钟鐘]?|小时|小時|钟头|鐘頭|天(?!气|氣)"
    r"|seconds?\b|secs?\b|minutes?\b|mins?\b|hours?\b|hrs?\b|days?\b)"
)
_PART = rf"(?:{_AMOUNT} ?[个個]? ?半?|半 ?[个個]?) ?{_UNIT}(?:半(?!径))?"
_SPAN = rf"{_PART}(?: ?(?:and|零|又)? ?{_PART}){{0,3}}"
_FROM_NOW = re.compile(
    rf"({_SPAN}) ?(?:以后|之后|以後|之後|后|後)|\bin ({_SPAN})|({_SPAN}) (?:from now|later)\b|[过過再]({_SPAN})"
)
_EACH = re.compile(_PART)
_SECONDS = (
    (1, re.compile(r"秒|second|sec\b")),
    (60, re.compile(r"分|minute|min\b")),
    (3600, re.compile(r"小时|小時|钟头|鐘頭|hour|hr\b")),
    (86400, re.compile(r"天|day")),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Something that a question holds, and where."""

    role: str
    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Horizon:
    """Which days a question is about."""

    count: int
    """Days from today on that are needed, today included."""
    offset: int | None = None
    """The one day that is meant, counted from today; ``None`` for all of them."""


def numbers(text: str) -> Iterator[Found]:
    """Find the numbers: an ``int`` where one is whole."""
    for match in _NUMBER.finditer(text):
        value = _value(match[0])
        if value is not None:
            yield Found("number", value, *match.span())


def horizon(text: str) -> Horizon | None:
    """Find out which days are meant: tomorrow needs two days of a forecast and is the second of them."""
    text = _PAST_DAYS.sub(" ", text)
    if later := _LATER.search(text):
        return Horizon(_count(later) + 1, _count(later))
    if coming := _NEXT.search(text):
        return Horizon(max(_count(coming), 1))
    if _SOME_DAYS.search(text):
        return Horizon(3)
    if _NEXT_WEEK.search(text) or _MONTH.search(text):
        return Horizon(31 if _MONTH.search(text) else 14)
    if weeks := _WEEKS.search(text):
        return Horizon(7 * max(_count(weeks), 1))
    named = next((offset for offset, word in _DAY_WORDS if word.search(text)), None)
    if named is None and _THIS_WEEK.search(text):
        return Horizon(7)
    return None if named is None else Horizon(named + 1, named)


def dates(text: str) -> Iterator[Found]:
    """Find dates with a year, as ``yyyy-MM-dd``."""
    for match in _DATE.finditer(text):
        yield Found("date", f"{int(match[1]):04}-{int(match[2]):02}-{int(match[3]):02}", *match.span())


def times_of_day(text: str) -> Iterator[Found]:
    """Find times of day, as ``HH:mm``: 7:30, 7:30 pm, 下午三点半, 8 am."""
    for match in _CLOCK.finditer(text):
        yield _time(match, int(match[1]), int(match[2]), match[4] or "")
    for match in _HOUR.finditer(text):
        minutes = 30 if match[3] else 15 if match[4] else int(match[5] or 0)
        hour = _value(match[2])
        if hour is not None and hour < 24:
            yield _time(match, int(hour), minutes, match[1] or "")
    for match in _AM_PM.finditer(text):
        yield _time(match, int(match[1]), 0, match[2])


def spans_from_now(text: str) -> Iterator[Found]:
    """Find spans counted from now, as ISO-8601 durations: 10分钟以后, in half an hour, 2 hours from now."""
    for match in _FROM_NOW.finditer(text):
        span = next(group for group in match.groups() if group)
        total = sum(_seconds(part[0]) for part in _EACH.finditer(span))
        if total > 0:
            yield Found("duration", _iso(total), *match.span())


def _time(match: re.Match[str], hour: int, minute: int, part_of_day: str) -> Found:
    if part_of_day in _EVENING and hour < 12:
        hour += 12
    elif part_of_day in ("am", "凌晨") and hour == 12:
        hour = 0
    return Found("time_of_day", f"{hour:02}:{minute:02}", *match.span())


def _seconds(part: str) -> float:
    unit = next(size for size, word in _SECONDS if word.search(part))
    halves = part.count("半") + part.startswith("half")
    amount = next((each.value for each in numbers(part)), 0.0 if halves else 1.0)
    return float((amount + 0.5 * halves) * unit)


def _iso(seconds: float) -> str:
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    shown = [(hours, "H"), (minutes, "M"), (rest, "S")]
    return "PT" + "".join(f"{amount:g}{unit}" if unit == "S" else f"{amount}{unit}" for amount, unit in shown if amount)


def _count(match: re.Match[str]) -> int:
    return int(_value(next((group for group in match.groups() if group), "1")) or 0)


def _value(text: str) -> float | None:
    if text in _ENGLISH:
        return _ENGLISH[text]
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
