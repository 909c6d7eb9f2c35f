"""The two tools, the same for every peer: the time of a zone, and a forecast of about 15 kB made short."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import aiohttp
from pydantic_core import from_json, to_json

__all__ = ["TIME_SCHEMA", "WEATHER_SCHEMA", "Tools"]

TIME_SCHEMA = {
    "type": "object",
    "properties": {
        "timeZoneId": {"type": "string", "description": "Time zone id of the city in question, as Continent/City"}
    },
    "required": ["timeZoneId"],
}
WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "city name"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}

_CURRENT = ("temp_c", "feelslike_c", "humidity", "wind_kph", "wind_dir", "precip_mm", "uv")
_DAY = ("maxtemp_c", "mintemp_c", "daily_chance_of_rain", "totalprecip_mm", "maxwind_kph", "avghumidity", "uv")


class Tools:
    """The tools over one pooled session; what the frameworks are given."""

    def __init__(self, session: aiohttp.ClientSession, upstream: str) -> None:
        self._session = session
        self._url = f"{upstream}/v1/forecast.json"

    async def get_time(self, timeZoneId: str) -> str:
        """Get the time of a specified city.

        Args:
            timeZoneId: Time zone id of the city in question, as Continent/City.
        """
        now = datetime.now(ZoneInfo(timeZoneId))
        return f"The current time zone is {timeZoneId} and the current time is {now:%Y-%m-%d %H:%M:%S %Z}"

    async def get_weather(self, city: str, days: int) -> str:
        """Use api.weather to get weather information.

        Args:
            city: city name.
            days: Number of days of weather forecast. Value ranges from 1 to 14.
        """
        params = {"q": city, "days": str(days), "hour": "12"}
        async with self._session.get(self._url, params=params, headers={"key": "bench"}) as response:
            return to_json(_slim(from_json(await response.read()))).decode()


def _slim(body: Any) -> dict[str, Any]:
    current = body["current"]
    days = [
        {"date": each["date"], "text": each["day"]["condition"]["text"], **{name: each["day"][name] for name in _DAY}}
        for each in body["forecast"]["forecastday"]
    ]
    shown = {"text": current["condition"]["text"], **{name: current[name] for name in _CURRENT}}
    return {"place": body["location"], "current": shown, "days": days}
