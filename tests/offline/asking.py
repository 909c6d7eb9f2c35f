"""The offline model, tools to offer it, and results to give it."""

import json
from typing import Any

from app.offline import OfflineChatModel
from app.tools.baidu_translate.tools import BaiduTranslateTools
from app.tools.time.tools import TimeTools
from app.tools.weather.tools import WeatherTools
from tests.models.responding import events_of
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.models.base import ChatResponse, Prompt
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.schema import read_output_schema
from toolchat.tool_calling.signature import read_signature


def parameters(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text(description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description} | more


CLOCK = ToolDefinition(
    "getCityTimeFunction",
    "Get the time of a specified city.",
    parameters("timeZoneId", timeZoneId=text("Time zone id, such as Asia/Shanghai")),
    read_output_schema(read_signature(TimeTools.get_city_time, "it")),
)
WEATHER = ToolDefinition(
    "getWeatherFunction",
    "Use api.weather to get weather information.",
    parameters(
        "city",
        "days",
        city=text("city name"),
        days={
            "type": "integer",
            "minimum": 1,
            "maximum": 14,
            "description": "Number of days of weather forecast. Value ranges from 1 to 14",
        },
    ),
    read_output_schema(read_signature(WeatherTools.get_weather, "it")),
)
TRANSLATE = ToolDefinition(
    "baiduTranslateFunction",
    "Baidu translation function for general text translation",
    parameters(
        "q",
        "from",
        "to",
        **{
            "q": text("Content that needs to be translated"),
            "from": text("Source language that needs to be translated"),
            "to": text("Target language to translate into"),
        },
    ),
    read_output_schema(read_signature(BaiduTranslateTools.baidu_translate, "it")),
)
ALL = (CLOCK, WEATHER, TRANSLATE)
DICE = ToolDefinition("rollDice", "Roll a dice", parameters("sides", sides={"type": "integer", "minimum": 2}))
ORDER = ToolDefinition(
    "getOrder", "Look up the status of an order", parameters("orderId", orderId=text("the order id"))
)
ALARM = ToolDefinition(
    "set_alarm",
    "Set an alarm at a given time of the day",
    parameters("time", time=text("such as 07:30"), repeat={"enum": ["once", "daily", "weekly"], "default": "once"}),
)
FLIGHT = ToolDefinition(
    "searchFlights",
    "Search flights between two cities",
    parameters(
        "origin",
        "destination",
        "date",
        origin=text(),
        destination=text(),
        date=text(format="date"),
        passengers={"type": "integer", "default": 1},
    ),
)
ADD = ToolDefinition("add", "Add two numbers", parameters("a", "b", a={"type": "number"}, b={"type": "number"}))
LAMP = ToolDefinition("switch_light", "Switch the light", parameters("on", on={"type": "boolean"}))
STOCK = ToolDefinition("stock", "查询股票价格", parameters("symbol", symbol=text("股票代码")))
MAIL = ToolDefinition("sendMail", "Send an email", parameters("email", "body", email=text(), body=text()))
NEWS = ToolDefinition(
    "news", "Search the news", parameters("query", query=text(), limit={"type": "integer", "default": 3})
)
CONVERT = ToolDefinition(
    "convert",
    "Convert a temperature",
    parameters("value", "unit", value={"type": "number"}, unit={"enum": ["celsius", "fahrenheit"]}),
)
MEETING = ToolDefinition(
    "bookMeeting",
    "Book a meeting room",
    {
        "type": "object",
        "properties": {"slot": {"$ref": "#/$defs/Slot"}, "people": {"type": "integer"}},
        "required": ["slot", "people"],
        "$defs": {"Slot": parameters("date", "start_time", date=text(format="date"), start_time=text())},
    },
)
COMPARE = ToolDefinition(
    "compare_weather", "Compare the weather", parameters("cities", cities={"type": "array", "items": text("city")})
)
TODO_ITEM = parameters("id", "text", "status", id=text(), text=text(), status={"enum": ["pending", "completed"]})
TODO_WRITE = ToolDefinition(
    "todo_write", "Keep the task list", parameters("todos", todos={"type": "array", "items": TODO_ITEM})
)
TODO_READ = ToolDefinition("todo_read", "Show the task list", parameters())
OTHERS = (DICE, ORDER, ALARM, FLIGHT, ADD, LAMP, STOCK, MAIL, NEWS, CONVERT, MEETING)
CLOCK_RESULT = {
    "description": "The current time zone is Asia/Shanghai and the current time is 2026-11-20 20:53:31 CST",
    "time_zone": "Asia/Shanghai",
    "date": "2026-11-20",
    "time": "20:53:31",
    "weekday": "Friday",
    "utc_offset": "+08:00",
}
FORECAST: dict[str, Any] = {
    "place": {"name": "北京", "region": "Beijing", "country": "中国", "local_time": "2026-11-20 20:53"},
    "current": {"text": "晴", "temp_c": 8, "humidity": 40, "wind_kph": 7.2},
    "days": [
        {"date": "2026-11-20", "text": "晴", "maxtemp_c": 12, "mintemp_c": 1.5, "chance_of_rain": 0},
        {"date": "2026-11-21", "text": "多云", "maxtemp_c": 9, "mintemp_c": -2, "chance_of_rain": 10},
    ],
}


def talk(*questions: str) -> tuple[Message, ...]:
    """A conversation of these questions, each but the last answered."""
    pairs = [(UserMessage(each), AssistantMessage("An answer.")) for each in questions]
    return tuple(message for pair in pairs for message in pair)[:-1]


async def response(
    *messages: Message, tools: tuple[ToolDefinition, ...] = (), model: OfflineChatModel | None = None
) -> ChatResponse:
    """What the model says to the conversation, at once and not as a stream."""
    (only,) = await events_of(model or OfflineChatModel(), Prompt(messages, tools))
    assert isinstance(only, ChatResponse)
    return only


async def asked(question: str, *tools: ToolDefinition) -> list[tuple[str, Any]]:
    """The calls that a question leads to, each with its arguments."""
    answer = await response(UserMessage(question), tools=tools)
    return [(call.name, json.loads(call.arguments)) for call in answer.message.tool_calls]


async def answered(question: str, result: Any, tool: ToolDefinition = CLOCK, arguments: str = "{}") -> str:
    """What the model says to a question whose one call has given a result."""
    call = ToolCall("call_1", tool.name, arguments)
    shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    answer = await response(
        UserMessage(question),
        AssistantMessage(tool_calls=(call,)),
        ToolResponseMessage((ToolResponse("call_1", tool.name, shown),)),
        tools=(tool,),
    )
    assert answer.message.tool_calls == ()
    return answer.message.text


async def said(*questions: str, tools: tuple[ToolDefinition, ...] = ALL) -> str:
    """What the model says to the last of these questions, for which it needs no tool."""
    answer = await response(*talk(*questions), tools=tools)
    assert answer.message.tool_calls == ()
    return answer.message.text
