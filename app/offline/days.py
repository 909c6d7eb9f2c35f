"""Days that a question asks about: relative to today, or by the dates of a result."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from app.offline.numbers import TO_TEN, dates, numbers
from app.offline.question import Entity, blank_out

__all__ = ["LONGEST_FORECAST", "Days", "days_after", "days_in", "wanted_days"]

# A whole number that counts days or weeks; how a week is called; a day of it.
_N = rf"(?:(?<![0-9.])(?<![^0-9]-)[0-9]{{1,9}}|[一二两兩三四五六七八九十百千]{{1,7}}|\b(?:a|{TO_TEN})\b)"
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


@dataclass(frozen=True, slots=True)
class Days:
    """The days that a question asks about."""

    kind: str
    """How the question names them: ``past``, ``holiday``, ``date`` and others."""
    count: int = 0
    """Days of a forecast that are needed, today included; 0 if unknown."""
    offset: int | None = None
    """The one requested day, counted from today."""
    first: str = ""
    """The first requested day, as ``yyyy-MM-dd`` or a suffix of it; ``last`` is the last one."""
    last: str = ""
    weekdays: Sequence[int] = ()
    """The requested days of the week, 0 for Monday; ``weeks``: of which weeks, 0 for this one."""
    weeks: Sequence[int] = ()

    @property
    def are_certain(self) -> bool:
        """Whether the question asks about some of the needed days only."""
        return self.offset is not None or bool(self.first or self.weekdays)

    def include(self, day: date, today: date) -> bool:
        """Whether a day is among them, if the question was asked on ``today``."""
        ahead = (day - today).days
        if self.first:
            return self.first <= day.isoformat()[-len(self.first) :] <= self.last
        if self.weekdays:
            week = (today.weekday() + ahead) // 7
            return 0 <= ahead < self.count and week in self.weeks and day.weekday() in self.weekdays
        return self.offset in (None, ahead)


def days_in(text: str) -> Iterator[Entity]:
    """Find mentions of days: tomorrow needs two days of a forecast and is the second of them."""
    on_dates = list(dates(text))
    for each in on_dates:
        yield Entity("day", Days("date", first=each.value, last=each.value), *each.span)
    for match in _DAY.finditer(blank_out(text, [each.span for each in on_dates])):
        yield Entity("day", _days(str(match.lastgroup), match[0]), *match.span())


def wanted_days(found: Iterable[Entity]) -> list[Days]:
    """The days of all mentions; two dates are the first and the last day of a range."""
    telling = [each.value for each in found if each.value.count or each.value.first]
    telling = [each for each in telling if each.kind != "now"] or telling[:1]
    on_dates = sorted(each.first for each in telling if each.first)
    in_range = [Days("date", first=on_dates[0], last=on_dates[-1])] if on_dates else []
    return in_range + [each for each in telling if not each.first]


def days_after(found: Iterable[Entity]) -> Days:
    """The day after the requested one, or after today."""
    ahead = next((each.offset for each in wanted_days(found) if each.offset is not None), 0) + 1
    return Days("later", ahead + 1, ahead)


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
