"""Time zones: parse the ids and offsets that models write, and describe the current time in a zone.

The parser accepts the same as Java's ``ZoneId.of`` (ids of the tz database, ``Z``, ``UTC+8``, ``+08:00``) and ignores
the case and the width of characters. City names and abbreviations
are rejected, because ``CST`` is a zone in China, in the United States and in Cuba; the refusal names the nearest ids.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from app.places.gazetteer import find_place, place_in, place_names, zones_in_lower_case
from toolchat import ToolAnswer, ToolExecutionError
from toolchat.tool_calling.text_normalization import fold

_LONGEST_ID = 64
_LARGEST_OFFSET = timedelta(hours=18)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OFFSET = re.compile(r"(UTC|GMT|UT|) ?([+-])(?:([0-9]{1,2})(?::([0-5][0-9]))?|([0-9]{2})([0-5][0-9]))")
_ABBREVIATIONS = {
    "CST": ("Asia/Shanghai", "America/Chicago", "America/Havana"),
    "CDT": ("America/Chicago", "America/Havana"),
    "PST": ("America/Los_Angeles",),
    "PDT": ("America/Los_Angeles",),
    "MDT": ("America/Denver",),
    "EDT": ("America/New_York",),
    "AKST": ("America/Anchorage",),
    "AST": ("America/Halifax", "Asia/Riyadh"),
    "BRT": ("America/Sao_Paulo",),
    "BST": ("Europe/London", "Asia/Dhaka"),
    "CEST": ("Europe/Berlin", "Europe/Paris"),
    "EEST": ("Europe/Kyiv", "Europe/Athens"),
    "MSK": ("Europe/Moscow",),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "HKT": ("Asia/Hong_Kong",),
    "SGT": ("Asia/Singapore",),
    "ICT": ("Asia/Bangkok",),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AEDT": ("Australia/Sydney",),
    "AWST": ("Australia/Perth",),
    "ACST": ("Australia/Adelaide", "Australia/Darwin"),
    "NZST": ("Pacific/Auckland",),
    "NZDT": ("Pacific/Auckland",),
    "SAST": ("Africa/Johannesburg",),
}


def time_zone_of(text: str) -> tzinfo:
    """Parse a time-zone id or an offset of up to 18 hours; ``str`` of the zone is the name that answers show.

    Raises:
        ToolExecutionError: the text is neither (``unknown-time-zone``).
    """
    name = unicodedata.normalize("NFKC", text[: _LONGEST_ID + 1]).replace("\N{MINUS SIGN}", "-").strip()
    # ZoneInfo opens a file of that name, so only known ids may reach it; models also write asia/shanghai.
    known = zones_in_lower_case().get(name.lower()) if len(text) <= _LONGEST_ID else None
    if known is not None:
        return ZoneInfo(known)
    zone = _fixed(name.upper())
    if zone is None:
        raise _unknown(text)
    return zone


def nearest_ids(text: str) -> tuple[str, ...]:
    """Suggest up to three zone ids for a text that is not one, the most likely first."""
    text = text[:_LONGEST_ID].strip()
    if text.upper() in _ABBREVIATIONS:
        return _ABBREVIATIONS[text.upper()]
    place = find_place(text) or find_place(text.rpartition("/")[2]) or place_in(text)
    if place is not None:
        return (place.zone,)
    import difflib  # imported late: most processes never need it

    key = fold(text).replace(" ", "_")
    misspelt = not any(map(str.isdigit, key))
    close = difflib.get_close_matches(key, _candidates(), n=6, cutoff=0.8) if misspelt else []
    return tuple(dict.fromkeys(_candidates()[each] for each in close))[:3]


def _fixed(name: str) -> timezone | None:
    if name in ("Z", "UT"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is None:
        return None
    prefix, sign, hours, minutes, hh, mm = match.groups()
    size = timedelta(hours=int(hours or hh), minutes=int(minutes or mm or 0))
    if size > _LARGEST_OFFSET:
        return None
    if not size:
        return UTC
    offset = size if sign == "+" else -size
    return timezone(offset, (prefix or "UTC") + str(timezone(offset)).removeprefix("UTC"))


def _unknown(text: str) -> ToolExecutionError:
    shown = f"{text[:_LONGEST_ID]!r}{'...' if len(text) > _LONGEST_ID else ''}"
    near = nearest_ids(text)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return ToolExecutionError(
        f"unknown time zone {shown}",
        kind="unknown-time-zone",
        hint=f"{meant}use an IANA id such as Asia/Shanghai, or an offset such as UTC+08:00",
    )


@cache
def _candidates() -> dict[str, str]:
    """Map ids and place names in lower case to zone ids."""
    names = {name.replace(" ", "_"): zone for name, zone in place_names().items() if name.isascii()}
    return names | zones_in_lower_case()


@dataclass(frozen=True, slots=True)
class CityTime:
    """A local time, as clients get it."""

    time_zone: Annotated[str, Field(title="时区 / time zone")]
    date: Annotated[str, Field(title="日期 / date")]
    """``yyyy-MM-dd``."""
    time: Annotated[str, Field(title="时间 / time")]
    """``HH:mm:ss``."""
    weekday: Annotated[str, Field(title="星期 / weekday")]
    utc_offset: Annotated[str, Field(title="与 UTC 的差 / UTC offset")]
    """Such as ``+08:00``: abbreviations like ``CST`` have several meanings, this has one."""


def current_time(time_zone_id: str) -> ToolAnswer[CityTime]:
    """Return the current time in a zone.

    Raises:
        ToolExecutionError: there is no such zone; the hint suggests similar ones.
    """
    zone = time_zone_of(time_zone_id)
    return described(zone, datetime.now(zone))


def described(zone: tzinfo, moment: datetime) -> ToolAnswer[CityTime]:
    """Describe a local time: for the model in the sentence of the Java tool, with the weekday and the offset."""
    stamp = moment.isoformat(" ", "seconds")
    data = CityTime(str(zone), stamp[:10], stamp[11:19], _WEEKDAYS[moment.weekday()], stamp[19:])
    now = f"{data.date} {data.time} {moment.tzname()} ({data.weekday}, UTC{data.utc_offset})"
    return ToolAnswer(f"The current time zone is {zone} and the current time is {now}", data)
