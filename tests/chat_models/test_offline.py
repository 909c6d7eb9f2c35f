"""The offline model: which tools it asks for, with which arguments, and what it makes of the results."""

import json
import time
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from app.chat.client import ChatClient
from app.chat.tool_calling_advisor import ToolCallingAdvisor
from app.chat_models.base import ChatResponse, ModelEvent, Prompt, TextDelta
from app.chat_models.offline import OfflineChatModel
from app.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
)
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.manager import ToolCallingManager
from app.tool_calling.resolver import StaticToolCallbackResolver


def parameters(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text(description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description} | more


CLOCK = ToolDefinition(
    "getCityTimeFunction",
    "Get the time of a specified city.",
    parameters("timeZoneId", timeZoneId=text("Time zone id, such as Asia/Shanghai")),
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
OTHERS = (DICE, ORDER, ALARM, FLIGHT, ADD, LAMP, STOCK, MAIL, NEWS, CONVERT, MEETING)


async def events(prompt: Prompt, model: OfflineChatModel | None = None) -> list[ModelEvent]:
    return [event async for event in (model or OfflineChatModel()).respond(prompt)]


async def response(*messages: Message, tools: tuple[ToolDefinition, ...] = ()) -> ChatResponse:
    (only,) = await events(Prompt(messages, tools))
    assert isinstance(only, ChatResponse)
    return only


async def asked(question: str, *tools: ToolDefinition) -> list[tuple[str, Any]]:
    answer = await response(UserMessage(question), tools=tools)
    return [(call.name, json.loads(call.arguments)) for call in answer.message.tool_calls]


async def answered(question: str, result: Any, tool: ToolDefinition = CLOCK, arguments: str = "{}") -> str:
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


@pytest.mark.parametrize(
    ("question", "zones"),
    [
        ("请告诉我现在北京时间几点了", ["Asia/Shanghai"]),
        ("纽约和东京现在分别是几点？", ["America/New_York", "Asia/Tokyo"]),
        ("現在倫敦幾點？", ["Europe/London"]),
        ("What time is it in New York?", ["America/New_York"]),
        ("what's the time in Asia/Tokyo", ["Asia/Tokyo"]),
        ("time in america/argentina/buenos_aires please", ["America/Argentina/Buenos_Aires"]),
        ("UTC+8 现在几点？", ["UTC+8"]),
        ("东八区现在几点", ["UTC+8"]),
        ("西五区现在几点", ["UTC-5"]),
        ("time in PST", ["PST"]),
        ("“东京”现在几点", ["Asia/Tokyo"]),
        ("帮我查一下：巴黎现在几点", ["Europe/Paris"]),
        ("北京、东京、伦敦、巴黎、纽约、开罗、悉尼的时间", 5),
    ],
)
async def test_a_time_zone_comes_from_the_place_or_from_the_zone_that_is_named(
    question: str, zones: list[str] | int
) -> None:
    found = [arguments["timeZoneId"] for _, arguments in await asked(question, CLOCK)]
    assert len(found) == zones if isinstance(zones, int) else found == zones


@pytest.mark.parametrize(
    ("question", "city", "days"),
    [
        ("请告诉我北京1天以后的天气", "北京", 2),
        ("上海未来三天天气怎么样", "上海", 3),
        ("上海3天天气", "上海", 3),
        ("三亚一周的天气", "三亚", 7),
        ("广州两周天气预报", "广州", 14),
        ("北京明天会下雨吗", "北京", 2),
        ("后天深圳天气", "深圳", 3),
        ("大后天深圳天气", "深圳", 4),
        ("今天杭州气温", "杭州", 1),
        ("杭州天气", "杭州", 1),
        ("北京100天的天气", "北京", 14),
        ("weather in Paris for the next 5 days", "Paris", 5),
        ("Will it rain in London tomorrow?", "London", 2),
        ("weather at Xiamen in 3 days", "Xiamen", 4),
        ("New York weather", "New York", 1),
        ("weather in Springfield tomorrow", "Springfield", 2),
        ("weather in little rock today", "little rock", 1),
        ("查一下阿克苏今天的天气", "阿克苏", 1),
        ("What's the temperature in 北京", "北京", 1),
        ("Weather in Paris: will it rain tomorrow?", "Paris", 2),
    ],
)
async def test_a_city_and_a_number_of_days_come_from_the_question_within_the_bounds(
    question: str, city: str, days: int
) -> None:
    assert await asked(question, WEATHER) == [("getWeatherFunction", {"city": city, "days": days})]


@pytest.mark.parametrize(
    ("question", "q", "source", "target"),
    [
        ("帮我把以下内容翻译成英文：你好，世界。", "你好，世界。", "auto", "en"),
        ("把「早上好」翻译成日语", "早上好", "auto", "ja"),
        ("“谢谢”用法语怎么说？", "谢谢", "auto", "fr"),
        ("你好用英语怎么说", "你好", "auto", "en"),
        ("将“今天天气很好”译为德文", "今天天气很好", "auto", "de"),
        ("请把 good luck 翻译成中文", "good luck", "auto", "zh"),
        ("翻译：hello world", "hello world", "auto", "zh"),
        ("翻译今天天气很好", "今天天气很好", "auto", "en"),
        ("翻译 hello 到 西班牙语", "hello", "auto", "es"),
        ("中译英：早上好", "早上好", "zh", "en"),
        ("翻译成英文\n第一行\n\n第二行", "第一行\n\n第二行", "auto", "en"),
        ("Translate 'good night' into Chinese", "good night", "auto", "zh"),
        ("Translate hello to French", "hello", "auto", "fr"),
        ("how do you say thank you in Japanese?", "thank you", "auto", "ja"),
        ("Please translate “good morning” from English to Korean", "good morning", "en", "ko"),
        ("Translate into German: a: b", "a: b", "auto", "de"),
        ("翻译成英文：现在几点了？北京的天气呢", "现在几点了？北京的天气呢", "auto", "en"),
    ],
)
async def test_what_is_to_be_translated_is_passed_as_written_with_both_languages(
    question: str, q: str, source: str, target: str
) -> None:
    assert await asked(question, *ALL) == [("baiduTranslateFunction", {"q": q, "from": source, "to": target})]


async def test_a_language_is_given_by_name_where_the_schema_asks_for_names() -> None:
    by_name = ToolDefinition(
        "translate", "Translate", parameters("text", "language", text=text(), language=text("such as English"))
    )
    by_choice = ToolDefinition(
        "translate", "Translate", parameters("text", "lang", text=text(), lang={"enum": ["EN", "FR", "JA"]})
    )
    assert await asked("把“好”翻译成日语", by_name) == [("translate", {"text": "好", "language": "Japanese"})]
    assert await asked("把“好”翻译成日语", by_choice) == [("translate", {"text": "好", "lang": "JA"})]


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("roll a 20-sided dice", "rollDice", {"sides": 20}),
        ("roll a dice, sides=12", "rollDice", {"sides": 12}),
        ("掷一个六面的骰子", "rollDice", {"sides": 6}),
        ("where is my order A-1234?", "getOrder", {"orderId": "A-1234"}),
        ("查询订单 20231123 的状态", "getOrder", {"orderId": "20231123"}),
        ("order 'A-99' status", "getOrder", {"orderId": "A-99"}),
        ("set an alarm at 7:30, daily", "set_alarm", {"time": "07:30", "repeat": "daily"}),
        ("每天早上七点半的闹钟", "set_alarm", {"time": "07:30", "repeat": "daily"}),
        ("下午3点15分的闹钟", "set_alarm", {"time": "15:15"}),
        ("wake me with an alarm at 8 pm", "set_alarm", {"time": "20:00"}),
        (
            "flights from Beijing to Shanghai on 2026-12-01 for 2 passengers",
            "searchFlights",
            {"origin": "Beijing", "destination": "Shanghai", "date": "2026-12-01", "passengers": 2},
        ),
        (
            "2026年12月1日去上海的航班，从北京出发",
            "searchFlights",
            {"origin": "北京", "destination": "上海", "date": "2026-12-01"},
        ),
        ("add 3 and 4.5", "add", {"a": 3, "b": 4.5}),
        ("计算 1,000 加 三十二", "add", {"a": 1000, "b": 32}),
        ("turn off the light", "switch_light", {"on": False}),
        ("打开灯", "switch_light", {"on": True}),
        ("股票600519现在多少钱", "stock", {"symbol": "600519"}),
        ("股票代码是 AAPL 的价格", "stock", {"symbol": "AAPL"}),
        ("stock price of TSLA", "stock", {"symbol": "TSLA"}),
        ("send an email to a@b.com saying hello there", "sendMail", {"email": "a@b.com", "body": "hello there"}),
        ("搜索人工智能的新闻", "news", {"query": "人工智能的新闻"}),
        ("news about the climate, limit 5", "news", {"query": "news about the climate, limit 5", "limit": 5}),
        ("换算 36.6 摄氏度", "convert", {"value": 36.6, "unit": "celsius"}),
        (
            "book a meeting room on 2026-12-01 at 14:00 for 6 people",
            "bookMeeting",
            {"slot": {"date": "2026-12-01", "start_time": "14:00"}, "people": 6},
        ),
    ],
)
async def test_a_tool_that_nobody_foresaw_is_chosen_and_filled_by_its_schema(
    question: str, name: str, arguments: dict[str, Any]
) -> None:
    assert await asked(question, *OTHERS) == [(name, arguments)]


