"""A stand-in for WeatherAPI's ``forecast.json``: its whole wire format, with invented data.

``GET /weatherapi/v1/forecast.json`` takes ``q``, ``days``, ``lang`` and ``hour`` as the original does, and the key in
the header or the parameter ``key``. Every answer says what it is: the country is ``Sandbox`` and the region ends in
``(sandbox)``. The same question gives the same answer all day; the local time is always noon. ``days`` above 3
delivers 3, as the free plan does.

Faults on demand, by the key or by ``q`` (without the place then):

========================  ==============================================================
key                       answer
========================  ==============================================================
none                      401 with code 1002
``sandbox-pro``           the forecast, up to 14 days
``error-<code>``          that error; 2009 only for more than 3 days
anything else             the forecast
========================  ==============================================================

========================  ==============================================================
``q``                     answer
========================  ==============================================================
none                      400 with code 1003
``error <code>``          that error, with its HTTP status
``status <number>``       that HTTP status with an HTML body
``nowhere``               400 with code 1006, as for ``error 1006``
``body html``             200 with an HTML page
``body broken``           200 with JSON that ends in the middle
``body shape``            200 with JSON of another shape
``body huge``             200 with 2 MB of JSON
anything else             the forecast
========================  ==============================================================
"""

import hashlib
import math
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

__all__ = ["routes"]

_FREE_DAYS = 3
_MOST_DAYS = 14
_PAGE = "<!doctype html><title>Sandbox</title><p>Not JSON."

_ERRORS = {
    1002: (401, "API key is invalid or not provided."),
    1003: (400, "Parameter q is missing."),
    1005: (400, "API URL is invalid."),
    1006: (400, "No matching location found."),
    2006: (401, "API key provided is invalid."),
    2007: (403, "API key has exceeded calls per month quota."),
    2008: (403, "API key has been disabled."),
    2009: (403, "API key does not have access to the resource."),
    9000: (400, "Json body passed in bulk request is invalid."),
    9001: (400, "Json body contains too many locations for bulk request."),
    9999: (400, "Internal application error."),
}

# Name: Chinese name, region, latitude, longitude, zone.
_PLACES = {
    "beijing": ("北京", "Beijing", 39.9, 116.39, "Asia/Shanghai"),
    "shanghai": ("上海", "Shanghai", 31.23, 121.47, "Asia/Shanghai"),
    "guangzhou": ("广州", "Guangdong", 23.12, 113.25, "Asia/Shanghai"),
    "shenzhen": ("深圳", "Guangdong", 22.53, 114.13, "Asia/Shanghai"),
    "hangzhou": ("杭州", "Zhejiang", 30.26, 120.17, "Asia/Shanghai"),
    "chengdu": ("成都", "Sichuan", 30.67, 104.07, "Asia/Shanghai"),
    "harbin": ("哈尔滨", "Heilongjiang", 45.75, 126.65, "Asia/Shanghai"),
    "hong kong": ("香港", "Hong Kong", 22.28, 114.15, "Asia/Hong_Kong"),
    "tokyo": ("东京", "Tokyo", 35.69, 139.69, "Asia/Tokyo"),
    "london": ("伦敦", "Greater London", 51.52, -0.11, "Europe/London"),
    "paris": ("巴黎", "Ile-de-France", 48.87, 2.33, "Europe/Paris"),
    "new york": ("纽约", "New York", 40.71, -74.01, "America/New_York"),
    "sydney": ("悉尼", "New South Wales", -33.88, 151.22, "Australia/Sydney"),
}

# Code, number of the picture, English text, Chinese text, chance of rain, cloud.
_CONDITIONS = (
    (1000, 113, "Sunny", "晴天", 0, 5),
    (1003, 116, "Partly Cloudy ", "局部多云", 5, 40),
    (1006, 119, "Cloudy ", "多云", 15, 75),
    (1009, 122, "Overcast ", "阴天", 25, 100),
    (1183, 296, "Light rain", "小雨", 75, 90),
    (1189, 302, "Moderate rain", "中雨", 88, 100),
)
_ASTRO = {
    "sunrise": "06:12 AM",
    "sunset": "06:05 PM",
    "moonrise": "09:26 AM",
    "moonset": "06:41 PM",
    "moon_phase": "Waxing Crescent",
    "moon_illumination": 4,
    "is_moon_up": 0,
    "is_sun_up": 1,
}
_WINDS = ("N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW")


