"""What is sent to WeatherAPI, and what never is."""

from urllib.parse import urlsplit

import pytest

from app.tools.weather.places import MAX_NAME
from tests.tools.weather.weatherapi_player import KEY, failure_of, played


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