@pytest.mark.parametrize(
    ("question", "schema", "value"),
    [
        ("run it with details", {"type": "boolean", "description": "include the details"}, None),
        ("run it with alerts", {"type": "boolean"}, True),
        ("run it without alerts", {"type": "boolean"}, False),
        ("run it with 7", {"enum": [3, 7, True, None, ""]}, 7),
        ("run it for 摄氏", {"enum": ["kelvin", "celsius"]}, "celsius"),
        ("run it in big style", {"enum": ["small", "big"]}, "big"),
        ("run it", {"const": "fixed"}, "fixed"),
        ("run it", {"type": "string", "default": "given"}, "given"),
        ("run it", {"anyOf": [{"type": "null"}, {"type": "integer", "default": 5}]}, 5),
        ("run it with 2.5", {"type": "number"}, 2.5),
        ("run it with 2.5 and 3", {"type": "integer"}, None),
        ("run it on 2026-12-01 at 9:05", {"type": "string", "format": "date-time"}, "2026-12-01T09:05:00"),
        ("run it at 12 am", {"type": "string", "format": "time"}, "00:00"),
        ("run https://a.example/b?c=1", {"type": "string", "format": "uri"}, "https://a.example/b?c=1"),
        ("run it for job-17", {"type": "string", "format": "uuid"}, "job-17"),
        ("run “this”", {"type": "string"}, "this"),
        ("run it", {"type": "object"}, {}),
        ("run 3 4 4", {"type": "array", "items": {"type": "integer"}}, [3, 4]),
        ("run red and blue", {"type": "array", "items": {"enum": ["blue", "green", "red"]}}, ["red", "blue"]),
    ],
)
async def test_a_required_value_comes_by_type_enumeration_format_or_default(
    question: str, schema: dict[str, Any], value: Any
) -> None:
    run = ToolDefinition("run", "Run it", parameters("alerts", alerts=schema))
    expected = {"alerts": value if value is not None else False}
    found = await asked(question, run)
    assert found == ([("run", expected)] if value is not None or schema["type"] == "boolean" else [])


