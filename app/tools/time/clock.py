"""The machine's clock, read in a given time zone."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.immutable import immutable
from app.tools.time.zones import TimeZone, time_zone_of

__all__ = ["CityTime", "current_time", "described"]

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@immutable
class CityTime:
    """A moment as the clocks and calendars of a time zone show it."""

    description: Annotated[str, Field(title="说明 / description")]
    """One sentence with all of it, as the Java tool words it."""
    time_zone: Annotated[str, Field(title="时区 / time zone")]
    date: Annotated[str, Field(title="日期 / date")]
    """``yyyy-MM-dd``."""
    time: Annotated[str, Field(title="时间 / time")]
    """``HH:mm:ss``."""
    weekday: Annotated[str, Field(title="星期 / weekday")]
    utc_offset: Annotated[str, Field(title="与 UTC 的差 / UTC offset")]
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
