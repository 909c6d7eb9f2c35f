"""The machine's clock, read in a given time zone."""

from dataclasses import dataclass
from datetime import datetime

from app.tools.time.zones import TimeZone, time_zone_of

__all__ = ["CityTime", "current_time", "described"]

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class CityTime:
    """A moment as the clocks and calendars of a time zone show it."""

    description: str
    """One sentence with all of it, as the Java tool words it."""
    time_zone: str
    date: str
    """``yyyy-MM-dd``."""
    time: str
    """``HH:mm:ss``."""
    weekday: str
    utc_offset: str
    """Such as ``+08:00``: abbreviations like ``CST`` have several meanings, this has one."""


def current_time(time_zone_id: str) -> CityTime:
    """Tell the time in a zone.

    Raises:
        ToolExecutionError: no such zone; the hint names the nearest ones.
    """
    zone = time_zone_of(time_zone_id)
    return described(zone, datetime.now(zone.rules))


def described(zone: TimeZone, moment: datetime) -> CityTime:
    """Put a moment, given in the zone, into words."""
    text = moment.isoformat(" ", "seconds")
    date, time, offset = text[:10], text[11:19], text[19:]
    return CityTime(
        description=f"The current time zone is {zone.name} and the current time is {date} {time} {moment.tzname()}",
        time_zone=zone.name,
        date=date,
        time=time,
        weekday=_WEEKDAYS[moment.weekday()],
        utc_offset=offset,
    )
