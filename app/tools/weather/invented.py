"""The demo's invented weather in WeatherAPI's format, with the fields that the tool reads."""

import hashlib
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from app.places.gazetteer import find_place

_CONDITIONS = (
    ("Sunny", "晴天", 0),
    ("Partly cloudy", "局部多云", 5),
    ("Overcast", "阴天", 25),
    ("Light rain", "小雨", 75),
)


def invented_forecast(name: str, days: int, chinese: bool) -> dict[str, Any]:
    """Invent a response; the values depend on the name and the date."""
    place = find_place(name) or find_place(name.partition(",")[0])
    now = datetime.now(ZoneInfo(place.zone if place else "UTC"))
    shown = next((each for each in place.names if each > "㐀"), name) if place and chinese else name
    forecast = [_day(name, now + timedelta(n), chinese) for n in range(days)]
    today = forecast[0]["day"]
    current = {"temp_c": today["mintemp_c"] + 5, "condition": today["condition"], "humidity": 50, "wind_kph": 9}
    location = {"name": shown, "region": "(sandbox)", "country": "Sandbox", "localtime": f"{now:%Y-%m-%d %H:%M}"}
    return {"location": location, "current": current, "forecast": {"forecastday": forecast}}


def _day(name: str, day: datetime, chinese: bool) -> dict[str, Any]:
    number = hashlib.blake2b(f"{name} {day.date()}".encode(), digest_size=1).digest()[0]
    english, translated, rain = _CONDITIONS[number % len(_CONDITIONS)]
    low = number % 15
    figures = {"mintemp_c": low, "maxtemp_c": low + 8, "daily_chance_of_rain": rain}
    return {"date": f"{day.date()}", "day": figures | {"condition": {"text": translated if chinese else english}}}
