"""Spans of time from now on in a folded text: 10分钟以后, in half an hour, 2 hours from now."""

import re
from collections.abc import Iterator

from app.chat_models.offline.numbers import numbers

__all__ = ["durations"]

_SECONDS = (
    (1, re.compile(r"秒|second|sec\b")),
    (60, re.compile(r"分|minute|min\b")),
    (3600, re.compile(r"小时|小時|钟头|鐘頭|hour|hr\b")),
    (86400, re.compile(r"天|day")),
)
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
_LATER = re.compile(
    rf"(?P<chinese>{_SPAN}) ?(?:以后|之后|以後|之後|后|後)|\bin (?P<ahead>{_SPAN})"
    rf"|(?P<behind>{_SPAN}) (?:from now|later)\b|[过過再](?P<passing>{_SPAN})"
)
_EACH = re.compile(_PART)
_WORDS = {"fifteen": 15.0, "twenty": 20.0, "thirty": 30.0}


def durations(text: str) -> Iterator[str]:
    """Find spans counted from now, as ISO-8601 durations."""
    for match in _LATER.finditer(text):
        span = next(group for group in match.groups() if group)
        total = sum(_seconds(part[0]) for part in _EACH.finditer(span))
        if total > 0:
            yield _iso(total)


def _seconds(part: str) -> float:
    unit = next(size for size, word in _SECONDS if word.search(part))
    halves = part.count("半") + part.startswith("half")
    word = next((value for name, value in _WORDS.items() if part.startswith(name)), None)
    found = next((each.value for each in numbers(part)), None)
    amount = word if word is not None else found
    if amount is None:
        amount = 0.0 if halves else 1.0
    return (amount + 0.5 * halves) * unit


def _iso(seconds: float) -> str:
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    shown = [(hours, "H"), (minutes, "M"), (rest, "S")]
    return "PT" + "".join(f"{amount:g}{unit}" if unit == "S" else f"{amount}{unit}" for amount, unit in shown if amount)
