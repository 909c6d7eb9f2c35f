"""The weather tool and the sandbox that stands in for WeatherAPI."""

from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette

from app.sandbox.weatherapi import routes
from app.tools.weather.client import WeatherClient
from tests.serving import serving
from tests.tools.weather.weatherapi_player import CURRENT, DAY, KEY, client_of, failure_of, played, settings


@pytest.fixture(scope="module")
async def sandbox() -> AsyncGenerator[str, None]:
    """The address of a sandbox; it keeps nothing from one question to the next."""
    async with serving(Starlette(routes=routes)) as url:
        yield url


@pytest.fixture
async def client(sandbox: str) -> AsyncGenerator[WeatherClient, None]:
    async with client_of(settings(SANDBOX_URL=sandbox)) as client:
        yield client


async def test_in_the_sandbox_the_upstreams_own_key_stays_at_home() -> None:
    async with played() as (_, player):
        origin = player.url.removesuffix("/v1")
        async with client_of(settings(api_key=SecretStr(KEY), SANDBOX_URL=origin)) as client:
            await client.forecast("Beijing", 1)
    (arrival,) = player.arrivals
    assert urlsplit(arrival.target).path == "/weatherapi/v1/forecast.json"
    assert arrival.headers["key"] == "sandbox"


@pytest.mark.parametrize(
    ("city", "kind"),
    [("nowhere", "no-such-place"), ("error 2006", "not-configured"), ("status 503", "unavailable")],
)
async def test_the_sandbox_plays_faults_that_reach_the_model(city: str, kind: str, client: WeatherClient) -> None:
    assert (await failure_of(client, city)).kind == kind


async def test_the_sandbox_answers_in_chinese_and_marks_the_place(client: WeatherClient) -> None:
    answer = await client.forecast("哈尔滨", 5)
    assert answer["place"] | {"local_time": ""} == {
        "name": "哈尔滨",
        "region": "Heilongjiang (sandbox)",
        "country": "Sandbox",
        "local_time": "",
    }
    assert answer["current"]["text"] in {"晴天", "局部多云", "多云", "阴天", "小雨", "中雨"}
    assert (answer["days_requested"], answer["days_delivered"]) == (5, 3)
    assert set(answer["days"][0]) == set(DAY)
    assert set(answer["current"]) == set(CURRENT)
