"""What is sent to WeatherAPI and to the sandbox, and what never is."""

from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette

from app.tools.weather.client import WeatherClient
from app.tools.weather.places import MAX_NAME
from tests.serving import serving
from tests.tools.weather.weatherapi_player import CURRENT, DAY, KEY, client_of, failure_of, played, settings
from tests.upstreams.weatherapi import routes


async def test_the_key_travels_in_a_header_and_never_in_the_url() -> None:
    async with played() as (client, player):
        await client.forecast("Paris, France", 14)
    (arrival,) = player.arrivals
    assert arrival.headers["key"] == KEY
    assert KEY not in arrival.target
    assert urlsplit(arrival.target).path == "/v1/forecast.json"
    assert arrival.parameters == [("q", "Paris, France"), ("days", "14"), ("hour", "12")]


async def test_a_name_in_chinese_characters_requests_chinese_texts() -> None:
    async with played() as (client, player):
        await client.forecast("北京", 1)
    assert player.arrivals[0].parameters == [("q", "Beijing, China"), ("days", "1"), ("hour", "12"), ("lang", "zh")]


@pytest.mark.parametrize("city", ["Trinidad & Tobago", "St. John's", "Winston-Salem (North Carolina)", "москва"])
async def test_any_name_travels_as_one_parameter(city: str) -> None:
    async with played() as (client, player):
        await client.forecast(city, 1)
    assert player.arrivals[0].parameters == [("q", city), ("days", "1"), ("hour", "12")]


@pytest.mark.parametrize(
    "city",
    [
        "",
        " \u3000 ",
        "auto:ip",
        "AUTO：IP",
        "metar:EGLL",
        "iata:DXB",
        "id:2801268",
        "8.8.8.8",
        "８．８．８．８",
        "8 . 8.8.8, USA",
        "127.0.0.1#",
        "127。0。0。1",
        "127｡0｡0｡1",
        "2130706433",
        "::1",
        "2001:db8::1",
        "http://169.254.169.254/",
        "..%2f",
        "../../etc",
        "?key=",
        "a\nb",
        "Paris\x00",
        "\u202eParis",
        "\ud800",
        "🍕",
        "...",
        "91,0",
        "0,181",
        "x" * (MAX_NAME + 1),
        "x" * 900_000,
        "ﷺ" * MAX_NAME,
        "法国第戎",
        "香港九龙",
    ],
    ids=lambda city: ascii(city)[:40],
)
async def test_an_invalid_place_name_is_rejected_without_a_request(city: str) -> None:
    async with played() as (client, player):
        failure = await failure_of(client, city)
    assert failure.kind == "invalid-place"
    assert "English or pinyin" in (failure.hint or "")
    assert player.arrivals == []


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
    [("nowhere", "no-such-place"), ("error 2006", "provider-auth"), ("status 503", "unavailable")],
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
