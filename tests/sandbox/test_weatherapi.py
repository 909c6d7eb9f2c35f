"""The fake of WeatherAPI, called like the original."""

import re
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from pydantic_core import from_json
from starlette.applications import Starlette

from app.sandbox.weatherapi import routes
from tests.serving import client_of, serving


def names(text: str) -> set[str]:
    return set(text.split())


LOCATION = names("name region country lat lon tz_id localtime_epoch localtime")
CURRENT = names("""
    last_updated_epoch last_updated temp_c temp_f is_day condition wind_mph wind_kph wind_degree wind_dir pressure_mb
    pressure_in precip_mm precip_in humidity cloud feelslike_c feelslike_f windchill_c windchill_f heatindex_c
    heatindex_f dewpoint_c dewpoint_f vis_km vis_miles uv gust_mph gust_kph
""")
DAY = names("""
    maxtemp_c maxtemp_f mintemp_c mintemp_f avgtemp_c avgtemp_f maxwind_mph maxwind_kph totalprecip_mm totalprecip_in
    totalsnow_cm avgvis_km avgvis_miles avghumidity daily_will_it_rain daily_chance_of_rain daily_will_it_snow
    daily_chance_of_snow condition uv
""")
ASTRO = names("sunrise sunset moonrise moonset moon_phase moon_illumination is_moon_up is_sun_up")
HOURLY = {"time_epoch", "time", "snow_cm", "will_it_rain", "chance_of_rain", "will_it_snow", "chance_of_snow"}
HOUR = CURRENT - {"last_updated_epoch", "last_updated"} | HOURLY


@pytest.fixture(scope="module")
async def sandbox() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with serving(Starlette(routes=routes)) as url, client_of(url) as client:
        yield client


async def asked(client: httpx.AsyncClient, key: str | None = "sandbox", **parameters: object) -> httpx.Response:
    headers = {} if key is None else {"key": key}
    params = {name: str(value) for name, value in parameters.items()}
    return await client.get("/weatherapi/v1/forecast.json", params=params, headers=headers)


async def answered(sandbox: httpx.AsyncClient, **parameters: object) -> Any:
    response = await asked(sandbox, **{"q": "Beijing"} | parameters)  # type: ignore[arg-type]
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return from_json(response.content)


async def test_a_forecast_has_the_whole_shape_of_the_original(sandbox: httpx.AsyncClient) -> None:
    body = await answered(sandbox, days=2)
    assert set(body) == {"location", "current", "forecast"}
    assert set(body["location"]) == LOCATION
    assert set(body["current"]) == CURRENT
    for each in body["forecast"]["forecastday"]:
        assert set(each) == {"date", "date_epoch", "day", "astro", "hour"}
        assert (set(each["day"]), set(each["astro"])) == (DAY, ASTRO)
        assert [set(hour) for hour in each["hour"]] == [HOUR] * 24
        assert set(each["day"]["condition"]) == {"text", "icon", "code"}


@pytest.mark.parametrize("place", ["Beijing", "Tokyo, Japan", "Suzhou, Anhui, China", "Singapore", "Yekaterinburg"])
async def test_every_response_is_marked_as_invented(sandbox: httpx.AsyncClient, place: str) -> None:
    location = (await answered(sandbox, q=place))["location"]
    assert location["country"] == "Sandbox"
    assert re.fullmatch(r"\w[\w ]* \(sandbox\)", location["region"])
    assert location["name"] == place.split(",")[0]


async def within_one_hour(sandbox: httpx.AsyncClient, *questions: dict[str, str]) -> list[Any]:
    """Answers that were all given in the same hour, since the figures of the present change with it."""
    while True:
        bodies = [await answered(sandbox, days=3, **question) for question in (*questions, questions[0])]
        if bodies[0]["current"]["last_updated_epoch"] == bodies[-1]["current"]["last_updated_epoch"]:
            return bodies[:-1]


SPELLINGS = {
    "Beijing": ("北京", "beijing", "Beijing, China", "PEKING", "北京市"),
    "Guangzhou": ("廣州", "Guangzhou, Guangdong, China", "canton"),
    "Tokyo": ("东京", "東京", "Tokyo, Japan"),
    "New York": ("纽约", "NYC", "New York, NY", "New York, USA"),
    "Xi'an": ("西安", "Xian, Shaanxi, China", "xi'an"),
}


