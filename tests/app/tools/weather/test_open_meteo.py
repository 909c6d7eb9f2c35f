"""Open-Meteo: what is asked, the forecast for the model, and the result of every failure."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from app.tools.weather import create_client, module
from app.tools.weather.open_meteo import OpenMeteoClient
from tests.app.tools.upstream import Player, limited
from tests.app.tools.weather.weatherapi_player import failure_of, player_of, reply, settings
from tests.chat.played import JSON
from tests.serving import service
from toolchat.errors import UpstreamInvalid, UpstreamTimeout
from toolchat.http.client import OutboundHttp
from toolchat.service.tool_modules.discovery import ConfiguredModule


def place(name: str, region: str, country: str, zone: str, **values: Any) -> dict[str, Any]:
    known = {"id": 1, "latitude": 31.3, "longitude": 120.6, "elevation": 9.0, "population": 5_000_000}
    return known | {"name": name, "admin1": region, "country": country, "timezone": zone} | values


JIANGSU = place("Suzhou", "Jiangsu", "China", "Asia/Shanghai", country_code="CN")
ANHUI = place("Suzhou", "Anhui", "China", "Asia/Shanghai", country_code="CN", latitude=33.6, longitude=117.0)
TEXAS = place("Paris", "Texas", "United States", "America/Chicago", country_code="US", latitude=33.7, longitude=-95.6)
PARIS = place("Paris", "Île-de-France", "France", "Europe/Paris", country_code="FR", latitude=48.9, longitude=2.3)


def found(*places: object) -> bytes:
    return reply({"results": list(places), "generationtime_ms": 0.5})


def columns(**values: Any) -> dict[str, Any]:
    daily = {
        "time": ["2025-12-22", "2025-12-23"],
        "weather_code": [61, 73],
        "temperature_2m_max": [8.1, 0.5],
        "temperature_2m_min": [2, -2.7],
        "precipitation_probability_max": [80, 90],
        "precipitation_sum": [5.2, 1],
        "wind_speed_10m_max": [12.3, 7.2],
        "uv_index_max": [2.1, None],
        "sunrise": ["2025-12-22T06:51", "2025-12-23T06:52"],
        "sunset": ["2025-12-22T16:58", "2025-12-23T16:59"],
    }
    return daily | values


def forecast(**values: Any) -> dict[str, Any]:
    current = {"time": "2025-12-22T09:45", "interval": 900, "temperature_2m": 3.4, "apparent_temperature": 0.9}
    current |= {"relative_humidity_2m": 81, "precipitation": 0.1, "weather_code": 3, "wind_speed_10m": 9.4}
    current["wind_direction_10m"] = 351
    return {"latitude": 31.3, "timezone": "Asia/Shanghai", "current": current, "daily": columns()} | values


async def looked_up(city: str, days: int, *script: bytes, **limits: float) -> tuple[Any, Player]:
    async with player_of(*script) as player:
        http = OutboundHttp()
        chosen = settings(provider="open_meteo", base_url=player.url, geocoding_url=f"{player.url}/geo")
        try:
            return await limited(OpenMeteoClient, **limits)(chosen, http).forecast(city, days), player
        finally:
            await http.aclose()


async def test_the_model_gets_the_same_weather_as_from_the_other_provider_with_source_and_licence() -> None:
    answer, player = await looked_up("苏州", 3, found(JIANGSU), reply(forecast()))
    assert answer == {
        "place": {"name": "Suzhou", "region": "Jiangsu", "country": "China", "local_time": "2025-12-22 09:45"},
        "current": {"text": "阴", "temp_c": 3.4, "feelslike_c": 0.9, "humidity": 81, "wind_kph": 9.4, "precip_mm": 0.1}
        | {"wind_dir": "N"},
        "days": [
            {"date": "2025-12-22", "text": "小雨", "maxtemp_c": 8.1, "mintemp_c": 2, "chance_of_rain": 80}
            | {"precip_mm": 5.2, "maxwind_kph": 12.3, "uv": 2.1, "sunrise": "06:51", "sunset": "16:58"},
            {"date": "2025-12-23", "text": "中雪", "maxtemp_c": 0.5, "mintemp_c": -2.7, "chance_of_snow": 90}
            | {"precip_mm": 1, "maxwind_kph": 7.2, "sunrise": "06:52", "sunset": "16:59"},
        ],
        "days_requested": 3,
        "days_delivered": 2,
        "source": "Open-Meteo.com, CC BY 4.0 (https://open-meteo.com/)",
    }
    search, asked = (dict(arrival.parameters) for arrival in player.arrivals)
    assert search == {"name": "Suzhou", "count": "20", "language": "en"}
    assert {"latitude": "31.3", "longitude": "120.6", "timezone": "auto", "forecast_days": "3"}.items() <= asked.items()


@pytest.mark.parametrize(
    ("city", "name", "results", "chosen"),
    [
        ("苏州", "Suzhou", [ANHUI, JIANGSU], JIANGSU),
        ("宿州", "Suzhou", [JIANGSU, ANHUI], ANHUI),
        ("苏州,安徽", "Suzhou", [JIANGSU, ANHUI], ANHUI),
        ("Paris", "Paris", [TEXAS, PARIS], PARIS),
        ("Paris, Texas", "Paris", [PARIS, TEXAS], TEXAS),
        ("Paris, USA", "Paris", [PARIS, TEXAS], TEXAS),
        ("Hamlet", "Hamlet", [TEXAS, PARIS], TEXAS),
        ("Hamlet, France", "Hamlet", ["?", {"name": "Hamlet"}, TEXAS, PARIS], PARIS),
    ],
)
async def test_of_several_places_the_one_that_fits_the_question_is_taken(
    city: str, name: str, results: list[Any], chosen: dict[str, Any]
) -> None:
    _, player = await looked_up(city, 2, found(*results), reply(forecast()))
    search, asked = (dict(arrival.parameters) for arrival in player.arrivals)
    assert (search["name"], asked["longitude"]) == (name, str(chosen["longitude"]))


async def test_coordinates_need_no_search() -> None:
    answer, player = await looked_up("48.85, 2.35", 2, reply(forecast()))
    (arrival,) = player.arrivals
    assert {"latitude": "48.85", "longitude": "2.35"}.items() <= dict(arrival.parameters).items()
    assert answer["place"]["name"] == "48.85,2.35"


def refused(reason: str, status: int = 429) -> bytes:
    return reply({"error": True, "reason": reason}, status)


@pytest.mark.parametrize(
    ("answer", "kind", "warned"),
    [
        (reply({"generationtime_ms": 0.5}), "no-such-place", False),
        (found(), "no-such-place", False),
        (reply({"results": "Paris"}), "no-such-place", False),
        (found(TEXAS), "no-such-place", False),
        (refused("Minutely API request limit exceeded. Please try again in one minute."), "unavailable", False),
        (refused("Daily API request limit exceeded. Please try again tomorrow."), "provider-quota", True),
        (refused("Hourly API request limit exceeded. Please try again in the next hour."), "provider-quota", True),
        (reply(b"slow down", 429), "unavailable", False),
        (refused("Latitude must be in range of -90 to 90", 400), "unavailable", True),
        (refused("odd", 200), "unavailable", True),
        (reply(b"<html>", 404), "unavailable", True),
        (reply(b"<html>", 502), "unavailable", False),
    ],
)
async def test_every_failure_has_its_reaction(
    answer: bytes, kind: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with player_of(answer) as player:
        http = OutboundHttp()
        chosen = settings(provider="open_meteo", base_url=player.url, geocoding_url=player.url)
        failure = await failure_of(OpenMeteoClient(chosen, http), "Paris, France")
        await http.aclose()
    assert (failure.kind, bool(failure.hint), len(player.arrivals)) == (kind, True, 1)
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == warned
    assert "limit exceeded" not in failure.as_result()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        {},
        forecast(daily=None),
        forecast(daily={"time": "2025"}),
        forecast(daily={"time": [None, 7]}),
        forecast(daily={"time": ["2025-12-22"], "temperature_2m_max": ["mild"]}),
    ],
    ids=lambda body: json.dumps(body, default=repr)[-40:],
)
async def test_an_answer_of_another_shape_is_never_a_forecast(body: object) -> None:
    with pytest.raises(UpstreamInvalid):
        await looked_up("Paris", 2, found(PARIS), reply(body))


@pytest.mark.parametrize("script", [(b"",), (found(PARIS), b"")])
async def test_silence_ends_at_one_time_limit_for_both_requests(script: tuple[bytes, ...]) -> None:
    with pytest.raises(UpstreamTimeout, match=r"Open-Meteo did not answer within 0\.5 s"):
        await looked_up("Paris", 2, *script, timeout=0.5)


def test_without_a_provider_and_a_key_it_is_open_meteo() -> None:
    key = SecretStr("k")
    chosen = [settings(provider=provider, api_key=key) for provider in ("", "weatherapi", "open_meteo")]
    assert [each.uses_open_meteo for each in (*chosen, settings(provider=""))] == [False, False, True, True]
    assert ConfiguredModule(module.in_folder("weather"), settings(provider="")).fault is None


async def test_the_service_answers_by_the_provider_that_is_named() -> None:
    async with player_of(found(JIANGSU), reply(forecast())) as player:
        addresses = {"WEATHER_BASE_URL": player.url, "WEATHER_GEOCODING_URL": player.url}
        async with service(WEATHER_PROVIDER="open_meteo", **addresses) as http:
            answer = (await http.get("/weather/chat-tool-function?query=苏州未来两天的天气", headers=JSON)).json()
    assert [call["outcome"] for call in answer["tool_calls"]] == ["ok"]
    assert [arrival.target.split("?")[0] for arrival in player.arrivals] == ["/v1/search", "/v1/forecast"]


def test_the_sandbox_replaces_either_provider() -> None:
    chosen = settings(provider="open_meteo", SANDBOX_URL="http://127.0.0.1:1")
    assert not isinstance(create_client(chosen, OutboundHttp()), OpenMeteoClient)
