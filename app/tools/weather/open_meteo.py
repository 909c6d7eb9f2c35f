"""Open-Meteo's forecast, which needs no key: free for non-commercial use, data under CC BY 4.0.

Wire formats: https://open-meteo.com/en/docs and https://open-meteo.com/en/docs/geocoding-api. A forecast is found by
coordinates, so a name costs two requests.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.places.gazetteer import find_place
from app.tools.weather.client import ADVICE, BUSY, FAILED, NO_SUCH_PLACE, WeatherClient, WeatherSettings
from app.tools.weather.forecast import Weather, child_object, select, weather
from app.tools.weather.places import PlaceQuery
from app.upstreams import ErrorRule, JsonReply
from toolchat import OutboundHttp, ProviderQuota
from toolchat.tool_calling.text_normalization import normalize_name

_log = logging.getLogger(__name__)

_BASE_URL = "https://api.open-meteo.com/v1"
_SOURCE = "Open-Meteo.com, CC BY 4.0 (https://open-meteo.com/)"
_CANDIDATES = "20"
"""Places of one name that are compared: 宿州 is the second Suzhou of China, Paris in Texas the fourth of all."""

_CURRENT = {
    "temperature_2m": "temp_c",
    "apparent_temperature": "feelslike_c",
    "relative_humidity_2m": "humidity",
    "wind_speed_10m": "wind_kph",
    "precipitation": "precip_mm",
}
_DAY = {
    "temperature_2m_max": "maxtemp_c",
    "temperature_2m_min": "mintemp_c",
    "precipitation_probability_max": "chance_of_rain",
    "precipitation_sum": "precip_mm",
    "wind_speed_10m_max": "maxwind_kph",
    "uv_index_max": "uv",
}
_CODE = {"weather_code": "code"}
_SUN = {"sunrise": "sunrise", "sunset": "sunset"}
_WINDS = ("N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW")
# Codes of WMO table 4677 that Open-Meteo uses, in English and Chinese.
_CONDITIONS = """
0 Clear|晴; 1 Mainly clear|大部晴朗; 2 Partly cloudy|局部多云; 3 Overcast|阴; 45 Fog|雾; 48 Freezing fog|冻雾;
51 Light drizzle|小毛毛雨; 53 Drizzle|毛毛雨; 55 Heavy drizzle|大毛毛雨; 56 Freezing drizzle|冻毛毛雨;
57 Freezing drizzle|冻毛毛雨; 61 Light rain|小雨; 63 Moderate rain|中雨; 65 Heavy rain|大雨; 66 Freezing rain|冻雨;
67 Freezing rain|冻雨; 71 Light snow|小雪; 73 Moderate snow|中雪; 75 Heavy snow|大雪; 77 Snow grains|米雪;
80 Light showers|小阵雨; 81 Showers|阵雨; 82 Violent showers|强阵雨; 85 Snow showers|阵雪; 86 Heavy snow showers|强阵雪;
95 Thunderstorm|雷暴; 96 Thunderstorm with hail|雷暴伴冰雹; 99 Thunderstorm with hail|雷暴伴冰雹
"""
_TEXTS = {
    int(code): text.split("|") for code, _, text in (each.strip().partition(" ") for each in _CONDITIONS.split(";"))
}
_SNOW = frozenset((71, 73, 75, 77, 85, 86))

_REFUSED = ErrorRule("unavailable", "the weather service refused the request", ADVICE, "it refused the request")
_USED_UP = ErrorRule(
    ProviderQuota.code,
    "the weather service's free requests are used up",
    ADVICE,
    "the free requests of this address are used up (600 a minute, 5,000 an hour, 10,000 a day)",
)


class OpenMeteoClient(WeatherClient):
    """Looks up forecasts at Open-Meteo, or at a server of one's own with its software."""

    upstream = "Open-Meteo"

    def __init__(self, settings: WeatherSettings, http: OutboundHttp) -> None:
        super().__init__(http)
        self._forecast_url = f"{settings.base_url or _BASE_URL}/forecast"
        self._search_url = f"{settings.geocoding_url}/search"

    async def _look_up(self, query: PlaceQuery, days: int) -> Weather:
        place = await self._place(query)
        params = {
            "latitude": str(place["latitude"]),
            "longitude": str(place["longitude"]),
            "timezone": "auto",
            "forecast_days": str(days),
            "current": ",".join((*_CURRENT, *_CODE, "wind_direction_10m")),
            "daily": ",".join((*_DAY, *_CODE, *_SUN)),
        }
        body = await self._fetch(self._forecast_url, params)
        current = child_object(body, "current")
        shown = select(place, {"name": "name", "admin1": "region", "country": "country"})
        shown |= {name: text.replace("T", " ") for name, text in select(current, {"time": "local_time"}).items()}
        found = weather(self.upstream, shown, _current(current, query), _days(child_object(body, "daily"), query), days)
        found["source"] = _SOURCE
        return found

    async def _place(self, query: PlaceQuery) -> Mapping[str, Any]:
        """Find the place whose region, country and time zone fit the query best.

        Raises:
            ToolExecutionError: there is none of this name (``no-such-place``), or none in the country that was named.
        """
        if query.q[-1].isdigit() and "," in query.q:
            latitude, longitude = query.q.split(",")
            return {"name": query.q, "latitude": latitude, "longitude": longitude}
        known = find_place(query.q)
        parts = [known.name, known.region, known.country, known.zone] if known else query.q.split(",")
        name, *wanted = filter(None, map(str.strip, parts))
        body = await self._fetch(self._search_url, {"name": name, "count": _CANDIDATES, "language": "en"})
        results = body.get("results")
        given = [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []
        usable = [each for each in given if len(select(each, {"latitude": "y", "longitude": "x"})) == 2]
        # Of equal ones the first: Open-Meteo sorts them by their population.
        best = max(usable, key=lambda each: _fit(each, wanted), default=None)
        if best is None or (wanted and not _fit(best, wanted)):
            raise NO_SUCH_PLACE.to_error(self.upstream, _log)
        return best

    async def _fetch(self, url: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        reply = await self._get(url, params)
        if rule := _error_rule(reply):
            raise rule.to_error(self.upstream, _log, status=reply.status)
        return reply.body


def _error_rule(reply: JsonReply) -> ErrorRule | None:
    """Return the rule of an answer; ``None`` if it is not an error."""
    if reply.status == 429:
        reason = reply.body.get("reason")
        return _USED_UP if isinstance(reason, str) and reason.startswith(("Hourly", "Daily", "Monthly")) else BUSY
    if reply.status >= 500:
        return FAILED
    return _REFUSED if reply.status != 200 or reply.body.get("error") else None


def _fit(result: Mapping[str, Any], wanted: Sequence[str]) -> int:
    """Count the parts of a query, such as its country, that describe a place."""
    fields = ("admin1", "admin2", "country", "country_code", "timezone")
    described = {normalize_name(text) for field in fields if isinstance(text := result.get(field), str)}
    return sum(not described.isdisjoint(_names(each)) for each in wanted)


def _names(part: str) -> Iterator[str]:
    """The names of a region or country: those of the gazetteer, and what Open-Meteo calls the USA."""
    known = find_place(part)
    yield from map(normalize_name, (part, *(known.names if known else ())))
    if part.upper() in ("USA", "U.S.A."):
        yield "us"


def _current(values: Mapping[str, Any], query: PlaceQuery) -> dict[str, Any]:
    degree = select(values, {"wind_direction_10m": "degree"}).get("degree")
    wind = {} if degree is None else {"wind_dir": _WINDS[round(degree / 22.5) % 16]}
    return _condition(values, query) | select(values, _CURRENT) | wind


def _days(daily: Mapping[str, Any], query: PlaceQuery) -> Iterator[dict[str, Any]]:
    """The days of the columns that Open-Meteo sends."""
    dates = daily.get("time")
    for index in range(len(dates) if isinstance(dates, list) else 0):
        columns = {name: column for name, column in daily.items() if isinstance(column, list) and index < len(column)}
        values = {name: column[index] for name, column in columns.items()}
        figures = _condition(values, query) | select(values, _DAY)
        if values.get("weather_code") in _SNOW and "chance_of_rain" in figures:
            figures["chance_of_snow"] = figures.pop("chance_of_rain")
        date = select(values, {"time": "date"})
        sun = {name: time.partition("T")[2] for name, time in select(values, _SUN).items()}
        yield date | figures | sun if date and figures else {}


def _condition(values: Mapping[str, Any], query: PlaceQuery) -> dict[str, str]:
    texts = _TEXTS.get(select(values, _CODE).get("code", -1))
    return {"text": texts[query.chinese]} if texts else {}
