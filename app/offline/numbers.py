"""Numbers, days, dates, times of day and spans of time in a folded text, and what they look like."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from app.offline.question import Found, Span, blanked

__all__ = ["LONGEST_FORECAST", "Days", "dates", "days_after", "days_in", "numbers", "spans_from_now", "times_of_day",
           "wanted_days"]  # fmt: skip

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
# A whole number that counts days or weeks; how a week is called; a day of it.
_TO_TEN = "one|two|three|four|five|six|seven|eight|nine|ten|fourteen"
_N = rf"(?:(?<![0-9.])(?<![^0-9]-)[0-9]{{1,9}}|[一二两兩三四五六七八九十百千]{{1,7}}|\b(?:a|{_TO_TEN})\b)"
_WEEK = r"(?:周|週|星期|礼拜)"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
# What says which days are meant, by its kind; several of a kind stand in one group.
_DAY = re.compile(
    rf"(?P<past>{_N} (?:day|week|month)s? ago\b|{_N}\s*[天日周][以之]?前|[昨前]天|昨[日晚]|上个?(?:月"
    rf"|{_WEEK})[一二三四五六日天末]?|过去(?:{_N}[天周])?|\byesterday\b|\b(?:last|past|previous) (?:(?:{_N} )?(?:day"
    rf"|week|month|year)s?|weekend|night|{_WEEKDAY})\b)|(?P<later>{_N}\s*天\s*[以之]?[后後]|\bin {_N} days?\b"
    rf"|{_N} days? (?:from now|later|ahead)\b)"
    r"|(?P<after>\b(?:the )?day after(?! tomorrow)\b|\b(?:the )?(?:next|following) day\b|再?后一天|第二天|再过一天"
    r"|隔天)|(?P<few>[近这]几天|(?:未来|接下来)几天|\b(?:the )?(?:next|coming) (?:few |couple of )?days\b)"
    r"|(?P<month>[个個]月|\bmonths?\b)"
    rf"|(?P<next_week>下个?{_WEEK}[一二三四五六日天末]?|\bnext (?:week(?:end)?|{_WEEKDAY})\b)|(?P<next>(?:未来"
    rf"|接下来)?{_N}\s*[天日](?!气)|(?:\bthe )?(?:\bnext )?{_N}[ -]days?\b)"
    rf"|(?P<weeks>{_N}? ?[个個]?{_WEEK}(?![一二三四五六日末几]|天(?!气))|(?:{_N}[ -]?)?\bweeks?\b)"
    r"|(?P<in_three>大[后後]天)|(?P<in_two>[后後]天|\b(?:the )?day after tomorrow\b)|(?P<tomorrow>明[天日早晚]"
    r"|\btomorrow\b|\btmr\b)|(?P<today>今[天日晚]|\btoday\b|\btonight\b)"
    rf"|(?P<this_week>[这本]?{_WEEK}(?:末|[一二三四五六日天](?!气))|\b(?:(?:this|the) )?weekend\b|\b(?:on "
    rf"|this )?{_WEEKDAY}\b)"
    r"|(?P<holiday>圣诞|元旦|春节|国庆|中秋|端午|清明|除夕|过年|[0-9一二三四五六七八九十]月(?:份|的|天)"
    r"|\b(?:christmas|easter|new year|thanksgiving|halloween|january|february|march|april|june|july|august|september"
    r"|october|november|december)\b)|(?P<now>现在|目前|\bright now\b|\bcurrently\b)"
)
# Days from today on that each kind needs; how far ahead the one day is that is meant.
LONGEST_FORECAST = 14
_NEEDED = {"few": 3, "this_week": 7, "next_week": LONGEST_FORECAST, "month": 31}
_AHEAD = {"now": 0, "today": 0, "tomorrow": 1, "in_two": 2, "in_three": 3}
# Days of the week as they are named; the last way to name Sunday is 星期天.
_DAYS_OF_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HAN_DAYS_OF_WEEK = "一二三四五六日天"
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
    rf"|{_TO_TEN}|fifteen|twenty|thirty)"
)
_UNIT = r"(?:秒钟?|分钟?|小时|钟头|天(?!气)|(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?)\b)"
_PART = rf"(?:{_AMOUNT} ?[个個]? ?半?|半 ?[个個]?) ?{_UNIT}(?:半(?!径))?"
_FROM_NOW = re.compile(
    rf"(?P<before>\bin |[过過再])?(?P<span>{_PART}(?: ?(?:and|零|又)? ?{_PART}){{0,3}})"
    r"(?P<behind> ?[以之]?[后後]| (?:from now|later)\b)?"
)
_EACH = re.compile(_PART)
_SECONDS = {"秒|sec": 1, "分|min": 60, "小时|钟头|hour|hr": 3600, "天|day": 86400}


@dataclass(frozen=True, slots=True)
class Days:
    """Which days a question is about."""

    kind: str
    """How they are said: ``past``, ``holiday``, ``date`` and others."""
    count: int = 0
    """Days from today on that are needed, today included; 0 where that cannot be known."""
    offset: int | None = None
    """The one day that is meant, counted from today."""
    first: str = ""
    """The first day that is meant, as ``yyyy-MM-dd`` or as what that ends with; then the last one."""
    last: str = ""
    weekdays: Sequence[int] = ()
    """The days of a week that are meant, 0 for Monday; then in which weeks, 0 for the present one."""
    weeks: Sequence[int] = ()

    @property
    def are_certain(self) -> bool:
        """Whether only certain days of those that are needed are meant."""
        return self.offset is not None or bool(self.first or self.weekdays)

    def include(self, day: date, today: date) -> bool:
        """Whether a day is meant by who speaks today."""
        ahead = (day - today).days
        if self.first:
            return self.first <= day.isoformat()[-len(self.first) :] <= self.last
        if self.weekdays:
            week = (today.weekday() + ahead) // 7
            return 0 <= ahead < self.count and week in self.weeks and day.weekday() in self.weekdays
        return self.offset in (None, ahead)


def numbers(text: str) -> Iterator[Found]:
    """Find the numbers: an ``int`` where one is whole."""
    for match in _NUMBER.finditer(text):
        value = _value(match[0])
        if value is not None:
            yield Found("number", value, *match.span())


def days_in(text: str) -> Iterator[Found]:
    """Find what says which days are meant: tomorrow needs two days of a forecast and is the second of them."""
    on_dates = list(dates(text))
    for each in on_dates:
        yield Found("day", Days("date", first=each.value, last=each.value), *each.span)
    for match in _DAY.finditer(blanked(text, [each.span for each in on_dates])):
        yield Found("day", _days(str(match.lastgroup), match[0]), *match.span())


def wanted_days(found: Iterable[Found]) -> list[Days]:
    """All that is said about days; of two dates one is the first and the other the last that is meant."""
    telling = [each.value for each in found if each.value.count or each.value.first]
    telling = [each for each in telling if each.kind != "now"] or telling[:1]
    on_dates = sorted(each.first for each in telling if each.first)
    in_range = [Days("date", first=on_dates[0], last=on_dates[-1])] if on_dates else []
    return in_range + [each for each in telling if not each.first]


def days_after(found: Iterable[Found]) -> Days:
    """The day after the one that is meant, or after today."""
    ahead = next((each.offset for each in wanted_days(found) if each.offset is not None), 0) + 1
    return Days("later", ahead + 1, ahead)


def dates(text: str) -> Iterator[Found]:
    """Find dates, as ``yyyy-MM-dd``, or without what is not said: ``-MM-dd``, ``-dd``."""
    taken: list[Span] = []
    for match in (match for form in _DATES for match in form.finditer(text)):
        if all(match.end() <= start or match.start() >= end for start, end in taken):
            taken.append(match.span())
            parts = match.groupdict()
            month = f"-{_value(parts['month']):02}" if "month" in parts else ""
            yield Found("date", f"{parts.get('year') or ''}{month}-{_value(match['day']):02}", *match.span())


def times_of_day(text: str) -> Iterator[Found]:
    """Find times of day, as ``HH:mm``: 7:30, 7:30 pm, 下午三点半, 8 am."""
    for match in (match for form in _CLOCKS for match in form.finditer(text)):
        parts = match.groupdict()
        hour, minute = int(_value(match["h"]) or 0), 30 if parts.get("half") else int(parts.get("m") or 0)
        if match["part"] in _EVENING and hour < 12:
            hour += 12
        elif match["part"] in ("am", "凌晨") and hour == 12:
            hour = 0
        if hour < 24:
            yield Found("time_of_day", f"{hour:02}:{minute:02}", *match.span())


def spans_from_now(text: str) -> Iterator[Found]:
    """Find spans counted from now, as ISO-8601 durations: 10分钟以后, in half an hour, 2 hours from now."""
    for match in _FROM_NOW.finditer(text):
        total = sum(_seconds(part[0]) for part in _EACH.finditer(match["span"]))
        if total > 0 and (match["before"] or match["behind"]):
            yield Found("duration", _iso(total), *match.span())


def _days(kind: str, text: str) -> Days:
    number = next((int(each.value) for each in numbers(text)), 1)
    if kind == "later":
        return Days(kind, number + 1, number)
    if kind in ("next", "weeks"):
        return Days(kind, max(number, 1) * (7 if kind == "weeks" else 1))
    if kind in _AHEAD:
        return Days(kind, _AHEAD[kind] + 1, _AHEAD[kind])
    if kind in ("this_week", "next_week"):
        return Days(kind, _NEEDED[kind], weekdays=_weekdays(text), weeks=_weeks(kind, text))
    return Days(kind, _NEEDED.get(kind, 0))


def _weekdays(text: str) -> Sequence[int]:
    if "末" in text or "weekend" in text:
        return (5, 6)
    named = [n for n, name in enumerate(_DAYS_OF_WEEK) if name in text]
    named += [min(n, 6) for n, name in enumerate(_HAN_DAYS_OF_WEEK) if text.endswith(name)]
    return named or range(7)


def _weeks(kind: str, text: str) -> Sequence[int]:
    """A weekend belongs to its week; "Friday" is the coming one, and "next Friday" that one or the one after."""
    if kind == "this_week":
        return (0,) if _weekdays(text) == (5, 6) else (0, 1)
    return (0, 1) if text.endswith("day") else (1,)


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
