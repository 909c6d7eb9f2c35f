"""The two forms of the weather tool: what the model is told of them, what it may ask, what it gets."""

import pytest
from pydantic_core import from_json

from tests.tools.weather.weatherapi_player import CURRENT, DAY, PLACE, both, called, forecast, played, reply
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError


async def test_both_forms_have_the_documents_names_and_the_same_schema() -> None:
    async with played() as (client, _):
        function, method = both(client)
    assert function.definition.name == "getWeatherFunction"
    assert method.definition.name == "getWeatherServiceMethod"
    for definition, city in ((function.definition, "city name"), (method.definition, "City name")):
        assert definition.description == "Use api.weather to get weather information."
        schema = {key: value for key, value in definition.input_schema.items() if key != "description"}
        assert schema == {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": city},
                "days": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 14,
                    "description": "Number of days of weather forecast. Value ranges from 1 to 14",
                },
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        }


async def test_both_forms_answer_with_the_place_the_present_and_each_day() -> None:
    async with played(reply(forecast())) as (client, _):
        answers = [await called(callback, city="Beijing", days=1) for callback in both(client)]
    assert answers == [{"place": PLACE, "current": CURRENT, "days": [DAY]}] * 2


async def test_three_days_stay_below_a_kilobyte() -> None:
    async with played(reply(forecast(3))) as (client, _):
        function, _method = both(client)
        answer = await function.call('{"city": "Beijing", "days": 3}', ToolContext())
    assert len(answer.encode()) < 1024
    assert [each["date"] for each in from_json(answer)["days"]] == ["2025-12-22", "2025-12-23", "2025-12-24"]


@pytest.mark.parametrize("days", [0, 15, -1, 1.5, "many", None, 10**30])
async def test_days_out_of_range_are_never_sent(days: object) -> None:
    async with played() as (client, player):
        for callback in both(client):
            with pytest.raises(ToolArgumentsError, match="days"):
                await called(callback, city="Beijing", days=days)
    assert player.arrivals == []
