"""A server that plays WeatherAPI, byte for byte, and a client of the weather tool for it."""

import asyncio
import copy
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from pydantic import SecretStr

from app.tools.weather.client import WeatherClient, WeatherSettings
from app.tools.weather.tools import WeatherService, WeatherTools
from app.tools.weather.weatherapi import WeatherApiClient
from tests.app.tools.upstream import Player, limited, playing
from tests.waiting import PATIENCE
from toolchat.http.client import OutboundHttp
from toolchat.service.settings.base import environment_class
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider

KEY = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
HTML = b"<html><body>It is 21 degrees</body></html>"


def day(date: str = "2025-12-22") -> dict[str, Any]:
    return {
        "date": date,
        "date_epoch": 1766361600,
        "day": {
            "maxtemp_c": 0.5,
            "maxtemp_f": 32.8,
            "mintemp_c": -2.7,
            "maxwind_kph": 7.2,
            "totalprecip_mm": 0,
            "avghumidity": 36,
            "daily_chance_of_rain": 0,
            "daily_chance_of_snow": 10,
            "condition": {"text": "Partly Cloudy ", "icon": "//cdn.weatherapi.com/116.png", "code": 1003},
            "uv": 0.2,
        },
        "astro": {"sunrise": "07:34 AM", "sunset": "04:53 PM", "moon_phase": "Waxing Crescent"},
        "hour": [{"time": f"{date} 12:00", "temp_c": 0}],
    }


def forecast(days: int = 1) -> dict[str, Any]:
    return {
        "location": {
            "name": "海淀",
            "region": "Beijing",
            "country": "中国",
            "lat": 39.9,
            "localtime": "2025-12-22 09:52",
        },
        "current": {
            "temp_c": -0.6,
            "temp_f": 30.9,
            "condition": {"text": " Sunny", "code": 1000},
            "wind_kph": 5.8,
            "wind_dir": "NE",
            "precip_mm": 0,
            "humidity": 64,
            "feelslike_c": -2.6,
            "uv": 0.2,
        },
        "forecast": {"forecastday": [day(f"2025-12-{22 + number}") for number in range(days)]},
    }


PLACE = {"name": "海淀", "region": "Beijing", "country": "中国", "local_time": "2025-12-22 09:52"}
CURRENT = {
    "text": "Sunny",
    "temp_c": -0.6,
    "feelslike_c": -2.6,
    "humidity": 64,
    "wind_kph": 5.8,
    "wind_dir": "NE",
    "precip_mm": 0,
    "uv": 0.2,
}
DAY = {
    "date": "2025-12-22",
    "text": "Partly Cloudy",
    "maxtemp_c": 0.5,
    "mintemp_c": -2.7,
    "chance_of_rain": 0,
    "chance_of_snow": 10,
    "precip_mm": 0,
    "maxwind_kph": 7.2,
    "humidity": 36,
    "uv": 0.2,
    "sunrise": "07:34 AM",
    "sunset": "04:53 PM",
}


def without(*path: str) -> dict[str, Any]:
    return replaced(None, *path)


def replaced(value: object, *path: str) -> dict[str, Any]:
    body = copy.deepcopy(forecast())
    parent: Any = body
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return body


def reply(body: object, status: int = 200) -> bytes:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d Played\r\nContent-Length: %d\r\n\r\n" % (status, len(payload)) + payload


def error(code: object, status: int = 400) -> bytes:
    return reply({"error": {"code": code, "message": f"MESSAGE OF WEATHERAPI {KEY}"}}, status)


def settings(**values: Any) -> WeatherSettings:
    return cast("WeatherSettings", environment_class(WeatherSettings, "WEATHER_")(_env_file=None, **values))


@asynccontextmanager
async def client_of(configured: WeatherSettings, **limits: float) -> AsyncGenerator[WeatherClient, None]:
    http = OutboundHttp()
    try:
        async with asyncio.timeout(PATIENCE):
            yield limited(WeatherApiClient, **limits)(configured, http)
    finally:
        await http.aclose()


@asynccontextmanager
async def player_of(*script: bytes) -> AsyncGenerator[Player, None]:
    """Play answers; the last one again and again."""
    left = list(script)
    async with playing(lambda _: left.pop(0) if len(left) > 1 else left[0], "/v1") as player:
        yield player


@asynccontextmanager
async def played(*script: bytes, **values: Any) -> AsyncGenerator[tuple[WeatherClient, Player], None]:
    async with player_of(*script or [reply(forecast())]) as player:
        limits = {"timeout": values.pop("timeout")} if "timeout" in values else {}
        configured = settings(**{"api_key": SecretStr(KEY), "base_url": player.url} | values)
        async with client_of(configured, **limits) as client:
            yield client, player


def both(client: WeatherClient) -> tuple[ToolCallback, ToolCallback]:
    (method,) = MethodToolCallbackProvider(WeatherTools(client)).tool_callbacks()
    return FunctionToolCallback.from_function(WeatherService(client)), method


async def called(callback: ToolCallback, **arguments: Any) -> Any:
    """The result for the client."""
    return (await callback.result(json.dumps(arguments), ToolContext())).data


async def failure_of(client: WeatherClient, city: str = "Beijing", days: int = 3) -> ToolExecutionError:
    with pytest.raises(ToolExecutionError) as caught:
        await client.forecast(city, days)
    return caught.value
