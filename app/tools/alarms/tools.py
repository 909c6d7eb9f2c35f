"""The tool that sets an alarm."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.tools.alarms.alarms import Alarm, AlarmStore, due_at
from app.tools.user_clock import UserClockSettings
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.function_callback import tool

__all__ = ["AlarmTools", "AlarmsSettings"]


class AlarmsSettings(UserClockSettings):
    """Whether a GET may set an alarm as in the documents; the variables are those of the examples."""

    alarm_by_get: bool = Field(
        False, description="GET /tool/alarm sets alarms as in the documents, guarded; else only POST does"
    )


@dataclass(frozen=True, slots=True)
class AlarmSet:
    """What the model is told of an alarm that has been set."""

    description: str
    id: str
    time: str
    zone: str

    @classmethod
    def of(cls, alarm: Alarm, settings: AlarmsSettings) -> "AlarmSet":
        """Put an alarm into words, in the user's zone."""
        time = alarm.at.astimezone(settings.time_zone).isoformat(timespec="seconds")
        return cls(f"设置闹钟成功! {time} ({settings.zone})", alarm.id, time, settings.zone)


class AlarmTools:
    """A tool that changes something: offered only where a request may have effects."""

    def __init__(self, settings: AlarmsSettings, alarms: AlarmStore) -> None:
        self._settings = settings
        self._alarms = alarms

    @tool(name="setAlarm", description="为用户设置闹钟，时间参数需为ISO-8601格式")
    async def set_alarm(
        self,
        time: Annotated[
            str,
            Field(
                description="ISO-8601 date and time such as 2030-01-31T07:30:00+08:00, without an offset in the user's "
                "zone; or an ISO-8601 duration from now such as PT10M",
                max_length=64,
            ),
        ],
        context: ToolContext,
    ) -> AlarmSet:
        """Set an alarm for whoever asks; the same moment asked for twice is one alarm.

        Raises:
            ToolExecutionError: the time cannot be read, is past or too far ahead, or there are too many alarms.
            ToolchatError: as :class:`AlarmStore` says.
        """
        order = context.get("order")
        alarm = await self._alarms.set(order, *due_at(time, order.asked_at, self._settings.time_zone))
        return AlarmSet.of(alarm, self._settings)
