"""The user's time zone and the tool that returns the time in it; shared by several tool modules."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from zoneinfo import ZoneInfo

from pydantic import Field

from toolchat import ToolSettings, tool

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ZONE = ZoneInfo("Asia/Shanghai")
"""The user's time zone in the examples, as in the articles; never the machine's."""


class UserClockSettings(ToolSettings):
    """The one switch of the documents' examples."""

    env_prefix: ClassVar[str] = "EXAMPLES_"

    enabled: bool = Field(False, description="true adds the documents' examples and the alarms")


@dataclass(frozen=True, slots=True)
class CurrentDateTime:
    """A local time."""

    date: str
    time: str
    weekday: str
    zone: str


class DateTimeTools:
    """The documents' ``DateTimeTools``."""

    @tool(name="getCurrentDateTime", description="获取用户时区的当前日期和时间", read_only=True)
    async def get_current_date_time(self) -> CurrentDateTime:
        """Return the current date and time."""
        return await self.get_current_date_time_without_annotation()

    async def get_current_date_time_without_annotation(self) -> CurrentDateTime:
        """The same, but not marked as a tool: a route adds its definition."""
        now = datetime.now(ZONE)
        return CurrentDateTime(f"{now:%Y-%m-%d}", f"{now:%H:%M:%S}", _WEEKDAYS[now.weekday()], ZONE.key)
