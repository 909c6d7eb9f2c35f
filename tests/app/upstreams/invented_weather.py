"""Invented weather in WeatherAPI's format and units."""

import hashlib
import math
import pkgutil
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from app.places.gazetteer import Place

# Region, latitude and longitude of places far from the first city of their time zone.
_SPOTS = {
    "Beijing, China": ("Beijing", 39.9, 116.39),
    "Guangzhou, China": ("Guangdong", 23.12, 113.25),
    "Shenzhen, China": ("Guangdong", 22.53, 114.13),
    "Hangzhou, China": ("Zhejiang", 30.26, 120.17),
    "Chengdu, China": ("Sichuan", 30.67, 104.07),
    "Harbin, China": ("Heilongjiang", 45.75, 126.65),
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


def invented_forecast(place: Place, days: int, hour: int | None, chinese: bool) -> dict[str, Any]:
    """Invent a response of ``forecast.json``.

    Args:
        place: the place; the values depend on it and on the date, not on the name in the request.
        days: the number of days, today first.
        hour: the only hour of each day to return; ``None``: all 24.
        chinese: whether names and conditions are in Chinese.
    """
    spot = _Spot(place, chinese)
    moment = datetime.now(spot.zone)
    today = moment.date()
    current = _hour(spot, today, moment.hour)
    updated = {"last_updated_epoch": current.pop("time_epoch"), "last_updated": current.pop("time")}
    for only_hourly in ("will_it_rain", "chance_of_rain", "will_it_snow", "chance_of_snow", "snow_cm"):
        del current[only_hourly]
    return {
        "location": spot.location(moment),
        "current": updated | current,
        "forecast": {"forecastday": [_day(spot, today + timedelta(days=offset), hour) for offset in range(days)]},
    }


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place and the language of the response."""

    place: Place
    chinese: bool

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.place.zone)

    @property
    def latitude(self) -> float:
        return self._known[1]

    def location(self, moment: datetime) -> dict[str, Any]:
        """The ``location`` object, with the local time."""
        region, latitude, longitude = self._known
        translated = next((name for name in self.place.names if name >= "㐀"), self.place.name)
        return {
            "name": translated if self.chinese else self.place.name,
            "region": f"{region} (sandbox)",
            "country": "Sandbox",
            "lat": round(latitude, 2),
            "lon": round(longitude, 2),
            "tz_id": self.place.zone,
            "localtime_epoch": int(moment.timestamp()),
            "localtime": f"{moment:%Y-%m-%d %H:%M}",
        }

    def share(self, *what: object) -> float:
        """A number from 0 to 1 that depends only on the place and the arguments."""
        key = "|".join(map(str, (self.place.english, self.place.region, *what)))
        return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "big") / 2**32

    @property
    def _known(self) -> tuple[str, float, float]:
        region = self.place.region or self.place.country or self.place.name
        return _SPOTS.get(self.place.english) or (region, *_coordinates().get(self.place.zone, (0, 0)))


@cache
def _coordinates() -> dict[str, tuple[int, int]]:
    """Latitude and longitude of each time zone's first city, in whole degrees; old names of zones have none."""
    listed = (pkgutil.get_data("tzdata", "zoneinfo/zone.tab") or b"").decode()
    rows = re.findall(r"^\w\w\t([+-]\d\d)\d*([+-]\d{3})\d*\t(\S+)", listed, re.MULTILINE)
    return {zone: (int(latitude), int(longitude)) for latitude, longitude, zone in rows}


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
    season = math.cos((day.timetuple().tm_yday - 200) / 365 * 2 * math.pi) * spot.latitude * 0.35
    mean = 28 - abs(spot.latitude) * 0.45 + season + spot.share(day, "temperature") * 6 - 3
    return round(mean + math.cos((hour - 14) / 24 * 2 * math.pi) * 4, 1)


def _condition(spot: _Spot, day: date, is_day: int) -> tuple[dict[str, Any], int, int]:
    code, picture, english, chinese, rain, cloud = _CONDITIONS[int(spot.share(day, "sky") * len(_CONDITIONS))]
    icon = f"//cdn.weatherapi.com/weather/64x64/{'day' if is_day else 'night'}/{picture}.png"
    return {"text": chinese if spot.chinese else english, "icon": icon, "code": code}, rain, cloud


def _both(
    name: str, *, celsius: float | None = None, kilometres: float | None = None, millimetres: float = 0
) -> dict[str, Any]:
    """A value in metric and imperial units."""
    if celsius is not None:
        return {f"{name}_c": round(celsius, 1), f"{name}_f": round(celsius * 1.8 + 32, 1)}
    if kilometres is not None:
        return {f"{name}_mph": round(kilometres / 1.609, 1), f"{name}_kph": round(kilometres, 1)}
    return {f"{name}_mm": millimetres, f"{name}_in": round(millimetres / 25.4, 2)}