async def forecast(request: Request) -> Response:
    """Answer as ``forecast.json`` does."""
    key = request.headers.get("key") or request.query_params.get("key", "")
    q = request.query_params.get("q", "").strip()
    asked = _whole_number(request.query_params.get("days"), 1, _MOST_DAYS) or 1
    if fault := _fault(key, q.casefold(), asked):
        return fault
    days = asked if key == "sandbox-pro" else min(asked, _FREE_DAYS)
    chinese = request.query_params.get("lang", "").startswith("zh")
    return JSONResponse(_answer(q, days, _whole_number(request.query_params.get("hour"), 0, 23), chinese))


routes: list[BaseRoute] = [Route("/weatherapi/v1/forecast.json", forecast, methods=["GET"])]


def _fault(key: str, q: str, days: int) -> Response | None:
    if not key:
        return _error(1002)
    if wanted := re.fullmatch(r"error-(\d{4})", key):
        code = int(wanted[1])
        return _error(code) if code != 2009 or days > _FREE_DAYS else None
    if not q:
        return _error(1003)
    if wanted := re.fullmatch(r"(error|status) (\d{3,4})", q):
        number = int(wanted[2])
        return _error(number) if wanted[1] == "error" else HTMLResponse(_PAGE, min(max(number, 200), 599))
    return _error(1006) if q.startswith("nowhere") else _odd_body(q)


def _error(code: int) -> Response:
    status, message = _ERRORS.get(code, (400, "Unknown."))
    return JSONResponse({"error": {"code": code, "message": message}}, status)


def _odd_body(q: str) -> Response | None:
    bodies = {
        "body broken": b'{"location":{"name":"Beijing","region":"Bei',
        "body shape": b'{"location":[],"current":"21 degrees","forecast":{"forecastday":{"day":21}}}',
        "body huge": b'{"location":"' + b"x" * 2_000_000 * (q == "body huge") + b'"}',
    }
    if q == "body html":
        return HTMLResponse(_PAGE)
    return Response(bodies[q], media_type="application/json") if q in bodies else None


