"""Days that a question names, counted from the first day of a result."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from app.offline.numerals import NUMERAL, read_number

__all__ = ["Days", "find_days"]

_WEEKDAY, _WEEK = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day", r"(?:周|星期|礼拜)"
# What is named, by its kind; the first form that fits counts.
_FORMS = {
    "unknown": rf"\byesterday\b|\b(?:last|past|previous) (?:\w+ )?(?:nights?|days?|weeks?|weekend|months?|years?"
    rf"|{_WEEKDAY})\b|\b\w+ "
    r"(?:days?|weeks?|months?|years?) ago\b|昨[天日晚]|(?<!大)前天|上个?(?:周|星期|礼拜|月)[一二三四五六日天末]?"
    r"|去年|过去[^天]{0,3}天|"
    rf"{NUMERAL}\s*(?:天|周|个月|年)[以之]?前|\bnext (?:month|year)\b|\b(?:christmas|easter|new year|thanksgiving"
    rf"|halloween)\b"
    r"|下个?月|明年|春节|国庆节?|圣诞节?|元旦|中秋节?|一个月|\b(?:a|one) month\b"
    r"|[0-9一二三四五六七八九十]+月份?(?![0-9一二三四五六七八九十])"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b",
    "in_two": r"\b(?:the )?day after tomorrow\b|(?<!大)后天",
    "in_three": r"大后天",
    "both": r"明后两?天",
    "tomorrow": r"\btomorrow\b|\btmrw?\b|明[天日早晚]",
    "today": r"\btoday\b|\btonight\b|今[天日晚]",
    "after": r"\b(?:the )?(?:day after|(?:next|following) day)\b|第二天|再?后一天",
    "later": rf"\bin {NUMERAL} days?\b|{NUMERAL} days? (?:from now|later|ahead)\b|{NUMERAL}\s*天[以之]?后",
    "few": r"\b(?:the )?(?:next|coming) (?:few |couple of )?days\b|[近这未来接下]{1,3}几天|几天",
    "next_end": r"下个?周末|\bnext weekend\b",
    "end": r"(?:这个?|本)?周末|\b(?:this |the )?(?:coming )?weekend\b",
    "next_weekday": rf"下个?{_WEEK}[一二三四五六日天](?!气)|\bnext {_WEEKDAY}\b",
    "weekday": rf"(?:这个?|本)?{_WEEK}[一二三四五六日天](?!气)|\b(?:on |this )?{_WEEKDAY}s?\b",
    "next_week": r"下个?(?:周|星期|礼拜)|\bnext week\b",
    "weeks": rf"(?:{NUMERAL}\s*个?|这个?|本)(?:周|星期|礼拜)|(?:{NUMERAL}|\b(?:this|a))[ -]weeks?\b",
    "span": rf"(?:未来|接下来)?{NUMERAL}\s*[天日](?!气)|(?:\b(?:the )?next )?{NUMERAL}[ -]days?\b",
}
_PATTERN = re.compile("|".join(f"(?P<{kind}>{form})" for kind, form in _FORMS.items()))
_FIXED = {"today": (0, 0), "tomorrow": (1, 1), "in_two": (2, 2), "in_three": (3, 3), "both": (1, 2), "few": (0, 2)}


@dataclass(frozen=True, slots=True)
class Days:
    """The days that one phrase names.

    Args:
        first, last: Counted from the first day of a result; -1 as the last one if the past or a feast is named.
        weekdays: Only these days of the week, 0 for Monday; those of the next week if ``first`` is not 0.
        on: Instead of all these a date as ``yyyy-mm-dd``, or its end.
        is_relative: Whether it counts from the days of the question before: "the day after".
    """

    first: int = 0
    last: int = -1
    weekdays: tuple[int, ...] = ()
    on: str = ""
    is_relative: bool = False

    @property
    def is_part(self) -> bool:
        """Whether a forecast that holds the days also holds others."""
        return bool(self.first or self.weekdays or self.on or self.last == 0)

    def include(self, day: date, today: date) -> bool:
        """Whether a day is among them, if the result begins with ``today``."""
        ahead = (day - today).days
        if self.on:
            return day.isoformat().endswith(self.on)
        is_week = (
            (today.weekday() + ahead) // 7 == 1 if self.weekdays and self.first else self.first <= ahead <= self.last
        )
        return is_week and day.weekday() in (self.weekdays or range(7))


def find_days(text: str) -> Iterator[tuple[Days, int, int]]:
    """Find the phrases for days in a folded text, each with its position."""
    for match in _PATTERN.finditer(text):
        yield _days(str(match.lastgroup), match[0]), *match.span()


def _days(kind: str, phrase: str) -> Days:
    if kind in _FIXED or kind == "unknown":
        return Days(*_FIXED.get(kind, (0, -1)))
    if kind == "after":
        return Days(1, 1, is_relative=True)
    if kind in ("end", "weekday"):
        return Days(0, 6, (5, 6) if kind == "end" else _weekday(phrase))
    if kind.startswith("next"):
        return Days(1, 13, {"next_end": (5, 6), "next_week": tuple(range(7))}.get(kind) or _weekday(phrase))
    numeral = re.search(NUMERAL, phrase)
    count = int(read_number(numeral[0])) if numeral else 1
    return Days(count, count) if kind == "later" else Days(0, count * (7 if kind == "weeks" else 1) - 1)


def _weekday(phrase: str) -> tuple[int, ...]:
    english = re.search(r"\b(mon|tue|wed|thu|fri|sat|sun)", phrase)
    names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    return (names.index(english[1]),) if english else (min("一二三四五六日天".index(phrase[-1]), 6),)
