"""The tool that sets an alarm."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.tools.alarms.alarms import AlarmStore, due_at
from app.user_clock import ZONE
from toolchat import ToolContext, tool


@dataclass(frozen=True, slots=True)
class AlarmSet:
    """The result of the tool."""

    description: str
    id: str
    time: str
    zone: str


class AlarmTools:
    """The tool ``setAlarm``: it writes, so only the route that requires an idempotency key offers it."""

    def __init__(self, alarms: AlarmStore) -> None:
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
        """Set an alarm for the caller; the same time requested twice is one alarm.

        Raises:
            ToolExecutionError: the time is invalid, past or too far ahead, or there are too many alarms.
            ToolchatError: see :class:`AlarmStore`.
        """
        order = context.get("order")
        alarm = await self._alarms.set(order, due_at(time, order.asked_at, ZONE))
        shown = alarm.at.astimezone(ZONE).isoformat(timespec="seconds")
        return AlarmSet(f"设置闹钟成功! {shown} ({ZONE.key})", alarm.id, shown, ZONE.key)