@pytest.mark.parametrize(
    ("question", "name", "schema", "value"),
    [
        ("run it for user named Li Lei", "userName", text(), "Li"),
        ("run it，名叫 小明", "name", text(), "小明"),
        ("run order 77", "id", {"type": "integer"}, 77),
        ("run it in 巴黎", "city", text("the city in English"), "Paris, France"),
        ("run it the day after tomorrow", "days_ahead", {"type": "integer"}, 2),
        ("run it with level is 4", "level", {"type": "integer"}, 4),
        ("run it to Berlin", "to", text(), "Berlin"),
    ],
)
async def test_a_value_is_recognised_by_the_name_and_description_of_its_parameter(
    question: str, name: str, schema: dict[str, Any], value: Any
) -> None:
    run = ToolDefinition("run", "Run it", parameters(name, **{name: schema}))
    assert await asked(question, run) == [("run", {name: value})]


async def test_what_is_optional_and_not_spoken_of_is_left_out() -> None:
    optional = {"n": {"type": "integer"}, "unit": {"enum": ["c", "f"]}, "id": text(), "flag": {"type": "boolean"}}
    run = ToolDefinition("run", "Run it", parameters(**optional, inner=parameters("x", x=text())))
    assert await asked("run it", run) == [("run", {})]


async def test_a_list_takes_everything_that_is_named() -> None:
    assert await asked("比较北京、上海和广州的天气", COMPARE) == [
        ("compare_weather", {"cities": ["北京", "上海", "广州"]})
    ]


