"""Results that show a clock, as a sentence."""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

__all__ = ["clock_sentence"]

_ZONES = ("time_zone", "timeZone", "timezone", "zone", "tz", "time_zone_id", "timeZoneId")
_OFFSETS = ("utc_offset", "utcOffset", "offset")
_KNOWN = {*_ZONES, *_OFFSETS, "date", "time", "weekday", "description", "datetime", "iso", "day_of_week", "city"}
_CHINESE_DAYS = "一二三四五六日"
_ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHINESE_LATER = {1: "明天", 2: "后天", 3: "大后天"}
_ENGLISH_LATER = {1: "Tomorrow", 2: "The day after tomorrow"}
_FARTHEST = 366
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def clock_sentence(value: Mapping[str, Any], chinese: bool, place: str | None, ahead: int = 0) -> str | None:
    """Tell the time when a result is a date, a time and a time zone and nothing else; ``None`` otherwise.

    A question about a later day gets that day's date and weekday too: ``ahead`` is its distance in days.
    """
    zone = next((value[key] for key in _ZONES if isinstance(value.get(key), str)), None)
    day, time = _date(value.get("date")), value.get("time")
    if zone is None or day is None or not _is_time(time) or not _KNOWN.issuperset(value):
        return None
    offset = next((value[key] for key in _OFFSETS if isinstance(value.get(key), str)), "")
    where = zone if not offset or offset in zone else f"{zone}{'，' if chinese else ', '}UTC{offset}"
    if chinese:
        weekday = f"星期{_CHINESE_DAYS[day.weekday()]}"
        spaced = f"{place} 现在是" if place and place[-1].isascii() else f"{place or ''}现在是"
        today = f"{day.year}年{day.month}月{day.day}日 {weekday}"
        return f"{spaced} {today} {time}（时区 {where}）。{_later(day, ahead, chinese)}"
    told = f"{time} on {_ENGLISH_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"
    later = _later(day, ahead, chinese)
    return f"In {place} it is {told} ({where}).{later}" if place else f"It is {told} ({where}).{later}"


def _later(today: date, ahead: int, chinese: bool) -> str:
    if not 0 < ahead <= _FARTHEST or today > date(9990, 1, 1):
        return ""
    day = today + timedelta(days=ahead)
    if chinese:
        named = _CHINESE_LATER.get(ahead, f"{ahead}天后")
        return f"{named}是{day.year}年{day.month}月{day.day}日，星期{_CHINESE_DAYS[day.weekday()]}。"
    named = _ENGLISH_LATER.get(ahead, f"In {ahead} days it")
    return f" {named} is {_ENGLISH_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}."


def _date(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", value) is not None
