"""What the offline model makes of the results of its calls."""

import json
from typing import Annotated, Any

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from tests.offline.asking import CLOCK_RESULT, FORECAST, answered, response
from tests.offline.tools import CLOCK, SETS, TRANSLATE, WEATHER
from toolchat.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.tool_calling.function_callback import FunctionToolCallback

DICE = SETS["rollDice"][-1]


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
        ("东八区现在几点", "东八区现在是 2026年11月20日 星期五 20:53:31（时区 Asia/Shanghai，UTC+08:00）。"),
    ],
)
async def test_a_time_is_rendered_with_date_time_weekday_and_zone(question: str, answer: str) -> None:
    assert await answered(question, CLOCK_RESULT, CLOCK, '{"timeZoneId": "Asia/Shanghai"}') == answer


async def test_a_forecast_is_rendered_for_the_requested_day() -> None:
    assert await answered("请告诉我北京1天以后的天气", FORECAST, WEATHER) == (
        "地点：北京（Beijing，中国），当地时间 2026-11-20 20:53\n2026-11-21：多云，最高 9 °C，最低 -2 °C，降雨概率 10%"
    )


async def test_a_forecast_is_rendered_day_by_day_without_a_requested_day() -> None:
    assert await answered("Weather in Beijing for 2 days", FORECAST, WEATHER) == (
        "Place: 北京 (Beijing, 中国), local time 2026-11-20 20:53\n"
        "Now: 晴, temperature 8 °C, humidity 40%, wind 7.2 km/h\n"
        "2026-11-20: 晴, high 12 °C, low 1.5 °C, chance of rain 0%\n"
        "2026-11-21: 多云, high 9 °C, low -2 °C, chance of rain 10%"
    )


async def test_a_day_beyond_the_forecast_is_reported_as_missing() -> None:
    answer = await answered("北京4天以后的天气", FORECAST | {"days_requested": 5, "days_delivered": 2}, WEATHER)
    assert answer.startswith("没有取得所问那一天的数据")
    assert "2026-11-21" in answer


@pytest.mark.parametrize(
    ("result", "question", "answer"),
    [
        (17, "掷骰子", "rollDice 的结果是 17。"),
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
            "order id A1，status shipped\nbook：count 2\npen",
        ),
        ({"paid": False, "userName": "Li", "tags": ["x", "y"]}, "order", "paid no, user name Li\nTags: x, y"),
        ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "order", "rollDice returned nothing."),
        (
            {"error": {"kind": "no-such-place", "message": "no place"}},
            "查",
            "没有查到结果，rollDice 报告说：no place。",
        ),
        (
            {"error": {"kind": "x", "message": "no place.", "hint": "try Paris"}},
            "look",
            "The look-up failed: rollDice reported: no place. Hint: try Paris.",
        ),
        ({"error": "gone"}, "look", "The look-up failed: rollDice reported: gone."),
        ({"error": [1]}, "look", "The look-up failed: rollDice reported: [1]."),
    ],
)
async def test_any_result_becomes_a_sentence_or_a_short_list(result: Any, question: str, answer: str) -> None:
    assert await answered(question, result, DICE) == answer


@pytest.mark.parametrize(
    ("result", "question", "answer"),
    [
        ({"from": "zh", "to": "en", "text": "Hello, world."}, "翻译：你好，世界。", "译文（英语）：Hello, world."),
        ({"from": "zh", "to": "jp", "text": "はい"}, "Translate 是 to Japanese", "Translation (Japanese): はい"),
        ({"from": "zh", "to": "en", "text": "a\nb"}, "翻译：甲", "译文（英语）：\na\nb"),
        ({"from": "zh", "to": "xx", "text": "a"}, "翻译：甲", "译文（xx）：a"),
    ],
)
async def test_a_translation_is_rendered_with_its_language(result: Any, question: str, answer: str) -> None:
    assert await answered(question, result, TRANSLATE) == answer


class Item(TypedDict, total=False):
    name: str
    count: Annotated[int, Field(title="数量 / count")]


class Order(TypedDict):
    order_id: Annotated[str, Field(title="订单号 / order")]
    status: Annotated[str, Field(title="状态 / status")]
    weight: Annotated[float, Field(title="重量 / weight", description="kg")]
    items: list[Item]


def order(order_id: str) -> Order:
    """Look up the status of an order (查订单)."""
    return {"order_id": order_id, "status": "sent", "weight": 1.5, "items": [{"name": "book", "count": 2}]}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("订单 A1", "订单号 A1，状态 sent，重量 1.5 kg\nbook：数量 2"),
        ("order A1", "order A1, status sent, weight 1.5 kg\nbook: count 2"),
    ],
)
async def test_fields_are_called_by_the_titles_of_the_result_type(question: str, answer: str) -> None:
    assert await answered(question, order("A1"), FunctionToolCallback.from_function(order)) == answer


@pytest.mark.parametrize(
    "result",
    [
        pytest.param([{"id": n, "text": "x" * 5000} for n in range(1000)], id="a list"),
        pytest.param("y" * 100_000, id="a text"),
    ],
)
async def test_a_long_result_is_rendered_in_bounded_length(result: Any) -> None:
    assert len(await answered("list", result, DICE)) <= 2001


async def test_each_result_is_rendered_for_its_place_in_any_order() -> None:
    question = UserMessage("What time is it in Paris and Tokyo?")
    called = (await response(question, tools=(CLOCK,))).message
    results = [ToolResponse(each.id, each.name, json.dumps(CLOCK_RESULT)) for each in called.tool_calls]
    turned = ToolResponseMessage(tuple(reversed(results)))
    lines = (await response(question, called, turned, tools=(CLOCK,))).message.text.splitlines()
    assert [line[:11] for line in lines] == ["In Paris it", "In Tokyo it"]
    only = ToolResponseMessage((results[1],))
    assert (await response(question, called, only, tools=(CLOCK,))).message.text.startswith("In Tokyo it")


async def test_results_are_rendered_even_after_the_tools_are_withdrawn() -> None:
    messages = (
        UserMessage("东京时间"),
        AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.definition.name, "not json"),)),
        ToolResponseMessage((ToolResponse("call_1", CLOCK.definition.name, json.dumps(CLOCK_RESULT)),)),
    )
    assert "20:53:31" in (await response(*messages)).message.text


@pytest.mark.parametrize(
    "result",
    [
        json.dumps(CLOCK_RESULT) + "\n\n<reminder>Update your todos.</reminder>",
        "<reminder>Update your todos.</reminder>\n" + json.dumps(CLOCK_RESULT),
        "It is 20:53:31.\n\n<reminder>Update\nyour todos.</reminder>",
        '"It is 20:53:31."\n\n<reminder>a</reminder><reminder>b</reminder>',
    ],
)
async def test_a_result_is_rendered_without_the_reminder_to_the_model(result: str) -> None:
    answer = await answered("time in Beijing", result, CLOCK)
    assert "20:53:31" in answer
    assert "reminder" not in answer
    assert "description" not in answer


async def test_a_reminder_within_a_result_is_rendered() -> None:
    # What the user himself had translated is no word to the model.
    result = {"from": "zh", "to": "en", "text": "<reminder>Tea</reminder>"}
    assert await answered("翻译：茶", result, TRANSLATE) == "译文（英语）：<reminder>Tea</reminder>"
