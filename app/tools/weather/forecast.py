"""What the model is told of a forecast: under 400 tokens for three days instead of 24,000.

Units are WeatherAPI's (degrees Celsius, mm, km/h, per cent). A figure that is missing, of another type or
beyond any weather is left out; nothing is put in its place.
"""

from collections.abc import Mapping
from typing import Any, cast

from app.errors import UpstreamInvalid
from app.tools.weather.results import Weather

__all__ = ["slim"]

_MAX_TEXT = 100
_BEYOND_WEATHER = 100_000

_PLACE = {"name": "name", "region": "region", "country": "country", "localtime": "local_time"}
_CURRENT = {name: name for name in ("temp_c", "feelslike_c", "humidity", "wind_kph", "wind_dir", "precip_mm", "uv")}
_DAY = {
    "maxtemp_c": "maxtemp_c",
    "mintemp_c": "mintemp_c",
    "daily_chance_of_rain": "chance_of_rain",
    "daily_chance_of_snow": "chance_of_snow",
    "totalprecip_mm": "precip_mm",
    "maxwind_kph": "maxwind_kph",
    "avghumidity": "humidity",
    "uv": "uv",
}
_TEXTS = frozenset(("name", "region", "country", "localtime", "wind_dir", "sunrise", "sunset", "date", "text"))


def slim(body: Any, days: int) -> Weather:
    """Keep what answers a question about the weather.

    Args:
        body: WeatherAPI's answer.
        days: how many days were asked for.

    Returns:
        ``place`` (the one that was found), ``current`` and ``days``; ``days_requested`` and ``days_delivered`` when
        fewer days came than were asked for.

    Raises:
        UpstreamInvalid: the place or every day is missing.
    """
    place = _kept(_object(body, "location"), _PLACE)
    forecast = _object(body, "forecast").get("forecastday")
    found = [day for day in map(_day, forecast if isinstance(forecast, list) else ()) if len(day) > 1][:days]
    if "name" not in place or not found:
        raise UpstreamInvalid("WeatherAPI sent an answer without a place or a forecast")
    result: dict[str, Any] = {"place": place}
    if current := _current(_object(body, "current")):
        result["current"] = current
    result["days"] = found
    if len(found) < days:
        result |= {"days_requested": days, "days_delivered": len(found)}
    return cast(Weather, result)


def _current(current: Mapping[str, Any]) -> dict[str, Any]:
    return _kept(_object(current, "condition"), {"text": "text"}) | _kept(current, _CURRENT)


def _day(entry: Any) -> dict[str, Any]:
    """One day; empty without a date."""
    day = _object(entry, "day")
    date = _kept(entry, {"date": "date"}) if isinstance(entry, dict) else {}
    if not date:
        return {}
    weather = _kept(_object(day, "condition"), {"text": "text"}) | _kept(day, _DAY)
    sun = _kept(_object(entry, "astro"), {"sunrise": "sunrise", "sunset": "sunset"})
    return date | weather | sun if weather else {}


def _object(parent: Any, key: str) -> Mapping[str, Any]:
    child = parent.get(key) if isinstance(parent, dict) else None
    return child if isinstance(child, dict) else {}


def _kept(source: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    values = {new: _text(source.get(old)) if old in _TEXTS else _number(source.get(old)) for old, new in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join("".join(each if each.isprintable() else " " for each in value[: 4 * _MAX_TEXT]).split())
    return text[:_MAX_TEXT].rstrip() or None


def _number(value: Any) -> int | float | None:
    """A number that can be weather; ``NaN`` and infinities fail the comparison."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < _BEYOND_WEATHER else None
