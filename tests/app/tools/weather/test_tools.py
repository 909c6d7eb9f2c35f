"""The weather tool's folder, its two forms, and forecasts that answer later questions."""

import asyncio

import httpx
import pytest

from app.tools.weather.forecast import Day, Weather, in_words
from tests.app.tools.weather.weatherapi_player import (
    CURRENT,
    DAY,
    KEY,
    PLACE,
    both,
    called,
    forecast,
    played,
    reply,
)
from tests.chat.played import JSON
from tests.serving import service
from toolchat.service.api.schemas import ChatAnswer, ToolCallRecord
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError


async def test_both_forms_answer_the_model_in_words_and_the_client_with_each_field() -> None:
    async with played(reply(forecast())) as (client, _):
        answers = [await callback.result('{"city": "Beijing", "days": 1}', ToolContext()) for callback in both(client)]
    assert [each.data for each in answers] == [{"place": PLACE, "current": CURRENT, "days": [DAY]}] * 2
    assert {each.text for each in answers} == {
        "海淀, Beijing, 中国, local time 2025-12-22 09:52\n"
        "now: Sunny, -1°C, feels like -3°C, humidity 64%, wind 6 km/h, wind from NE, UV 0\n"
        "2025-12-22: Partly Cloudy, high 0°C, low -3°C, rain 0%, snow 10%, wind 7 km/h, humidity 36%, UV 0, "
        "sunrise 07:34 AM, sunset 04:53 PM"
    }


def test_the_model_reads_what_is_there_and_no_zero_of_rain_or_snow() -> None:
    day: Day = {"date": "2026-11-20", "chance_of_snow": 0, "chance_of_rain": 0, "precip_mm": 2.1, "maxtemp_c": -0.4}
    found: Weather = {"place": {"name": "Oslo"}, "days": [day], "days_requested": 5, "days_delivered": 1}
    found["source"] = "Open-Meteo.com"
    assert in_words(found) == (
        "Oslo\n2026-11-20: rain 0%, precipitation 2.1 mm, high 0°C\n"
        "days asked for 5, days delivered 1, source Open-Meteo.com"
    )


@pytest.mark.parametrize("days", [0, 15, -1, 1.5, "many", None, 10**30])
async def test_days_out_of_range_are_never_sent(days: object) -> None:
    async with played() as (client, player):
        for callback in both(client):
            with pytest.raises(ToolArgumentsError, match="days"):
                await called(callback, city="Beijing", days=days)
    assert player.arrivals == []


def call_in(answer: httpx.Response) -> ToolCallRecord:
    (call,) = ChatAnswer.model_validate(answer.json()).tool_calls
    return call


@pytest.mark.parametrize("variant", ["function", "method"])
async def test_a_hundred_questions_at_once_about_one_city_cost_one_upstream_call(variant: str) -> None:
    async with played() as (_, player), service(WEATHER_API_KEY=KEY, WEATHER_BASE_URL=player.url) as http:
        asked = (http.get(f"/weather/chat-tool-{variant}", headers=JSON) for _ in range(100))
        calls = [call_in(each) for each in await asyncio.gather(*asked)]
    assert {(each.outcome, each.result) for each in calls} == {("ok", calls[0].result)}
    assert sum(each.cached for each in calls) == 99  # all but one say that their call was not made for them
    assert len(player.arrivals) == 1
