"""The documents' tools: the date, an alarm, a weather with a fixed value, an order of a tenant."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.tool_calling.context import ToolContext
from app.tool_calling.function_callback import tool
from app.tools.examples.alarms import Alarm, AlarmStore
from app.tools.examples.moments import due_at
from app.tools.examples.settings import ExamplesSettings

__all__ = ["AlarmTools", "CurrentWeather", "DateTimeTools", "DirectOrderQuery", "OrderQuery"]

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIXED_CELSIUS = 30.0


@dataclass(frozen=True, slots=True)
class CurrentDateTime:
    """A moment as the user's clock and calendar show it."""

    date: str
    time: str
    weekday: str
    zone: str


class DateTimeTools:
    """The documents' ``DateTimeTools``, with the user's zone from the settings, never the machine's."""

    def __init__(self, settings: ExamplesSettings) -> None:
        self._settings = settings

    @tool(name="getCurrentDateTime", description="获取用户时区的当前日期和时间")
    async def get_current_date_time(self) -> CurrentDateTime:
        """Tell the date and the time."""
        return await self.get_current_date_time_without_annotation()

    async def get_current_date_time_without_annotation(self) -> CurrentDateTime:
        """The same, not marked as a tool: a definition of its own makes it one."""
        now = datetime.now(self._settings.time_zone)
        return CurrentDateTime(f"{now:%Y-%m-%d}", f"{now:%H:%M:%S}", _WEEKDAYS[now.weekday()], self._settings.zone)


@dataclass(frozen=True, slots=True)
class AlarmSet:
    """What the model is told of an alarm that has been set."""

    description: str
    id: str
    time: str
    zone: str

    @classmethod
    def of(cls, alarm: Alarm, settings: ExamplesSettings) -> "AlarmSet":
        """Put an alarm into words, in the user's zone."""
        time = alarm.at.astimezone(settings.time_zone).isoformat(timespec="seconds")
        return cls(f"设置闹钟成功! {time} ({settings.zone})", alarm.id, time, settings.zone)


class AlarmTools:
    """A tool that changes something: offered only where a request may have effects."""

    def __init__(self, settings: ExamplesSettings, alarms: AlarmStore) -> None:
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
        """
        order = context.get("order")
        alarm = self._alarms.set(order, *due_at(time, order.asked_at, self._settings.time_zone))
        order.alarms.append(alarm)
        return AlarmSet.of(alarm, self._settings)


class Unit(StrEnum):
    """Scale of a temperature."""

    C = "C"
    F = "F"


class WeatherRequest(BaseModel):
    """Where, and in which scale."""

    model_config = ConfigDict(extra="forbid")

    location: str = Field(description="Location, such as 杭州", min_length=1, max_length=100)
    unit: Unit = Field(Unit.C, description="Scale of the temperature: C or F")


@dataclass(frozen=True, slots=True)
class WeatherResponse:
    """The documents' fixed temperature; the description says that it is nothing else."""

    description: str
    temp: float
    unit: Unit


@tool(name="currentWeather", description="依据位置获取天气信息")
class CurrentWeather:
    """The documents' ``WeatherService``: 30 degrees Celsius, wherever it is asked about."""

    async def __call__(self, request: WeatherRequest) -> WeatherResponse:
        """Give the example value."""
        temp = _FIXED_CELSIUS if request.unit is Unit.C else _FIXED_CELSIUS * 9 / 5 + 32
        told = (
            f"{request.location} {temp:g}°{request.unit}，固定的示例值，不是真实天气 / a fixed example value, not real"
        )
        return WeatherResponse(told, temp, request.unit)


_OrderId = Annotated[int, Field(description="交易订单号", ge=0, le=2**63 - 1)]


class OrderQuery:
    """Orders; the tenant comes from the caller's context, never from the model."""

    @tool(name="getTradeOrderInfo", description="查询用户交易订单信息")
    async def get_trade_order_info(self, id: _OrderId, context: ToolContext) -> str:  # noqa: A002
        """Describe an order of the tenant."""
        return f"订单号:{id} 租户Id:{context.get('tenantId')}"


class DirectOrderQuery(OrderQuery):
    """The same tool; its result is the answer, and the model is not asked again."""

    @tool(name="getTradeOrderInfo", description="查询用户交易订单信息", return_direct=True)
    async def get_trade_order_info(self, id: _OrderId, context: ToolContext) -> str:  # noqa: A002
        """Describe an order of the tenant."""
        return await super().get_trade_order_info(id, context)