async def test_a_tool_with_other_names_and_a_chinese_description_is_filled_all_the_same() -> None:
    own = ToolDefinition("tool_7", "查询某个城市的天气预报", parameters("地点", 地点=text("城市名称")))
    assert await asked("杭州的天气预报", own) == [("tool_7", {"地点": "杭州"})]


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        (
            "What time is it in Tokyo and the weather in Paris?",
            [("getCityTimeFunction", "Asia/Tokyo"), ("getWeatherFunction", "Paris")],
        ),
        ("东京时间和巴黎天气", [("getCityTimeFunction", "Asia/Tokyo"), ("getWeatherFunction", "巴黎")]),
        ("呼和浩特天气和东京时间", [("getWeatherFunction", "呼和浩特"), ("getCityTimeFunction", "Asia/Tokyo")]),
        (
            "北京今天天气怎么样，现在几点了",
            [("getWeatherFunction", "北京"), ("getCityTimeFunction", "Asia/Shanghai")],
        ),
        (
            "把“天气”翻译成英文，并告诉我东京时间",
            [("baiduTranslateFunction", "天气"), ("getCityTimeFunction", "Asia/Tokyo")],
        ),
        (
            "weather in Tokyo, Osaka and time in London",
            [
                ("getWeatherFunction", "Tokyo"),
                ("getWeatherFunction", "Osaka"),
                ("getCityTimeFunction", "Europe/London"),
            ],
        ),
    ],
)
async def test_a_question_about_two_things_asks_for_both_in_one_message(
    question: str, calls: list[tuple[str, str]]
) -> None:
    assert [(name, next(iter(arguments.values()))) for name, arguments in await asked(question, *ALL)] == calls


@pytest.mark.parametrize(
    "question",
    [
        "你好",
        "你好，你是谁",
        "Thank you very much",
        "给我讲个故事",
        "who is the president?",
        "",
        "   ",
        "???",
        "1+1等于几",
    ],
)
async def test_chit_chat_calls_nothing_and_the_answer_says_what_the_tools_are_for(question: str) -> None:
    answer = await response(UserMessage(question), tools=ALL)
    assert answer.message.tool_calls == ()
    assert answer.finish_reason == "stop"
    assert all(tool.name in answer.message.text for tool in ALL)
    assert "离线" in answer.message.text or "offline" in answer.message.text


async def test_a_question_about_the_time_does_not_set_an_alarm() -> None:
    assert await asked("现在几点了", ALARM) == []


@pytest.mark.parametrize(
    ("question", "tool", "named"),
    [
        ("现在几点了", CLOCK, "timeZoneId"),
        ("火星现在几点", CLOCK, "火星"),
        ("明天会下雨吗", WEATHER, "city"),
        ("请翻译", TRANSLATE, "q"),
        ("翻译成日文", TRANSLATE, "q"),
        ("what time is it?", CLOCK, "timeZoneId"),
        ("set an alarm", ALARM, "time"),
        ("查订单", ORDER, "orderId"),
        ("book a meeting room for 6 people", MEETING, "start_time"),
        ("roll a dice", DICE, "sides"),
    ],
)
async def test_a_missing_detail_is_asked_for_instead_of_guessed(
    question: str, tool: ToolDefinition, named: str
) -> None:
    answer = await response(UserMessage(question), tools=(tool,))
    assert answer.message.tool_calls == ()
    assert named in answer.message.text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("请告诉我现在北京时间几点了", ["离线替身模型", "不知道现在几点", "DASHSCOPE_API_KEY", "OPENAI_API_KEY"]),
        ("请告诉我北京1天以后的天气", ["离线替身模型", "不知道天气", "/chat-tool-function"]),
        ("帮我把以下内容翻译成英文：Good evening, ladies and gentlemen.", ["没有办法翻译"]),
        ("What time is it?", ["offline stand-in model", "cannot know what time it is", "DASHSCOPE_API_KEY"]),
        ("翻訳して", ["离线替身模型"]),
    ],
)
async def test_without_tools_it_says_what_it_is_and_how_to_get_a_real_answer(question: str, said: list[str]) -> None:
    answer = (await response(UserMessage(question))).message.text
    assert [each for each in said if each not in answer] == []
    assert not any(character.isdigit() for character in answer)


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


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "请告诉我现在北京时间几点了",
            "北京现在是 2026年11月20日 星期五 20:53:31（时区 Asia/Shanghai，UTC+08:00）。",
        ),
        (
            "What time is it in Beijing?",
            "In Beijing it is 20:53:31 on Friday, 20 November 2026 (Asia/Shanghai, UTC+08:00).",
        ),
        ("东八区现在几点", "现在是 2026年11月20日 星期五 20:53:31（时区 Asia/Shanghai，UTC+08:00）。"),
    ],
)
async def test_a_clock_is_told_with_date_time_weekday_and_zone(question: str, answer: str) -> None:
    assert await answered(question, CLOCK_RESULT, CLOCK, '{"timeZoneId": "Asia/Shanghai"}') == answer