@pytest.mark.parametrize("city", SPELLINGS)
async def test_a_city_has_the_same_weather_under_all_its_names(sandbox: httpx.AsyncClient, city: str) -> None:
    bodies = await within_one_hour(sandbox, *({"q": name} for name in (city, *SPELLINGS[city])))
    for body in bodies:
        assert body["location"]["name"] == city
        assert (body["current"], body["forecast"]) == (bodies[0]["current"], bodies[0]["forecast"])


async def test_cities_of_one_name_have_each_their_own_weather(sandbox: httpx.AsyncClient) -> None:
    jiangsu, anhui = await within_one_hour(sandbox, *({"q": f"Suzhou, {each}, China"} for each in ("Jiangsu", "Anhui")))
    assert [each["location"]["region"] for each in (jiangsu, anhui)] == ["Jiangsu (sandbox)", "Anhui (sandbox)"]
    assert jiangsu["forecast"] != anhui["forecast"]


@pytest.mark.parametrize(
    ("city", "zone"), [("Sydney", "Australia/Sydney"), ("悉尼", "Australia/Sydney"), ("乌鲁木齐", "Asia/Shanghai"),
                       ("Kathmandu", "Asia/Kathmandu"), ("Hotan, China", "Asia/Shanghai")]
)  # fmt: skip
async def test_the_clock_is_that_of_the_place_and_the_days_begin_today(
    sandbox: httpx.AsyncClient, city: str, zone: str
) -> None:
    before = datetime.now(ZoneInfo(zone)).replace(second=0, microsecond=0)
    body = await answered(sandbox, q=city, days=3)
    local = datetime.strptime(body["location"]["localtime"], "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo(zone))
    assert before <= local <= datetime.now(ZoneInfo(zone))
    assert datetime.fromtimestamp(body["location"]["localtime_epoch"] // 60 * 60, UTC) == local
    assert body["current"]["last_updated"] == f"{local:%Y-%m-%d %H}:00"
    days = [date.fromisoformat(each["date"]) for each in body["forecast"]["forecastday"]]
    assert [(day - local.date()).days for day in days] == [0, 1, 2]


async def test_the_present_is_that_hour_of_todays_forecast(sandbox: httpx.AsyncClient) -> None:
    body = await answered(sandbox, q="Harbin")
    (hour,) = [each for each in body["forecast"]["forecastday"][0]["hour"]
               if each["time"] == body["current"]["last_updated"]]  # fmt: skip
    assert body["current"].items() >= {key: value for key, value in hour.items() if key in CURRENT}.items()


@pytest.mark.parametrize(
    "place",
    [
        "Atlantis",
        "亚特兰蒂斯",
        "Yatelandisi, China",
        "Blorptown, Beijing, China",
        "Paris, Texas",
        "39.9,116.4",
        "10001",
    ],
)
async def test_an_unknown_place_returns_code_1006(sandbox: httpx.AsyncClient, place: str) -> None:
    response = await asked(sandbox, q=place)
    assert response.status_code == 400
    assert from_json(response.content)["error"] == {"code": 1006, "message": "No matching location found."}


@pytest.mark.parametrize("q", ["Beijing", "Harbin", "Sydney", "London", "Ushuaia", "Reykjavik, Iceland"])
async def test_the_figures_are_plausible(sandbox: httpx.AsyncClient, q: str) -> None:
    for each in (await answered(sandbox, q=q, days=3))["forecast"]["forecastday"]:
        figures = each["day"]
        assert -45 < figures["mintemp_c"] < figures["avgtemp_c"] < figures["maxtemp_c"] < 50
        assert abs(figures["maxtemp_f"] - (figures["maxtemp_c"] * 1.8 + 32)) < 0.1
        assert 0 <= figures["daily_chance_of_rain"] <= 100
        assert all(figures["mintemp_c"] <= hour["temp_c"] <= figures["maxtemp_c"] for hour in each["hour"])


@pytest.mark.parametrize(
    ("key", "days", "delivered"),
    [
        ("sandbox", "1", 1),
        ("sandbox", "3", 3),
        ("sandbox", "14", 3),
        ("sandbox-pro", "7", 7),
        ("sandbox-pro", "99", 14),
        ("sandbox", "0", 1),
        ("sandbox", "soon", 1),
        ("error-2009", "3", 3),
    ],
)
async def test_the_key_decides_how_many_days_are_delivered(
    sandbox: httpx.AsyncClient, key: str, days: str, delivered: int
) -> None:
    assert len((await answered(sandbox, key=key, days=days))["forecast"]["forecastday"]) == delivered


async def test_without_days_only_today_is_delivered(sandbox: httpx.AsyncClient) -> None:
    assert len((await answered(sandbox))["forecast"]["forecastday"]) == 1


async def test_one_hour_can_be_picked(sandbox: httpx.AsyncClient) -> None:
    body = await answered(sandbox, days=2, hour=12)
    assert [[hour["time"][-5:] for hour in each["hour"]] for each in body["forecast"]["forecastday"]] == [["12:00"]] * 2


async def test_texts_are_chinese_when_asked_for(sandbox: httpx.AsyncClient) -> None:
    english, chinese = await within_one_hour(sandbox, {"q": "Urumqi"}, {"q": "Urumqi", "lang": "zh"})
    assert english["current"]["condition"]["text"].isascii()
    assert not chinese["current"]["condition"]["text"].isascii()
    assert (english["location"]["name"], chinese["location"]["name"]) == ("Urumqi", "乌鲁木齐")
    assert english["location"]["region"] == chinese["location"]["region"] == "China (sandbox)"
    assert english["current"]["temp_c"] == chinese["current"]["temp_c"]


ERRORS = {
    1002: 401,
    1003: 400,
    1005: 400,
    1006: 400,
    2006: 401,
    2007: 403,
    2008: 403,
    2009: 403,
    9000: 400,
    9001: 400,
    9999: 400,
}


@pytest.mark.parametrize(("code", "status"), ERRORS.items())
async def test_every_error_can_be_had_by_key_and_by_place(sandbox: httpx.AsyncClient, code: int, status: int) -> None:
    by_key = await asked(sandbox, f"error-{code}", q="Beijing", days=4)
    by_place = await asked(sandbox, q=f"error {code}")
    for response in (by_key, by_place):
        assert response.status_code == status
        assert from_json(response.content)["error"]["code"] == code


async def test_a_missing_key_and_a_missing_place_are_refused(sandbox: httpx.AsyncClient) -> None:
    responses = [await asked(sandbox, None, q="Beijing"), await asked(sandbox), await asked(sandbox, q="nowhere")]
    assert [from_json(each.content)["error"]["code"] for each in responses] == [1002, 1003, 1006]


async def test_the_key_may_stand_in_the_url_as_documented(sandbox: httpx.AsyncClient) -> None:
    response = await sandbox.get("/weatherapi/v1/forecast.json", params={"key": "sandbox", "q": "Beijing"})
    assert response.status_code == 200


@pytest.mark.parametrize("status", [200, 302, 404, 429, 500, 503])
async def test_any_status_can_be_had_with_a_page(sandbox: httpx.AsyncClient, status: int) -> None:
    response = await asked(sandbox, q=f"status {status}")
    assert response.status_code == status
    assert response.text.startswith("<!doctype html>")


async def test_odd_bodies_can_be_had(sandbox: httpx.AsyncClient) -> None:
    page, broken, shape, huge = [await asked(sandbox, q=f"body {kind}") for kind in ("html", "broken", "shape", "huge")]
    assert {each.status_code for each in (page, broken, shape, huge)} == {200}
    assert page.text.startswith("<!doctype html>")
    with pytest.raises(ValueError, match="EOF"):
        from_json(broken.content)
    assert from_json(shape.content)["location"] == []
    assert len(huge.content) > 2_000_000


@pytest.mark.parametrize("q", ["\u202e", "🍕" * 500, ",,,,", "%00", "error 99999", "status 42"])
async def test_no_place_however_odd_breaks_it(sandbox: httpx.AsyncClient, q: str) -> None:
    assert (await asked(sandbox, q=q, days="-5", hour="77", lang="xx")).status_code in (200, 400)
