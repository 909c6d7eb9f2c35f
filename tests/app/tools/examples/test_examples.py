"""The examples of the documents: their forms, what they read, and their tenants."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.app.tools.examples.asking import READING, SAID, ZONE, calls
from tests.chat.played import EVENTS, JSON
from tests.players.openai_player import OpenAIPlayer, message, sensible_model, whole
from tests.serving import events_of, service
from toolchat.service.api.schemas import ChatAnswer


@pytest.mark.parametrize("path", READING)
async def test_every_example_answers_in_all_three_forms_without_a_key(path: str, offline: httpx.AsyncClient) -> None:
    text, document, stream = [await offline.get(path, headers=form) for form in ({}, JSON, EVENTS)]
    assert [each.status_code for each in (text, document, stream)] == [200, 200, 200]
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    answer = ChatAnswer.model_validate(document.json())
    assert len(answer.tool_calls) == (0 if path == "/tools/simple/test" else 1)
    assert all(call.outcome == "ok" for call in answer.tool_calls)
    assert events_of(stream.text)[-1].name == "done"
    ChatAnswer.model_validate(events_of(stream.text)[-1].data)


SHOWN = (
    ("/tools/simple/call", "Which weekday is it tomorrow?", "Tomorrow is "),
    ("/tools/simple/call", "后天是几号?", "后天是"),
    ("/tool/control", "Which weekday is it the day after tomorrow?", "The day after tomorrow is "),
    ("/tool/function/annotation", "What is the weather in Paris?", "Paris 30°C"),
    ("/tool/function/programmatic", "杭州天气怎么样?用华氏度", "杭州 86°F"),
    ("/tool/context/order", "Show me trade order 123", "订单号:123"),
    ("/tool/context/order-direct", "查询订单456", "订单号:456"),
)


@pytest.mark.parametrize(("path", "query", "said"), SHOWN)
async def test_the_questions_shown_in_the_documentation_are_answered(
    path: str, query: str, said: str, offline: httpx.AsyncClient
) -> None:
    assert said in (await offline.get(path, params={"query": query})).text


async def test_switched_off_the_examples_say_which_variable_to_set() -> None:
    async with service(EXAMPLES_ENABLED="false") as client:
        answers = [await client.get(path) for path in READING]
        assert (await client.get("/time/chat-tool-function")).status_code == 200
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-configured")
        assert "EXAMPLES_ENABLED=true" in answer.json()["detail"]


DATES = ("/tools/simple/call", "/tools/programmatic", "/tool/control")
WEATHER = ("/tool/function/annotation", "/tool/function/programmatic")


@pytest.mark.parametrize("path", DATES)
async def test_tomorrow_is_counted_from_the_date_in_the_users_zone(path: str) -> None:
    async with service() as client:
        before = datetime.now(ZoneInfo(ZONE))
        answer = (await client.get(path, headers=JSON)).json()
        after = datetime.now(ZoneInfo(ZONE))
    tomorrows = [moment.date() + timedelta(days=1) for moment in (before, after)]  # midnight may pass between them
    assert any(
        f"明天是{day.year}年{day.month}月{day.day}日 星期{'一二三四五六日'[day.weekday()]}" in answer["answer"]
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


ORDERS = ("/tool/context/order", "/tool/context/order-direct")


@pytest.mark.parametrize("path", ORDERS)
@pytest.mark.parametrize(("headers", "tenant"), [({}, "zh"), ({"X-Tenant-ID": "acme-1"}, "acme-1")])
async def test_the_tenant_comes_from_the_header_and_never_reaches_the_model(
    path: str, headers: dict[str, str], tenant: str
) -> None:
    async with OpenAIPlayer(sensible_model({"id": 123})) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get(path, headers=headers | JSON)
    assert f"订单号:123 租户Id:{tenant}" in answer.json()["answer"]
    assert tenant not in str(player.requests[0].body["tools"]) + str(player.requests[0].body["messages"])
    assert answer.json()["finish_reason"] == ("return_direct" if path.endswith("direct") else "stop")
    assert len(player.requests) == (1 if path.endswith("direct") else 2)
