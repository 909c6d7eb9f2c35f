"""Days that a question names, counted from the first day of a result, and the numerals in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

__all__ = ["NUMBER_WORDS", "NUMERAL", "Days", "find_days", "read_number"]

_DIGITS = {digit: n for n, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "": 0}
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBER_WORDS = {word: n for n, word in enumerate(_SMALL)} | {"twenty": 20, "thirty": 30}
NUMERAL = (
    rf"(?:(?<![-.0-9第])[0-9]{{1,9}}|(?<!第)(?:[二三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])(?![百千万半])"
    rf"|\b(?:an?|{'|'.join(NUMBER_WORDS)})\b)"
)
"""A whole number that counts something; "a" is one."""
_NAMES, _HAN = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"), "一二三四五六日"
# What is named, by its kind; the first form that fits counts.
_FORMS = {
    "2": r"\b(?:the )?day after tomorrow\b|(?<!大)后天",
    "1": r"\btomorrow\b|明天",
    "0": r"\btoday\b|\btonight\b|今[天日晚]",
    "later": rf"\bin {NUMERAL} days?\b|{NUMERAL}\s*天[以之]?后",
    "end": r"(?<![下上个])(?:这个?|本)?周末|\b(?:on )?(?:this |the )?weekend\b",
    "weekday": rf"(?<![下上个])(?:这个?|本)?(?:周|星期)(?P<w>[{_HAN}])(?!气)"
    rf"|\b(?:on |this )?(?P<e>{'|'.join(_NAMES)})day\b",
    "span": rf"(?:未来|接下来)?{NUMERAL}\s*天(?!气)|\b(?:(?:the )?next )?{NUMERAL}[ -]days?\b",
}
_PATTERN = re.compile("|".join(f"(?P<_{kind}>{form})" for kind, form in _FORMS.items()))


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


def find_days(text: str) -> Iterator[tuple[Days, int, int]]:
    """Find the phrases for days in a folded text, each with its position."""
    for match in _PATTERN.finditer(text):
        kind = next(each for each in _FORMS if match[f"_{each}"])
        yield replace(_days(kind, match), phrase=match[0]), *match.span()


def _days(kind: str, match: re.Match[str]) -> Days:
    if kind.isdecimal():
        return Days(int(kind), int(kind))
    if kind in ("end", "weekday"):
        day = _HAN.index(match["w"]) if match["w"] else _NAMES.index(match["e"]) if match["e"] else None
        return Days(0, 6, (5, 6) if day is None else (day,))
    numeral = re.search(NUMERAL, match[0])
    count = int(read_number(numeral[0])) if numeral else 1
    return Days(count, count) if kind == "later" else Days(0, count - 1)


def read_number(text: str) -> float:
    """The value of a numeral; a whole one is an ``int``."""
    if text[-1].isascii():
        plain = text.replace(",", "")
        return NUMBER_WORDS.get(plain, 1) if plain.isalpha() else float(plain) if "." in plain else int(plain)
    tens, ten, ones = text.rpartition("十")
    return 10 * (_DIGITS[tens] or 1) * bool(ten) + _DIGITS[ones]
