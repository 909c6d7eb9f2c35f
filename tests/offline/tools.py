"""The tools that the questions are asked with: the built-in ones, those of the documentation, invented ones."""

from collections.abc import Callable
from datetime import date, time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.tools.baidu_translate.tools import BaiduTranslateTools
from app.tools.examples.tools import CurrentWeather, OrderQuery
from app.tools.time.tools import GetCurrentTimeByTimeZoneIdService
from app.tools.todo.tools import TodoRead, TodoUpdate
from app.tools.user_clock import DateTimeTools
from app.tools.weather.tools import WeatherService
from toolchat import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback, to_callbacks

__all__ = ["BUILT_IN", "CLOCK", "INVENTED", "SETS", "TRANSLATE", "WEATHER"]

Code = Annotated[str, Field(pattern="^[A-Z]{3}$", description="ISO 4217 code")]


@tool
def exchange_money(
    amount: float, source: Annotated[Code, Field(alias="from")], target: Annotated[Code, Field(alias="to")]
) -> str:
    """Convert an amount of money from one currency to another (货币兑换)."""
    return ""


class Fields(BaseModel):
    name: str | None = None
    email: str | None = None


@tool
def update_customer(id: int, fields: Fields) -> str:  # noqa: A002
    """Change the stored data of a customer (修改客户资料)."""
    return ""


@tool(read_only=True)
def search_orders(status: Literal["open", "shipped", "cancelled"], since: date | None = None) -> str:
    """Search orders by their status (查询订单)."""
    return ""


@tool
def book_room(room: str, date: date, start: time, hours: int, projector: bool = False) -> str:
    """Book a meeting room (预订会议室)."""
    return ""


@tool(read_only=True)
def list_employees() -> str:
    """List all employees (列出所有员工)."""
    return ""


@tool(read_only=True)
def trackParcel(单号: Annotated[str, Field(description="快递单号")]) -> str:
    """查询快递的物流状态"""
    return ""


@tool
def send_message(to: Annotated[str, "Name of the receiver"], text: str, urgent: bool = False) -> str:
    """Send a message to a colleague (发消息)."""
    return ""


@tool
def delete_file(path: str) -> str:
    """Delete a file (删除文件)."""
    return ""


@tool(read_only=True)
def calculate_bmi(weight_kg: float, height_cm: float) -> str:
    """Compute the body mass index (计算BMI)."""
    return ""


class When(BaseModel):
    date: date
    time: time


@tool
def create_event(title: str, when: When, attendees: list[str] | None = None) -> str:
    """Create a calendar event (创建日历事件)."""
    return ""


@tool
def set_thermostat(
    temperature: Annotated[float, Field(ge=5, le=30)], rooms: list[Literal["kitchen", "bedroom", "office"]]
) -> str:
    """Set the thermostat of some rooms (设置房间温度)."""
    return ""


@tool(read_only=True)
def stockPrice(symbol: Annotated[str, Field(description="股票代码", pattern="^[A-Z0-9.]{1,10}$")]) -> str:
    """查询股票价格"""
    return ""


# As the documentation shows them.
@tool
def rollDice(sides: Annotated[int, Field(ge=2, le=100)] = 6) -> int:
    """Roll one die (掷骰子)."""
    return 0


@tool
def flip_coins(count: Annotated[int, "Number of coins"] = 1) -> int:
    """Flip coins (抛硬币)."""
    return 0


@tool(read_only=True)
def airQuality(city: Annotated[str, "City, in English"]) -> str:
    """Air quality of a city (空气质量)."""
    return ""


@tool(requires_approval=True)
def shipOrder(order: int) -> str:
    """Ship an order."""
    return ""


@tool(requires_approval=True)
def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light (开灯, 关灯)."""
    return ""


@tool(read_only=True)
def shelf(number: int) -> str:
    """Return the contents of a shelf."""
    return ""


@tool
def setAlarm(time: Annotated[str, "ISO-8601 date and time; or an ISO-8601 duration from now such as PT10M"]) -> str:
    """为用户设置闹钟，时间参数需为ISO-8601格式"""
    return ""


def find_customer(name: Annotated[str, "Name of the customer, or a part of it"]) -> str:
    """Find customers by name."""
    return ""


@tool(read_only=True)
def check_stock(
    product: Annotated[str, "Product, such as lamp"], warehouse: Literal["north", "south"] = "north"
) -> str:
    """How many pieces of a product are in stock."""
    return ""


def create_ticket(title: str, priority: Literal["low", "high"] = "low") -> str:
    """Create a support ticket."""
    return ""


def _callback(marked: Any) -> FunctionToolCallback:
    return FunctionToolCallback.from_function(marked)


_CLIENT: Any = None
TRANSLATE = next(iter(to_callbacks([BaiduTranslateTools(_CLIENT)])))
CLOCK, WEATHER = _callback(GetCurrentTimeByTimeZoneIdService()), _callback(WeatherService(_CLIENT))
BUILT_IN = (TRANSLATE, CLOCK, WEATHER)
_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(
        exchange_money,
        update_customer,
        search_orders,
        book_room,
        list_employees,
        trackParcel,
        send_message,
        delete_file,
    ),
    *(calculate_bmi, create_event, set_thermostat, stockPrice),
)
INVENTED = tuple(map(_callback, _FUNCTIONS))
_SHOWN = (rollDice, flip_coins, airQuality, shipOrder, switchLight, shelf, setAlarm, CurrentWeather())
SETS: dict[str, tuple[Any, ...]] = {
    "all": (*BUILT_IN, *INVENTED),
    "built_in": BUILT_IN,
    "none": (),
    "shop": (*BUILT_IN, *map(_callback, (find_customer, check_stock, create_ticket))),
    "time": (CLOCK,),
    "weather": (WEATHER,),
    "translate": (TRANSLATE,),
    "todo": (*BUILT_IN, _callback(TodoUpdate(_CLIENT)), _callback(TodoRead(_CLIENT))),
    "clock": tuple(to_callbacks([DateTimeTools()])),
    "trade": tuple(to_callbacks([OrderQuery()])),
    **{each.definition.name: (*BUILT_IN, each) for each in map(_callback, _SHOWN)},
}
SETS["currentWeather"] = SETS["currentWeather"][-1:]
