"""Numbers, dates, times of day and durations in a folded text."""

import re
from collections.abc import Iterator

from app.offline.question import Entity, Span

__all__ = ["TO_TEN", "dates", "numbers", "spans_from_now", "times_of_day"]

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_WORDS = f"{_TO_TWELVE} thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
_ENGLISH = {word: value for value, word in enumerate(_WORDS)} | {"thirty": 30}
_NAMES_OF_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: number for number, name in enumerate(_NAMES_OF_MONTHS.split(), start=1)}

# 3, 2.5, -1, 1,000; 三十二; seven. No part of a word, a date or an address.
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])[-+]?[0-9]{1,15}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,10})?(?![a-z]*[0-9_])"
    rf"|[零〇一二两兩三四五六七八九十百千万]{{1,12}}|\b(?:{'|'.join(_ENGLISH)})\b"
)
# Small numbers as words that count.
TO_TEN = "one|two|three|four|five|six|seven|eight|nine|ten|fourteen"
# 2026-12-01, 2026年12月1日; 12月1日, 十二月一日; 1日; December 1st, 2026; 1st of December 2026; the 1st; 12/1.
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_D = "(?P<day>3[01]|[12][0-9]|0?[1-9])"
_TH = "(?:st|nd|rd|th)"
_DATES = tuple(
    re.compile(rf"(?:\bon )?{form}")
    for form in (
        rf"(?<![0-9])(?P<year>[0-9]{{4}})\s*[-/.年]\s*(?P<month>1[0-2]|0?[1-9])\s*[-/.月]\s*{_D}(?![0-9])[日号]?",
        r"(?<![0-9])(?P<month>1[0-2]|0?[1-9]|十?[一二三四五六七八九]|十)月(?P<day>3[01]|[12][0-9]|0?[1-9]"
        r"|[一二三]?十?[一二三四五六七八九十])[日号]",
        rf"(?<![0-9月来近]){_D}(?:日(?!游|间)|号(?![线楼店机码]))",
        rf"\b{_MONTH} {_D}{_TH}?\b(?:,? (?P<year>[0-9]{{4}})\b)?",
        rf"\b(?:the )?{_D}{_TH}? (?:of )?{_MONTH}(?:,? (?P<year>[0-9]{{4}}))?\b",
        rf"\bthe {_D}{_TH}\b",
        rf"(?<![0-9/])(?P<month>1[0-2]|0?[1-9])/{_D}(?![0-9/])",
    )
)
# 7:30, 7:30 pm; 下午三点半; 8 am.
_CLOCKS = (
    re.compile(r"(?<![0-9:])(?P<h>[01]?[0-9]|2[0-3]):(?P<m>[0-5][0-9])(?::[0-5][0-9])?(?![0-9])\s*(?P<part>am|pm)?"),
    re.compile(
        r"(?P<part>早上|上午|凌晨|清晨|早|中午|下午|傍晚|晚上|今晚|明晚|夜里|晚)? ?(?P<h>[01]?[0-9]|2[0-3]"
        r"|[一二两兩三四五六七八九十]{1,3})\s*[点时](?![间間区差])\s*(?:(?P<half>半)|(?P<m>[0-5]?[0-9])\s*分?)?"
    ),
    re.compile(r"\b(?P<h>1[0-2]|0?[1-9])\s?(?P<part>am|pm)\b"),
)
_EVENING = ("下午", "傍晚", "晚上", "今晚", "明晚", "夜里", "晚", "pm")
# 10分钟, 一个半小时, half an hour, 2 hours; then such spans counted from now.
_AMOUNT = (
    r"(?:[0-9]{1,6}(?:\.[0-9]{1,3})?|[一二两兩三四五六七八九十百]{1,5}|half an?|an?"
    rf"|{TO_TEN}|fifteen|twenty|thirty)"
)
_UNIT = r"(?:秒钟?|分钟?|小时|钟头|天(?!气)|(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?)\b)"
_PART = rf"(?:{_AMOUNT} ?[个個]? ?半?|半 ?[个個]?) ?{_UNIT}(?:半(?!径))?"
_FROM_NOW = re.compile(
    rf"(?P<before>\bin |[过過再])?(?P<span>{_PART}(?: ?(?:and|零|又)? ?{_PART}){{0,3}})"
    r"(?P<behind> ?[以之]?[后後]| (?:from now|later)\b)?"
)
_EACH = re.compile(_PART)
_SECONDS = {"秒|sec": 1, "分|min": 60, "小时|钟头|hour|hr": 3600, "天|day": 86400}


def numbers(text: str) -> Iterator[Entity]:
    """Find numbers; a whole one is an ``int``."""
    for match in _NUMBER.finditer(text):
        value = _value(match[0])
        if value is not None:
            yield Entity("number", value, *match.span())


def dates(text: str) -> Iterator[Entity]:
    """Find dates as ``yyyy-MM-dd``, or without the omitted parts: ``-MM-dd``, ``-dd``."""
    taken: list[Span] = []
    for match in (match for form in _DATES for match in form.finditer(text)):
        if all(match.end() <= start or match.start() >= end for start, end in taken):
            taken.append(match.span())
            parts = match.groupdict()
            month = f"-{_value(parts['month']):02}" if "month" in parts else ""
            yield Entity("date", f"{parts.get('year') or ''}{month}-{_value(match['day']):02}", *match.span())


def times_of_day(text: str) -> Iterator[Entity]:
    """Find times of day, as ``HH:mm``: 7:30, 7:30 pm, 下午三点半, 8 am."""
    for match in (match for form in _CLOCKS for match in form.finditer(text)):
        parts = match.groupdict()
        hour, minute = int(_value(match["h"]) or 0), 30 if parts.get("half") else int(parts.get("m") or 0)
        if match["part"] in _EVENING and hour < 12:
            hour += 12
        elif match["part"] in ("am", "凌晨") and hour == 12:
            hour = 0
        if hour < 24:
            yield Entity("time_of_day", f"{hour:02}:{minute:02}", *match.span())


def spans_from_now(text: str) -> Iterator[Entity]:
    """Find spans counted from now, as ISO-8601 durations: 10分钟以后, in half an hour, 2 hours from now."""
    for match in _FROM_NOW.finditer(text):
        total = sum(_seconds(part[0]) for part in _EACH.finditer(match["span"]))
        if total > 0 and (match["before"] or match["behind"]):
            yield Entity("duration", _iso(total), *match.span())


def _seconds(part: str) -> float:
    unit = next(size for word, size in _SECONDS.items() if re.search(word, part))
    halves = part.count("半") + part.startswith("half")
    amount = next((each.value for each in numbers(part)), 0.0 if halves else 1.0)
    return float((amount + 0.5 * halves) * unit)


def _iso(seconds: float) -> str:
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    return "PT" + "".join(f"{amount:g}{unit}" for amount, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if amount)


def _value(text: str) -> float | None:
    """Read a number; in Chinese characters, a mere row of digits is read digit by digit."""
    if text in _ENGLISH or text in _MONTHS:
        return _ENGLISH.get(text) or _MONTHS.get(text, 0)
    if text[-1].isascii():
        plain = text.replace(",", "")
        return float(plain) if "." in plain else int(plain)
    if not any(c in _UNITS for c in text):
        return int("".join(str(_DIGITS[c]) for c in text))
    total, below, digit = 0, 0, None
    for c in text:
        if c in _DIGITS:
            digit = _DIGITS[c]
        elif c == "万":
            total, below, digit = (below + (digit or 0)) * 10000, 0, None
        else:
            below, digit = below + (1 if digit is None else digit) * _UNITS[c], None
    return (total + below + (digit or 0)) or None
