"""Forecasts that also answer later questions, through the service's own door."""

import asyncio

import httpx
import pytest

from app.api.schemas import ChatAnswer, ToolCallRecord
from tests.chat.played import JSON
from tests.serving import service
from tests.tools.weather.weatherapi_player import KEY, played


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


async def test_without_a_cache_time_every_question_requests_a_forecast() -> None:
    async with played() as (_, player):
        environment = {"WEATHER_API_KEY": KEY, "WEATHER_BASE_URL": player.url, "WEATHER_CACHE_SECONDS": "0"}
        async with service(**environment) as http:
            for variant in ("function", "function", "method", "method"):
                reply = await http.get(f"/weather/chat-tool-{variant}", headers=JSON)
                assert "cached" not in reply.json()["tool_calls"][0]
    assert len(player.arrivals) == 4
