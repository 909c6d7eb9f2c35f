"""Results that show a clock, as a sentence."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

__all__ = ["clock_sentence"]

_ZONES = ("time_zone", "timeZone", "timezone", "zone", "tz", "time_zone_id", "timeZoneId")
_OFFSETS = ("utc_offset", "utcOffset", "offset")
_KNOWN = {*_ZONES, *_OFFSETS, "date", "time", "weekday", "description", "datetime", "iso", "day_of_week", "city"}
_CHINESE_DAYS = "一二三四五六日"
_ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def clock_sentence(value: Mapping[str, Any], chinese: bool, place: str | None) -> str | None:
    """Tell the time when a result is a date, a time and a time zone and nothing else; ``None`` otherwise."""
    zone = next((value[key] for key in _ZONES if isinstance(value.get(key), str)), None)
    day, time = _date(value.get("date")), value.get("time")
    if zone is None or day is None or not _is_time(time) or not _KNOWN.issuperset(value):
        return None
    offset = next((value[key] for key in _OFFSETS if isinstance(value.get(key), str)), "")
    where = zone if not offset or offset in zone else f"{zone}{'，' if chinese else ', '}UTC{offset}"
    if chinese:
        weekday = f"星期{_CHINESE_DAYS[day.weekday()]}"
        spaced = f"{place} 现在是" if place and place[-1].isascii() else f"{place or ''}现在是"
        return f"{spaced} {day.year}年{day.month}月{day.day}日 {weekday} {time}（时区 {where}）。"
    told = f"{time} on {_ENGLISH_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"
    return f"In {place} it is {told} ({where})." if place else f"It is {told} ({where})."


def _date(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", value) is not None