async def test_a_forecast_is_told_for_the_day_that_was_asked_about() -> None:
    assert await answered("请告诉我北京1天以后的天气", FORECAST, WEATHER) == (
        "地点：北京（Beijing，中国），当地时间 2026-11-20 20:53\n2026-11-21：多云，最高 9 °C，最低 -2 °C，降雨概率 10%"
    )


async def test_a_forecast_is_told_day_by_day_when_no_single_day_was_asked_about() -> None:
    assert await answered("Weather in Beijing for 2 days", FORECAST, WEATHER) == (
        "Place: 北京 (Beijing, 中国), local time 2026-11-20 20:53\n"
        "Now: 晴, temperature 8 °C, humidity 40%, wind 7.2 km/h\n"
        "2026-11-20: 晴, high 12 °C, low 1.5 °C, chance of rain 0%\n"
        "2026-11-21: 多云, high 9 °C, low -2 °C, chance of rain 10%"
    )


async def test_a_day_beyond_the_forecast_is_said_to_be_missing() -> None:
    answer = await answered("北京4天以后的天气", FORECAST | {"days_requested": 5, "days_delivered": 2}, WEATHER)
    assert answer.startswith("没有取得所问那一天的数据")
    assert "2026-11-21" in answer


@pytest.mark.parametrize(
    ("result", "question", "answer"),
    [
        ({"from": "zh", "to": "en", "text": "Hello, world."}, "翻译：你好，世界。", "译文（英语）：Hello, world."),
        ({"from": "zh", "to": "jp", "text": "はい"}, "Translate 是 to Japanese", "Translation (Japanese): はい"),
        ({"from": "zh", "to": "en", "text": "a\nb"}, "翻译：甲", "译文（英语）：\na\nb"),
        ({"from": "zh", "to": "xx", "text": "a"}, "翻译：甲", "译文（xx）：a"),
        (17, "掷骰子", "rollDice 的结果：17"),
        (True, "is it on?", "rollDice returned yes."),
        ("Alarm set.", "设闹钟", "Alarm set."),
        ("Done", "设闹钟", "rollDice 已完成。"),
        ("null", "go", "rollDice is done."),
        ("", "go", "rollDice returned nothing."),
        ([], "go", "rollDice returned nothing."),
        ({}, "查", "rollDice 没有返回任何内容。"),
        (["a", "b"], "查", "a、b"),
        ({"description": "The current time zone is X"}, "查", "The current time zone is X"),
        (
            {"order_id": "A1", "status": "shipped", "items": [{"name": "book", "count": 2}, {"name": "pen"}]},
            "订单 A1",
            "订单号 A1，状态 shipped\nbook：数量 2\npen",
        ),
        ({"paid": False, "userName": "Li", "tags": ["x", "y"]}, "order", "paid no, user name Li\nTags: x, y"),
        ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "order", "rollDice returned nothing."),
        ({"error": {"kind": "no-such-place", "message": "no place"}}, "查", "没有查到结果：rollDice 报告说 no place"),
        (
            {"error": {"kind": "x", "message": "no place.", "hint": "try Paris"}},
            "look",
            "The look-up failed: rollDice reported: no place. Hint: try Paris",
        ),
        ({"error": "gone"}, "look", "The look-up failed: rollDice reported: gone"),
        ({"error": [1]}, "look", "The look-up failed: rollDice reported: [1]"),
    ],
)
async def test_any_result_becomes_a_sentence_or_a_short_list(result: Any, question: str, answer: str) -> None:
    assert await answered(question, result, DICE) == answer