def _whole_number(text: str | None, least: int, most: int) -> int | None:
    """Read a parameter, brought into its range; ``None`` where it is none."""
    number = int(text) if text and re.fullmatch("-?[0-9]{1,6}", text) else None
    return number if number is None else min(max(number, least), most)


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where, and in which words."""

    q: str
    location: dict[str, Any]
    chinese: bool

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.location["tz_id"])

    def share(self, *what: object) -> float:
        """A number from 0 to 1 that depends on nothing but the place and the arguments."""
        return _share(self.q.casefold(), *what)


def _share(*what: object) -> float:
    digest = hashlib.blake2b("|".join(map(str, what)).encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**32


def _answer(q: str, days: int, hour: int | None, chinese: bool) -> dict[str, Any]:
    spot = _Spot(q, _location(q, chinese), chinese)
    today = datetime.now(spot.zone).date()
    noon = _hour(spot, today, 12)
    epoch, time = noon.pop("time_epoch"), noon.pop("time")
    only_hourly = ("will_it_rain", "chance_of_rain", "will_it_snow", "chance_of_snow", "snow_cm")
    current = {name: value for name, value in noon.items() if name not in only_hourly}
    return {
        "location": spot.location | {"localtime_epoch": epoch, "localtime": time},
        "current": {"last_updated_epoch": epoch, "last_updated": time} | current,
        "forecast": {"forecastday": [_day(spot, today + timedelta(days=offset), hour) for offset in range(days)]},
    }


def _location(q: str, chinese: bool) -> dict[str, Any]:
    name, *around = (part.strip() for part in q.split(","))
    zone = "Asia/Shanghai" if around and around[-1].casefold() == "china" else "Etc/UTC"
    elsewhere = (name.title(), around[0] if around else "", _share(q, "lat") * 90 - 30, _share(q, "lon") * 300 - 150)
    translated, region, latitude, longitude, zone = _PLACES.get(name.casefold(), (*elsewhere, zone))
    return {
        "name": translated if chinese else name.title(),
        "region": f"{region} (sandbox)".strip(),
        "country": "Sandbox",
        "lat": round(latitude, 2),
        "lon": round(longitude, 2),
        "tz_id": zone,
    }


def _day(spot: _Spot, day: date, hour: int | None) -> dict[str, Any]:
    condition, rain, _ = _condition(spot, day, is_day=1)
    high, low = _temperature(spot, day, 14), _temperature(spot, day, 2)
    summary = (
        _both("maxtemp", celsius=high)
        | _both("mintemp", celsius=low)
        | _both("avgtemp", celsius=(high + low) / 2)
        | _both("maxwind", kilometres=6 + spot.share(day, "speed") * 20)
        | _both("totalprecip", millimetres=9.6 if rain > 50 else 0)
        | {"totalsnow_cm": 0, "avgvis_km": 10, "avgvis_miles": 6, "avghumidity": 40 + rain // 2}
        | {"daily_will_it_rain": int(rain > 50), "daily_chance_of_rain": rain}
        | {"daily_will_it_snow": 0, "daily_chance_of_snow": 0, "condition": condition, "uv": 4}
    )
    hours = [_hour(spot, day, each) for each in (range(24) if hour is None else (hour,))]
    return {"date": day.isoformat(), "date_epoch": _epoch(spot, day, 0), "day": summary, "astro": _ASTRO, "hour": hours}


def _hour(spot: _Spot, day: date, hour: int) -> dict[str, Any]:
    celsius, is_day, degree = _temperature(spot, day, hour), int(6 <= hour < 18), int(spot.share(day, "wind") * 360)
    condition, rain, cloud = _condition(spot, day, is_day)
    return (
        {"time_epoch": _epoch(spot, day, hour), "time": f"{day.isoformat()} {hour:02}:00"}
        | _both("temp", celsius=celsius)
        | {"is_day": is_day, "condition": condition}
        | _both("wind", kilometres=4 + spot.share(day, "speed") * 20)
        | {"wind_degree": degree, "wind_dir": _WINDS[int(degree / 22.5 + 0.5) % 16]}
        | {"pressure_mb": 1013, "pressure_in": 29.91}
        | _both("precip", millimetres=1.2 if rain > 50 else 0)
        | {"snow_cm": 0, "humidity": 40 + rain // 2, "cloud": cloud}
        | _both("feelslike", celsius=celsius - 1.4)
        | _both("windchill", celsius=celsius - 1.4)
        | _both("heatindex", celsius=celsius)
        | _both("dewpoint", celsius=celsius - 8)
        | {"will_it_rain": int(rain > 50), "chance_of_rain": rain, "will_it_snow": 0, "chance_of_snow": 0}
        | {"vis_km": 10, "vis_miles": 6, "uv": 4 * is_day}
        | _both("gust", kilometres=8 + spot.share(day, "speed") * 30)
    )


def _epoch(spot: _Spot, day: date, hour: int) -> int:
    return int(datetime(day.year, day.month, day.day, hour, tzinfo=spot.zone).timestamp())


def _temperature(spot: _Spot, day: date, hour: int) -> float:
    latitude: float = spot.location["lat"]
    season = math.cos((day.timetuple().tm_yday - 200) / 365 * 2 * math.pi) * latitude * 0.35
    mean = 28 - abs(latitude) * 0.45 + season + spot.share(day, "temperature") * 6 - 3
    return round(mean + math.cos((hour - 14) / 24 * 2 * math.pi) * 4, 1)


def _condition(spot: _Spot, day: date, is_day: int) -> tuple[dict[str, Any], int, int]:
    code, picture, english, chinese, rain, cloud = _CONDITIONS[int(spot.share(day, "sky") * len(_CONDITIONS))]
    icon = f"//cdn.weatherapi.com/weather/64x64/{'day' if is_day else 'night'}/{picture}.png"
    return {"text": chinese if spot.chinese else english, "icon": icon, "code": code}, rain, cloud


def _both(
    name: str, *, celsius: float | None = None, kilometres: float | None = None, millimetres: float = 0
) -> dict[str, Any]:
    """A figure in metric and in imperial units."""
    if celsius is not None:
        return {f"{name}_c": round(celsius, 1), f"{name}_f": round(celsius * 1.8 + 32, 1)}
    if kilometres is not None:
        return {f"{name}_mph": round(kilometres / 1.609, 1), f"{name}_kph": round(kilometres, 1)}
    return {f"{name}_mm": millimetres, f"{name}_in": round(millimetres / 25.4, 2)}
