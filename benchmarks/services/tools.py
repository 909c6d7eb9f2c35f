"""The tools, the same for every peer: the time of a zone, a forecast of about 15 kB made short, and some to offer."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

import aiohttp
from pydantic_core import from_json, to_json

__all__ = ["TIME_SCHEMA", "WEATHER_SCHEMA", "Tools", "many"]

TIME_SCHEMA = {
    "type": "object",
    "properties": {"timeZoneId": {"type": "string", "description": "Time zone id of the city, as Continent/City"}},
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
            timeZoneId: Time zone id of the city, as Continent/City.
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

    async def translate(self, text: str, source: str, target: str) -> str:
        """Translate a text.

        Args:
            text: Content that needs to be translated.
            source: Source language that needs to be translated.
            target: Target language to translate into.
        """
        raise NotImplementedError

    def of_agents(self) -> Mapping[str, Sequence[Callable[..., Any]]]:
        """The tools of each agent that a peer has, by its name."""
        time, weather = self.get_time, self.get_weather
        all_three = (time, weather, self.translate)
        return {"time": (time,), "weather": (weather,), "chat": all_three, "many": many(), "session": (time,)}


def many() -> Sequence[Callable[..., Any]]:
    """A hundred tools, of which one looks up a forecast."""
    names = [f"{verb}_{noun}" for noun in _NOUNS.split() for verb in _VERBS.split()]
    return [_looking_up(name) for name in ("get_forecast", *names[1:])]


_VERBS = "create list update delete export import archive approve cancel send"
_NOUNS = "invoice order customer contract shipment payment refund ticket project task"


def _looking_up(name: str) -> Callable[..., Any]:
    async def tool(city: str, day: str = "today", detail: Literal["short", "full"] = "short") -> str:
        return f"Nothing out of the ordinary in {city} {day}: {detail}."

    tool.__name__ = name
    tool.__doc__ = f"""{name.replace("_", " ").capitalize()} for one city, when the user asks for exactly that.

    Args:
        city: City that it is about, in English.
        day: Day on which it takes effect.
        detail: How much to tell.
    """
    return tool


def _slim(body: Any) -> dict[str, Any]:
    current = body["current"]
    days = [
        {"date": each["date"], "text": each["day"]["condition"]["text"], **{name: each["day"][name] for name in _DAY}}
        for each in body["forecast"]["forecastday"]
    ]
    shown = {"text": current["condition"]["text"], **{name: current[name] for name in _CURRENT}}
    return {"place": body["location"], "current": shown, "days": days}
