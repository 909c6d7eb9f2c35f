"""The examples that only read: the date, the fixed weather, and own control of the calls."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.chat.played import JSON
from tests.players.openai_player import OpenAIPlayer, message, whole
from tests.serving import service
from tests.tools.examples.asking import SAID, ZONE, calls

DATES = ("/tools/simple/call", "/tools/programmatic", "/tool/control")
WEATHER = ("/tool/function/annotation", "/tool/function/programmatic")


@pytest.mark.parametrize("path", DATES)
async def test_tomorrow_is_counted_from_the_date_in_the_users_zone(path: str) -> None:
    async with service(EXAMPLES_ZONE=ZONE) as client:
        before = datetime.now(ZoneInfo(ZONE))
        answer = (await client.get(path, headers=JSON)).json()
        after = datetime.now(ZoneInfo(ZONE))
    tomorrows = [moment.date() + timedelta(days=1) for moment in (before, after)]  # midnight may pass between them
    assert any(
        f"明天是{day.year}年{day.month}月{day.day}日，星期{'一二三四五六日'[day.weekday()]}" in answer["answer"]
        for day in tomorrows
    )
    assert f'"zone":"{ZONE}"' in answer["tool_calls"][0]["result"]


@pytest.mark.parametrize("path", WEATHER)
async def test_the_fixed_temperature_is_always_marked_as_invented(path: str) -> None:
    script = [calls(("currentWeather", {"location": "杭州", "unit": "C"})), whole(message(content="30 degrees."))]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get(path, headers=JSON)
    assert "Sandbox data, not real" in answer.json()["answer"]
    assert "不是真实天气" in answer.json()["tool_calls"][0]["result"]
    assert answer.headers["x-sandbox"] == "currentWeather"


async def test_the_fixed_temperature_is_not_offered_outside_the_examples(offline: httpx.AsyncClient) -> None:
    listed = (await offline.get("/tools")).json()
    assert "currentWeather" not in [tool["name"] for module in listed for tool in module["tools"]]


async def test_own_control_reports_every_call_of_every_round() -> None:
    now: tuple[str, dict[str, Any]] = ("getCurrentDateTime", {})
    async with (
        OpenAIPlayer([calls(now, now), calls(now), SAID] * 2) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        answer = (await client.get("/tool/control", headers=JSON)).json()
    assert [call["round"] for call in answer["tool_calls"]] == [1, 1, 2]
    assert [call["outcome"] for call in answer["tool_calls"]] == ["ok"] * 3
    assert (answer["rounds"], answer["answer"]) == (3, "done")


async def test_own_control_ends_after_the_rounds_that_there_may_be() -> None:
    async with (
        OpenAIPlayer(lambda _: calls(("getCurrentDateTime", {}))) as player,
        service(OPENAI_BASE_URL=player.base_url, TOOL_MAX_ROUNDS="2") as client,
    ):
        answer = await client.get("/tool/control")
    assert (answer.status_code, answer.json()["code"]) == (502, "tool-loop")
    assert len(player.requests) == 3
