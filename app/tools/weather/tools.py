"""The weather tool, as a function tool and as a method tool."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.places.recognizers import find_city
from app.tools.weather.client import CACHE_SECONDS, WeatherClient
from app.tools.weather.forecast import Weather, in_words
from toolchat import Recognizer, ToolAnswer, tool

_DESCRIPTION = "Use api.weather to get weather information."
_DAYS = "Number of days of weather forecast. Value ranges from 1 to 14"


async def _answer(client: WeatherClient, city: str, days: int) -> ToolAnswer[Weather]:
    found = await client.forecast(city, days)
    return ToolAnswer(in_words(found), found)


class WeatherRequest(BaseModel):
    """Weather Service API request."""

    model_config = ConfigDict(extra="forbid")

    city: Annotated[str, Field(description="city name"), Recognizer(find_city)]
    days: Annotated[int, Field(ge=1, le=14, description=_DAYS, json_schema_extra={"default": 1})]


@tool(name="getWeatherFunction", description=_DESCRIPTION, cache_seconds=CACHE_SECONDS)
class WeatherService:
    """The function tool."""

    def __init__(self, client: WeatherClient) -> None:
        self._client = client

    async def __call__(self, request: WeatherRequest) -> ToolAnswer[Weather]:
        """Look up a forecast; see :meth:`WeatherClient.forecast`."""
        return await _answer(self._client, request.city, request.days)


class WeatherTools:
    """The method tool."""

    def __init__(self, client: WeatherClient) -> None:
        self._client = client

    @tool(name="getWeatherServiceMethod", description=_DESCRIPTION, cache_seconds=CACHE_SECONDS)
    async def get_weather(
        self,
        city: Annotated[str, Field(description="City name"), Recognizer(find_city)],
        days: Annotated[int, Field(ge=1, le=14, description=_DAYS, json_schema_extra={"default": 1})],
    ) -> ToolAnswer[Weather]:
        """Look up a forecast; see :meth:`WeatherClient.forecast`."""
        return await _answer(self._client, city, days)