async def test_a_long_result_is_told_in_bounded_length() -> None:
    entries = [{"id": n, "text": "x" * 5000} for n in range(1000)]
    assert len(await answered("list", entries, DICE)) <= 2001
    assert len(await answered("list", "y" * 100_000, DICE)) <= 2001


async def test_several_results_and_a_detail_that_is_missing_are_told_together() -> None:
    messages = (
        UserMessage("东京时间，还有查订单"),
        AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, '{"timeZoneId":"Asia/Tokyo"}'),)),
        ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT)),)),
    )
    lines = (await response(*messages, tools=(CLOCK, ORDER))).message.text.splitlines()
    assert lines[0].startswith("东京现在是")
    assert "orderId" in lines[1]


async def test_results_are_told_even_after_the_tools_have_been_taken_away() -> None:
    messages = (
        UserMessage("东京时间"),
        AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, "not json"),)),
        ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT)),)),
    )
    assert "20:53:31" in (await response(*messages)).message.text


async def test_the_last_question_counts_and_call_ids_are_new_in_the_conversation() -> None:
    messages = (
        SystemMessage("Answer in French."),
        UserMessage("东京和巴黎的时间"),
        AssistantMessage(tool_calls=(ToolCall("call_1", "t", "{}"), ToolCall("call_2", "t", "{}"))),
        ToolResponseMessage((ToolResponse("call_1", "t", "1"), ToolResponse("call_2", "t", "2"))),
        AssistantMessage("1 2"),
        UserMessage("伦敦和开罗呢，几点？"),
    )
    calls = (await response(*messages, tools=(CLOCK,))).message.tool_calls
    assert [call.id for call in calls] == ["call_3", "call_4"]
    assert [json.loads(call.arguments)["timeZoneId"] for call in calls] == ["Europe/London", "Africa/Cairo"]


async def test_streamed_pieces_are_several_and_together_the_text() -> None:
    *deltas, last = await events(Prompt((UserMessage("现在几点"),), stream=True))
    assert isinstance(last, ChatResponse)
    pieces = [each.text for each in deltas if isinstance(each, TextDelta)]
    assert len(pieces) == len(deltas) > 3
    assert "".join(pieces) == last.message.text


async def test_a_streamed_call_has_no_text_and_says_so_in_its_finish_reason() -> None:
    (only,) = await events(Prompt((UserMessage("北京时间几点"),), (CLOCK,), stream=True))
    assert isinstance(only, ChatResponse)
    assert (only.message.text, only.finish_reason) == ("", "tool_calls")


async def test_it_calls_itself_offline_and_counts_no_tokens() -> None:
    model = OfflineChatModel()
    answer = await response(UserMessage("hello"))
    assert (model.provider, model.name, answer.model, answer.usage) == ("offline", "offline", "offline", Usage())


async def test_the_same_conversation_gets_the_same_answer_from_the_same_and_from_another_model() -> None:
    prompt = Prompt((UserMessage("东京时间和巴黎天气，把“你好”翻译成英文"),), (*ALL, *OTHERS))
    model = OfflineChatModel()
    assert await events(prompt, model) == await events(prompt, model) == await events(prompt)


async def test_tools_of_the_same_name_with_another_schema_are_not_mixed_up() -> None:
    model = OfflineChatModel()
    for name in ("sides", "faces", "n"):
        dice = ToolDefinition("rollDice", "Roll a dice", parameters(name, **{name: {"type": "integer"}}))
        (only,) = await events(Prompt((UserMessage("roll a dice with 8 sides"),), (dice,)), model)
        assert isinstance(only, ChatResponse)
        assert json.loads(only.message.tool_calls[0].arguments) == {name: 8}


@tool(name="getWeatherMethod", description="Weather of a city")
async def weather_of(city: Annotated[str, "city name"], days: Annotated[int, Field(ge=1, le=14)] = 1) -> Any:
    if city == "Atlantis":
        raise ToolExecutionError("there is no place 'Atlantis'", kind="no-such-place")
    return {"place": {"name": city}, "days": [{"date": "2026-11-20", "maxtemp_c": days}]}


