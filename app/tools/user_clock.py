"""The user's time zone and the tool that returns the time in it; shared by several tool modules."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from app.gazetteer.gazetteer import zone_ids
from toolchat import ToolSettings, tool

__all__ = ["DateTimeTools", "UserClockSettings"]

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _known_zone(value: str) -> str:
    if value not in zone_ids():
        raise ValueError("must be an IANA time-zone id such as Asia/Shanghai")
    return value


class UserClockSettings(ToolSettings):
    """The user's time zone; the documents' examples share it, and one switch."""

    env_prefix: ClassVar[str] = "EXAMPLES_"
    is_local_only: ClassVar[bool] = True

    enabled: bool = Field(
        True, description="false turns the examples and the alarms off; default: on if this machine is the only client"
    )

    zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        "Asia/Shanghai", description="The user's time zone in the examples, an IANA id"
    )

    @property
    def time_zone(self) -> ZoneInfo:
        """The rules of the user's time zone."""
        return ZoneInfo(self.zone)


@dataclass(frozen=True, slots=True)
class CurrentDateTime:
    """A local time."""

    date: str
    time: str
    weekday: str
    zone: str


class DateTimeTools:
    """The documents' ``DateTimeTools``, with the user's zone from the settings, never the machine's."""

    def __init__(self, settings: UserClockSettings) -> None:
        self._settings = settings

    @tool(name="getCurrentDateTime", description="获取用户时区的当前日期和时间", read_only=True)
    async def get_current_date_time(self) -> CurrentDateTime:
        """Return the current date and time."""
        return await self.get_current_date_time_without_annotation()

    async def get_current_date_time_without_annotation(self) -> CurrentDateTime:
        """The same, but not marked as a tool: a route adds its definition."""
        now = datetime.now(self._settings.time_zone)
        return CurrentDateTime(f"{now:%Y-%m-%d}", f"{now:%H:%M:%S}", _WEEKDAYS[now.weekday()], self._settings.zone)
