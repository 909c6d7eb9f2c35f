"""The forecast in words for the model and in fields for clients, and WeatherAPI's reduced to it.

Three days are about 220 tokens for the model: 350 as JSON, 24,000 as WeatherAPI sends them.

Units are WeatherAPI's (degrees Celsius, mm, km/h, per cent). A value that is missing, of another type or
out of range is left out and not replaced.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads the one of typing only from Python 3.12 on

from toolchat import UpstreamInvalid

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
_TEXTS = frozenset(("name", "region", "country", "local_time", "wind_dir", "sunrise", "sunset", "date", "text"))

_Text = Annotated[str, Field(title="天气 / conditions")]
_Humidity = Annotated[float, Field(title="湿度 / humidity", description="%")]
_Precipitation = Annotated[float, Field(title="降水 / precipitation", description="mm")]
_Uv = Annotated[float, Field(title="紫外线 / UV")]

# What the model reads of a value, with the English title of its field; without an entry, the value itself. In whole
# degrees, since a decimal doubles the tokens of a number and says little in a forecast.
_WORDS: Mapping[str, str] = {
    "date": "",
    "local_time": "local time {}",
    "temp_c": "{:z.0f}°C",
    "feelslike_c": "feels like {:z.0f}°C",
    "mintemp_c": "low {:z.0f}°C",
    "maxtemp_c": "high {:z.0f}°C",
    "chance_of_rain": "rain {:.0f}%",
    "chance_of_snow": "snow {:.0f}%",
    "precip_mm": "precipitation {:g} mm",
    "wind_kph": "wind {:.0f} km/h",
    "maxwind_kph": "wind {:.0f} km/h",
    "wind_dir": "wind from {}",
    "humidity": "humidity {:.0f}%",
    "uv": "UV {:.0f}",
    "sunrise": "sunrise {}",
    "sunset": "sunset {}",
    "days_requested": "days asked for {}",
    "days_delivered": "days delivered {}",
    "source": "source {}",
}
_SILENT_ZEROS = frozenset(("precip_mm", "chance_of_snow"))


class FoundPlace(TypedDict, total=False):
    """The place that the weather service found, which may differ from the requested one."""

    name: Annotated[str, Field(title="名称 / name")]
    region: Annotated[str, Field(title="地区 / region")]
    country: Annotated[str, Field(title="国家 / country")]
    local_time: Annotated[str, Field(title="当地时间 / local time", description="yyyy-MM-dd HH:mm")]


class Current(TypedDict, total=False):
    """The current weather."""

    text: _Text
    temp_c: Annotated[float, Field(title="温度 / temperature", description="°C")]
    feelslike_c: Annotated[float, Field(title="体感 / feels like", description="°C")]
    humidity: _Humidity
    wind_kph: Annotated[float, Field(title="风速 / wind", description="km/h")]
    wind_dir: Annotated[str, Field(title="风向 / wind from", description="one of 16 points, such as NNE")]
    precip_mm: _Precipitation
    uv: _Uv


class Day(TypedDict, total=False):
    """One day of the forecast."""

    date: Annotated[str, Field(title="日期 / date", description="yyyy-MM-dd")]
    text: _Text
    maxtemp_c: Annotated[float, Field(title="最高 / high", description="°C")]
    mintemp_c: Annotated[float, Field(title="最低 / low", description="°C")]
    chance_of_rain: Annotated[float, Field(title="降雨概率 / rain", description="%")]
    chance_of_snow: Annotated[float, Field(title="降雪概率 / snow", description="%")]
    precip_mm: _Precipitation
    maxwind_kph: Annotated[float, Field(title="最大风速 / wind up to", description="km/h")]
    humidity: _Humidity
    uv: _Uv
    sunrise: Annotated[str, Field(title="日出 / sunrise")]
    sunset: Annotated[str, Field(title="日落 / sunset")]


class Weather(TypedDict):
    """The result of the tool for clients."""

    place: Annotated[FoundPlace, Field(title="地点 / place")]
    current: NotRequired[Annotated[Current, Field(title="当前 / now")]]
    days: Annotated[list[Day], Field(title="预报 / forecast", description="today first")]
    days_requested: NotRequired[Annotated[int, Field(title="请求的天数 / days asked for")]]
    days_delivered: NotRequired[Annotated[int, Field(title="实得的天数 / days delivered")]]
    source: NotRequired[Annotated[str, Field(title="来源 / source", description="provider, licence and link")]]


def in_words(found: Weather) -> str:
    """Write the weather for the model: a line for the place, one for now and one a day."""
    lines = [("now", found.get("current", {})), *((each.get("date"), each) for each in found["days"])]
    of_all = {name: value for name, value in found.items() if not isinstance(value, dict | list)}
    described = [f"{name}: {_words(values)}" for name, values in lines if values]
    return "\n".join(filter(None, (_words(found["place"]), *described, _words(of_all))))


def _words(values: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in values.items() if value or name not in _SILENT_ZEROS}
    return ", ".join(filter(None, (_WORDS.get(name, "{}").format(value) for name, value in shown.items())))


def slim(body: Any, days: int) -> Weather:
    """Reduce an answer of WeatherAPI to the values that questions about the weather need.

    Args:
        body: WeatherAPI's answer.
        days: number of requested days.

    Raises:
        UpstreamInvalid: the place or every day is missing.
    """
    place = select(child_object(body, "location"), _PLACE)
    forecast = child_object(body, "forecast").get("forecastday")
    found = list(map(_day, forecast if isinstance(forecast, list) else ()))
    current = child_object(body, "current")
    shown = select(child_object(current, "condition"), {"text": "text"}) | select(current, _CURRENT)
    return weather("WeatherAPI", place, shown, found, days)


def weather(
    upstream: str, place: Mapping[str, Any], current: Mapping[str, Any], found: Iterable[Mapping[str, Any]], days: int
) -> Weather:
    """Assemble the result of the tool.

    Args:
        upstream: the provider's name in errors.
        place: the place that was found.
        current: the current weather; left out if it is empty.
        found: the days, today first; those without a value beside the date are left out.
        days: number of requested days; if fewer are there, the result says so.

    Raises:
        UpstreamInvalid: the place has no name, or there is no day.
    """
    kept = [day for day in found if len(day) > 1][:days]
    if "name" not in place or not kept:
        raise UpstreamInvalid(f"{upstream} sent an answer without a place or a forecast")
    result: dict[str, Any] = {"place": place} | ({"current": current} if current else {}) | {"days": kept}
    if len(kept) < days:
        result |= {"days_requested": days, "days_delivered": len(kept)}
    return cast(Weather, result)


def _day(entry: Any) -> dict[str, Any]:
    """Reduce one day; empty without a date."""
    day = child_object(entry, "day")
    date = select(entry, {"date": "date"}) if isinstance(entry, dict) else {}
    if not date:
        return {}
    weather = select(child_object(day, "condition"), {"text": "text"}) | select(day, _DAY)
    sun = select(child_object(entry, "astro"), {"sunrise": "sunrise", "sunset": "sunset"})
    return date | weather | sun if weather else {}


def child_object(parent: Any, key: str) -> Mapping[str, Any]:
    """Return an object within another; empty if there is none."""
    child = parent.get(key) if isinstance(parent, dict) else None
    return child if isinstance(child, dict) else {}


def select(source: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the usable values under their new names: texts of places, times and conditions, and numbers."""
    values = {new: _text(source.get(old)) if new in _TEXTS else _number(source.get(old)) for old, new in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join("".join(each if each.isprintable() else " " for each in value[: 4 * _MAX_TEXT]).split())
    return text[:_MAX_TEXT].rstrip() or None


def _number(value: Any) -> int | float | None:
    """Return a number in a plausible range; ``NaN`` and infinities fail the comparison."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < _BEYOND_WEATHER else None
