"""Alarms set by a GET, where the settings allow it."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.serving import service
from tests.tools.alarms.asking import alarms


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(EXAMPLES_ALARM_BY_GET="true") as client:
        yield client


async def test_a_get_sets_one_alarm_however_often_it_is_repeated(
    client: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    answers = await asyncio.gather(*(client.get("/tool/alarm", headers=tenant) for _ in range(5)))
    assert len(await alarms(client, **tenant)) == 1
    assert {each.text for each in answers} == {answers[0].text}
    assert {(each.status_code, each.headers["cache-control"]) for each in answers} == {(200, "no-store")}


async def test_a_get_with_another_question_sets_another_alarm(
    client: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    for path in ("/tool/alarm", "/tool/alarm?query=20分钟以后的闹钟"):
        await client.get(path, headers=tenant)
    assert len(await alarms(client, **tenant)) == 2


UNASKED: tuple[dict[str, str], ...] = (
    {"Sec-Purpose": "prefetch"},
    {"Sec-Purpose": "prefetch;prerender"},
    {"Purpose": "prefetch"},
    {"X-Moz": "prefetch"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Dest": "iframe"},
    {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "script"},
)


@pytest.mark.parametrize("headers", UNASKED, ids=str)
async def test_a_get_that_nobody_meant_is_refused(headers: dict[str, str], client: httpx.AsyncClient) -> None:
    answer = await client.get("/tool/alarm", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross-site")
    assert answer.headers["cache-control"] == "no-store"
    assert await alarms(client) == []


@pytest.mark.parametrize("destination", ["empty", "document"])
async def test_a_get_that_a_user_meant_passes(
    destination: str, client: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    headers = {"Sec-Fetch-Dest": destination, "Sec-Fetch-Site": "none"} | tenant
    assert (await client.get("/tool/alarm", headers=headers)).status_code == 200
    assert len(await alarms(client, **tenant)) == 1


async def test_a_head_sets_nothing_even_where_a_get_may(client: httpx.AsyncClient) -> None:
    assert (await client.head("/tool/alarm")).status_code == 405
    assert await alarms(client) == []
