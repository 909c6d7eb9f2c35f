"""Tools that users might add, each with parameters of another kind."""

from tests.offline.asking import parameters, text
from toolchat.tool_calling.definition import ToolDefinition

__all__ = ["DOCUMENTED", "OWN_TOOLS"]

EXCHANGE = ToolDefinition(
    "exchangeMoney",
    "Convert an amount of money from one currency to another (货币兑换)",
    parameters(
        "amount",
        "from",
        "to",
        **{
            "amount": {"type": "number", "minimum": 0},
            "from": text("ISO 4217 code", pattern="^[A-Z]{3}$"),
            "to": text("ISO 4217 code", pattern="^[A-Z]{3}$"),
        },
    ),
)
COFFEE = ToolDefinition(
    "order_coffee",
    "Order a coffee (点咖啡)",
    parameters(
        "size",
        size={"enum": ["small", "medium", "large"]},
        milk={"type": "boolean", "description": "with milk"},
        cups={"type": "integer", "minimum": 1, "default": 1},
    ),
)
TRIP = ToolDefinition(
    "planTrip",
    "Plan a trip through several cities (规划旅行)",
    parameters("cities", "start_date", cities={"type": "array", "items": text("city")}, start_date=text(format="date")),
)
PARCEL = ToolDefinition(
    "parcelPrice",
    "Price of a parcel by weight (包裹运费)",
    parameters(
        "weight_kg", weight_kg={"type": "number"}, express={"type": "boolean", "description": "express delivery"}
    ),
)
ROLL = ToolDefinition(
    "rollDice",
    "Roll one die (掷骰子)",
    parameters(sides={"type": "integer", "minimum": 2, "maximum": 100, "default": 6}),
)
LOTTERY = ToolDefinition(
    "pick_numbers",
    "Pick from lucky numbers (幸运号码)",
    parameters("numbers", numbers={"type": "array", "items": {"type": "integer"}}),
)
BOOKING = ToolDefinition(
    "bookTable",
    "Book a table in a restaurant (餐厅订位)",
    parameters(
        "date",
        "time",
        "people",
        date=text(format="date"),
        time=text("such as 19:30"),
        people={"type": "integer", "minimum": 1},
        terrace={"type": "boolean", "description": "on the terrace"},
    ),
)
OWN_TOOLS = (EXCHANGE, COFFEE, TRIP, PARCEL, ROLL, LOTTERY, BOOKING)
DOCUMENTED = {
    "clock": ToolDefinition("getCurrentDateTime", "获取用户时区的当前日期和时间", parameters()),
    "units": ToolDefinition(
        "currentWeather",
        "依据位置获取天气信息",
        parameters(
            "location",
            location=text("Location, such as 杭州"),
            unit={"enum": ["C", "F"], "default": "C", "description": "Scale of the temperature: C or F"},
        ),
    ),
    "trade": ToolDefinition(
        "getTradeOrderInfo",
        "查询用户交易订单信息",
        parameters("id", id={"type": "integer", "description": "交易订单号"}),
    ),
    "alarm": ToolDefinition(
        "setAlarm",
        "为用户设置闹钟，时间参数需为ISO-8601格式",
        parameters("time", time=text("ISO-8601 date and time; or an ISO-8601 duration from now such as PT10M")),
    ),
    "air": ToolDefinition(
        "airQuality", "Air quality of a city (空气质量)", parameters("city", city=text("City, in English"))
    ),
    "ship": ToolDefinition("shipOrder", "Ship an order", parameters("order", order={"type": "integer"})),
    "shelf": ToolDefinition(
        "shelf", "Return the contents of a shelf.", parameters("number", number={"type": "integer"})
    ),
    "flip": ToolDefinition(
        "flip_coins",
        "Flip coins (抛硬币).",
        parameters(count={"type": "integer", "default": 1, "description": "Number of coins"}),
    ),
    "search": ToolDefinition("searchAll", "Look everywhere", parameters()),
}
"""The tools to which the documentation shows questions, as it shows them."""
