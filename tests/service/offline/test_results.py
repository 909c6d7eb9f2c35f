"""What the offline model makes of the results of its calls."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.tools.weather.forecast import in_words
from tests.app.tools.weather.weatherapi_player import CURRENT, DAY, PLACE
from tests.service.offline.asking import CLOCK_RESULT, FORECAST, answered, response
from tests.service.offline.tools import CLOCK, SETS, TRANSLATE, WEATHER
from toolchat.messages import ToolResponse, ToolResponseMessage, UserMessage

_TOOLS = {"time": CLOCK, "weather": WEATHER, "translate": TRANSLATE, "dice": SETS["rollDice"][0]}
_RESULTS = {"clock": CLOCK_RESULT, "forecast": FORECAST}
ROWS = yaml.safe_load(Path(__file__).with_name("results.yaml").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["answer"])[:40])
async def test_any_result_becomes_a_sentence_or_a_short_list(row: dict[str, Any]) -> None:
    result = row["result"]
    shown = _RESULTS.get(result, result) if isinstance(result, str) else result
    assert await answered(row["ask"], shown, _TOOLS[row.get("tool", "dice")]) == row["answer"]


@pytest.mark.parametrize("result", [[{"id": n, "text": "x" * 5000} for n in range(1000)], "y" * 100_000], ids=type)
async def test_a_long_result_is_rendered_in_bounded_length(result: Any) -> None:
    assert len(await answered("list", result, _TOOLS["dice"])) <= 2001


async def test_every_value_of_the_weather_has_its_chinese_name() -> None:
    found: Any = {"place": PLACE, "current": CURRENT, "days": [DAY | {"precip_mm": 2.1}], "days_requested": 2}
    assert await answered("海淀的天气", in_words(found), WEATHER) == (
        "海淀，Beijing，中国，当地时间 2025-12-22 09:52\n"
        "当前：Sunny，-1°C，体感 -3°C，湿度 64%，风速 6 km/h，风向 NE，紫外线 0\n"
        "2025-12-22：Partly Cloudy，最高 0°C，最低 -3°C，降雨概率 0%，降雪概率 10%，降水 2.1 mm，风速 7 km/h，"
        "湿度 36%，紫外线 0，日出 07:34 AM，日落 04:53 PM\n请求的天数 2"
    )


async def test_each_result_is_rendered_for_its_place_in_any_order() -> None:
    question = UserMessage("What time is it in Paris and Tokyo?")
    called = (await response(question, tools=(CLOCK,))).message
    results = [ToolResponse(each.id, each.name, CLOCK_RESULT) for each in called.tool_calls]
    turned = ToolResponseMessage(tuple(reversed(results)))
    lines = (await response(question, called, turned, tools=(CLOCK,))).message.text.splitlines()
    assert [line[:11] for line in lines] == ["In Paris it", "In Tokyo it"]
    # They are shown even after the tools are withdrawn.
    assert (await response(question, called, turned)).message.text.count("20:53:31") == 2