class Alarm(BaseModel):
    time: str
    repeat: Literal["once", "daily"] = "once"


@tool(description="Set an alarm")
async def alarm(request: Alarm) -> str:
    return f"Alarm at {request.time}, {request.repeat}."


@pytest.mark.parametrize(
    ("question", "answer", "outcomes"),
    [
        ("杭州今天的天气", "地点：杭州\n2026-11-20：最高 1 °C", ["ok"]),
        (
            "weather in Atlantis and in Paris",
            "The look-up failed: getWeatherMethod reported: there is no place 'Atlantis'\n"
            "Place: Paris\n2026-11-20: high 1 °C",
            ["error", "ok"],
        ),
        (
            "weather in Atlantis",
            "The look-up failed: getWeatherMethod reported: there is no place 'Atlantis'",
            ["error"],
        ),
        ("每天7:30的闹钟", "Alarm at 07:30, daily.", ["ok"]),
    ],
)
async def test_the_loop_runs_its_calls_once_and_gets_an_answer(question: str, answer: str, outcomes: list[str]) -> None:
    advisors = (ToolCallingAdvisor(ToolCallingManager()),)
    client = ChatClient(OfflineChatModel(), StaticToolCallbackResolver(()), advisors)
    offered = (FunctionToolCallback.of(weather_of), FunctionToolCallback.of(alarm))
    given_answer = await client.prompt(question).tools(*offered).call().response()
    assert given_answer.message.text == answer
    assert [each.outcome for each in given_answer.executions] == outcomes
    assert given_answer.rounds == 2


@pytest.mark.parametrize(
    "unit",
    [
        *("a", " ", "一", "1", "“", "「", "\n", "和", "点", "在", "查询", "北京"),
        *("UTC+", "A/", "translate ", "译成", "\ud800"),
    ],
)
async def test_a_long_and_monotonous_question_is_answered_in_no_time(unit: str) -> None:
    for question in (f"天气{unit * 4000}", f"translate {unit * 4000} x"):
        started = time.perf_counter()
        await response(UserMessage(question), tools=(*ALL, *OTHERS))
        assert time.perf_counter() - started < 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    ["type", "properties", "required", "enum", "const", "items", "anyOf", "$ref", "default", "minimum", "description"]
)
WORDS = st.sampled_from(
    ["city", "days", "time", "北京", "天气", "翻译", "3", "to", "in", "：", "“x”", "#/$defs/A", "string"]
)
SCHEMA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYWORDS, inner, max_size=5)
        | st.dictionaries(st.text(max_size=9) | WORDS, inner, max_size=4)
    ),
    max_leaves=25,
)
PARAMETER = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", ["null", "integer"], 7]),
    },
    optional={"items": SCHEMA, "properties": SCHEMA, "enum": SCHEMA, "default": JSON, "minimum": JSON, "maximum": JSON},
)
TOOL = st.builds(
    ToolDefinition,
    st.just("weather") | st.text(min_size=1, max_size=20).filter(str.strip),
    st.just("天气 time translate") | st.text(min_size=1, max_size=40).filter(str.strip),
    st.dictionaries(KEYWORDS, SCHEMA, max_size=5)
    | st.fixed_dictionaries(
        {
            "properties": st.dictionaries(st.text(max_size=9) | WORDS, PARAMETER | SCHEMA, max_size=5),
            "required": st.lists(WORDS, max_size=4) | SCHEMA,
        }
    ),
)
QUESTION = st.lists(st.text(max_size=30) | WORDS, max_size=12).map("".join)


@settings(max_examples=60, deadline=None, database=None)
@given(question=QUESTION, tools=st.lists(TOOL, max_size=3))
async def test_no_question_and_no_schema_makes_it_raise(question: str, tools: list[ToolDefinition]) -> None:
    answer = await response(UserMessage(question), tools=tuple(tools))
    assert answer.message.text.strip() or answer.message.tool_calls
    for call in answer.message.tool_calls:
        assert isinstance(json.loads(call.arguments), dict)


@settings(max_examples=60, deadline=None, database=None)
@given(question=QUESTION, result=st.text(max_size=60) | JSON.map(json.dumps))
async def test_no_result_makes_it_raise_or_fall_silent(question: str, result: str) -> None:
    assert (await answered(question, result, DICE)).strip()
