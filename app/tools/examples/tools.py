"""The documents' tools: a weather with a fixed value, an order of a tenant."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.places.recognizers import find_city
from toolchat import Recognizer, ToolContext, tool

_FIXED_CELSIUS = 30.0


class Unit(StrEnum):
    """Scale of a temperature."""

    C = "C"
    F = "F"


class WeatherRequest(BaseModel):
    """Where, and in which scale."""

    model_config = ConfigDict(extra="forbid")

    location: Annotated[str, Recognizer(find_city)] = Field(
        description="Location, such as 杭州", min_length=1, max_length=100
    )
    unit: Unit = Field(Unit.C, description="Scale of the temperature: C or F")


@dataclass(frozen=True, slots=True)
class WeatherResponse:
    """The documents' fixed temperature; the description says that it is nothing else."""

    description: str
    temp: float
    unit: Unit


@tool(name="currentWeather", description="依据位置获取天气信息", read_only=True)
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

    @tool(name="getTradeOrderInfo", description="查询用户交易订单信息", read_only=True)
    async def get_trade_order_info(self, id: _OrderId, context: ToolContext) -> str:  # noqa: A002
        """Describe an order of the tenant."""
        return f"订单号:{id} 租户Id:{context.get('tenantId', context.caller.tenant)}"


class DirectOrderQuery(OrderQuery):
    """The same tool; its result is the answer, and the model is not asked again."""

    @tool(name="getTradeOrderInfo", description="查询用户交易订单信息", return_direct=True, read_only=True)
    async def get_trade_order_info(self, id: _OrderId, context: ToolContext) -> str:  # noqa: A002
        """Describe an order of the tenant."""
        return await super().get_trade_order_info(id, context)
