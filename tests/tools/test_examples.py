"""The documents' other examples, asked over HTTP."""

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from pydantic_core import to_json

from app.api.schemas import ChatAnswer
from app.chat_models.base import ChatResponse, Prompt
from app.chat_models.offline import OfflineChatModel
from app.chat_models.offline.durations import durations
from app.errors import ConfigurationError, NotFound
from app.messages import UserMessage
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.errors import ToolExecutionError
from app.tools.examples.alarms import AlarmOrder, AlarmStore
from tests.players.openai_player import Answer, OpenAIPlayer, body, delta, message, sensible_model, sse, whole
from tests.serving import events_of, service

JSON = {"Accept": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
READING = (
    "/tools/simple/test",
    "/tools/simple/call",
    "/tools/programmatic",
    "/tool/function/annotation",
    "/tool/function/programmatic",
    "/tool/context/order",
    "/tool/context/order-direct",
    "/tool/control",
)
DATES = ("/tools/simple/call", "/tools/programmatic", "/tool/control")
WEATHER = ("/tool/function/annotation", "/tool/function/programmatic")
ORDERS = ("/tool/context/order", "/tool/context/order-direct")
ZONE = "Pacific/Kiritimati"
"""Fourteen hours ahead of UTC, so that no machine's own zone passes for it."""


def key(name: str = "k-1", **headers: str) -> dict[str, str]:
    return {"Idempotency-Key": name, **{each.replace("_", "-"): value for each, value in headers.items()}}


def calls(*wanted: tuple[str, Mapping[str, Any]]) -> Answer:
    """A turn of the model that asks for tools."""
    asked = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": to_json(given).decode()}}
        for n, (name, given) in enumerate(wanted)
    ]
    return whole(message("tool_calls", content=None, tool_calls=asked))


def alarm_at(*times: str) -> Answer:
    return calls(*(("setAlarm", {"time": time}) for time in times))


SAID = whole(message(content="done"))


async def alarms(client: httpx.AsyncClient, **headers: str) -> list[dict[str, Any]]:
    answer = await client.get("/tool/alarms", headers=headers)
    assert answer.status_code == 200
    listed: list[dict[str, Any]] = answer.json()
    return listed


async def test_every_example_answers_in_all_three_forms_without_a_key() -> None:
    async with service() as client:
        for path in READING:
            text, document, stream = [await client.get(path, headers=form) for form in ({}, JSON, EVENTS)]
            assert [each.status_code for each in (text, document, stream)] == [200, 200, 200], path
            assert text.headers["content-type"] == "text/plain; charset=utf-8"
            answer = ChatAnswer.model_validate(document.json())
            assert len(answer.tool_calls) == (0 if path == "/tools/simple/test" else 1)
            assert all(call.outcome == "ok" for call in answer.tool_calls)
            assert events_of(stream.text)[-1].name == "done"
            ChatAnswer.model_validate(events_of(stream.text)[-1].data)


@pytest.mark.parametrize("path", DATES)
async def test_tomorrow_is_counted_from_the_date_in_the_users_zone(path: str) -> None:
    days = set()
    async with service(EXAMPLES_ZONE=ZONE) as client:
        for _ in range(2):  # midnight may pass between the clock here and the clock there
            before = datetime.now(ZoneInfo(ZONE))
            answer = (await client.get(path, headers=JSON)).json()
            days |= {before.date(), datetime.now(ZoneInfo(ZONE)).date()}
    tomorrows = {day + timedelta(days=1) for day in days}
    assert any(
        f"明天是{day.year}年{day.month}月{day.day}日，星期{'一二三四五六日'[day.weekday()]}" in answer["answer"]
        for day in tomorrows
    )
    assert f'"zone":"{ZONE}"' in answer["tool_calls"][0]["result"]


SHOWN = (
    ("/tools/simple/call", "Which weekday is it tomorrow?", "Tomorrow is "),
    ("/tools/simple/call", "后天是几号?", "后天是"),
    ("/tool/control", "Which weekday is it the day after tomorrow?", "The day after tomorrow is "),
    ("/tool/function/annotation", "What is the weather in Paris?", "Paris 30°C"),
    ("/tool/function/programmatic", "杭州天气怎么样?用华氏度", "杭州 86°F"),
    ("/tool/context/order", "Show me trade order 123", "订单号:123"),
    ("/tool/context/order-direct", "查询订单456", "订单号:456"),
)


async def test_the_questions_shown_in_the_documentation_are_answered() -> None:
    async with service() as client:
        for path, query, said in SHOWN:
            assert said in (await client.get(path, params={"query": query})).text, query


async def test_the_first_example_offers_the_model_nothing_and_the_others_one_tool_each() -> None:
    async with OpenAIPlayer(lambda _: SAID) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for path in READING:
            await client.get(path)
    offered = [[tool["function"] for tool in request.body.get("tools", [])] for request in player.requests]
    assert [[tool["name"] for tool in tools] for tools in offered] == [
        [],
        ["getCurrentDateTime"],
        ["getCurrentDateTimeWithoutAnnotation"],
        ["currentWeather"],
        ["currentWeather"],
        ["getTradeOrderInfo"],
        ["getTradeOrderInfo"],
        ["getCurrentDateTime"],
    ]
    assert offered[1][0]["description"] == offered[2][0]["description"] == "获取用户时区的当前日期和时间"
    assert offered[3] == offered[4]
    assert set(offered[3][0]["parameters"]["properties"]) == {"location", "unit"}
    assert set(offered[5][0]["parameters"]["properties"]) == {"id"}


@pytest.mark.parametrize("path", WEATHER)
async def test_the_fixed_temperature_is_never_passed_off_as_real_whatever_the_model_says(path: str) -> None:
    script = [calls(("currentWeather", {"location": "杭州", "unit": "C"})), whole(message(content="30 degrees."))]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get(path, headers=JSON)
    assert "Sandbox data, not real" in answer.json()["answer"]
    assert "不是真实天气" in answer.json()["tool_calls"][0]["result"]
    assert answer.headers["x-sandbox"] == "currentWeather"


async def test_the_fixed_temperature_is_not_offered_outside_the_examples() -> None:
    async with service() as client:
        listed = (await client.get("/tools")).json()
    assert "currentWeather" not in [tool["name"] for module in listed for tool in module["tools"]]


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


async def test_a_model_that_names_a_tenant_is_refused() -> None:
    script = [calls(("getTradeOrderInfo", {"id": 123, "tenantId": "other"})), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = (await client.get("/tool/context/order", headers=JSON)).json()
    assert answer["tool_calls"][0]["error_kind"] == "invalid-arguments"


async def test_a_malformed_tenant_is_refused() -> None:
    async with service() as client:
        for tenant in (b"", b"-a", b"a b", b"a;b", b"x" * 65, b"../a", b"a\tb", "租户".encode()):
            answer = await client.get("/tool/context/order", headers=[(b"X-Tenant-ID", tenant)])
            assert (answer.status_code, answer.json()["code"]) == (422, "validation"), tenant


async def test_two_tenants_in_one_request_are_refused() -> None:
    async with service() as client:
        answer = await client.get("/tool/context/order", headers=[("X-Tenant-ID", "a"), ("X-Tenant-ID", "b")])
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")


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


@pytest.mark.parametrize(
    "query", ["", "帮我设置一个10分钟以后的闹钟", "Set an alarm in 10 minutes", "设一个闹钟，十分钟后"]
)
async def test_an_alarm_is_set_without_a_key_and_listed(query: str) -> None:
    async with service() as client:
        before = datetime.now(UTC).replace(microsecond=0)
        answer = await client.post("/tool/alarm", params={"query": query}, headers=key())
        (alarm,) = await alarms(client)
    due = datetime.fromisoformat(alarm["time"]) - timedelta(minutes=10)
    assert before <= due <= datetime.now(UTC)
    assert answer.text == f"设置闹钟成功! {alarm['time']} (Asia/Shanghai)"
    assert (alarm["zone"], alarm["status"]) == ("Asia/Shanghai", "waiting")


async def test_the_question_may_be_a_document_but_not_given_twice() -> None:
    async with OpenAIPlayer(lambda _: SAID) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        asked = await client.post("/tool/alarm", json={"query": "七点"}, headers=key())
        twice = await client.post("/tool/alarm?query=八点", json={"query": "七点"}, headers=key("k-2"))
    assert asked.text == "done"
    assert player.requests[0].body["messages"][-1]["content"] == "七点"
    assert twice.status_code == 422


MALFORMED = (
    (b"{", 400),
    (b'"text"', 422),
    (b'{"query": 1}', 422),
    (b'{"query": "\\u0000"}', 422),
    (b'{"query": "\\ud800"}', 422),
    (b'{"query": "   "}', 422),
    (b'{"other": 1}', 422),
    (b'{"query": "' + b"a" * 4001 + b'"}', 422),
    (b"[" * 50_000, 400),
)


async def test_a_malformed_document_is_refused_and_sets_nothing() -> None:
    async with service() as client:
        for content, status in MALFORMED:
            headers = key(Content_Type="application/json")
            answer = await client.post("/tool/alarm", content=content, headers=headers)
            assert (answer.status_code, await alarms(client)) == (status, []), content[:40]
            assert answer.headers["content-type"] == "application/problem+json"


async def test_a_write_needs_a_key_of_1_to_255_printable_characters() -> None:
    async with service() as client:
        assert (await client.post("/tool/alarm")).status_code == 422
        for given in (b"", b"x" * 256, b"a\tb", "é".encode()):
            answer = await client.post("/tool/alarm", headers=[(b"Idempotency-Key", given)])
            assert (answer.status_code, await alarms(client)) == (422, []), given
        for name in ("x" * 255, "a", 'a "b"~'):
            assert (await client.post("/tool/alarm", headers=key(name))).status_code == 200


async def test_two_wishes_are_two_alarms_even_under_one_request_id() -> None:
    async with service() as client:
        for name in ("k-1", "k-2"):
            await client.post("/tool/alarm", headers=key(name, X_Request_ID="same"))
        assert len(await alarms(client)) == 2


async def test_two_keys_in_one_request_are_refused() -> None:
    async with service() as client:
        answer = await client.post("/tool/alarm", headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert answer.status_code == 422


async def test_the_same_key_and_question_get_the_first_answer_again_in_every_form() -> None:
    async with OpenAIPlayer([alarm_at("PT10M"), SAID]) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        first = await client.post("/tool/alarm", headers=key(**JSON))
        again = [await client.post("/tool/alarm", headers=key(**form)) for form in (JSON, {}, EVENTS)]
        assert len(await alarms(client)) == 1
    assert "idempotency-replayed" not in first.headers
    assert [each.headers["idempotency-replayed"] for each in again] == ["true"] * 3
    assert len(player.requests) == 2
    for part in ("answer", "tool_calls", "rounds", "usage"):
        assert again[0].json()[part] == first.json()[part]
    assert again[1].text == "done"
    names = [event.name for event in events_of(again[2].text)]
    assert names == ["tool_call_started", "tool_call_finished", "delta", "usage", "done"]


async def test_the_same_key_with_another_question_is_refused() -> None:
    async with service() as client:
        await client.post("/tool/alarm", headers=key())
        answer = await client.post("/tool/alarm?query=20分钟以后的闹钟", headers=key())
        assert (answer.status_code, answer.json()["code"]) == (422, "validation")
        assert len(await alarms(client)) == 1


async def test_one_tenants_key_is_not_anothers() -> None:
    async with service() as client:
        for tenant in ("a", "b"):
            answer = await client.post("/tool/alarm", headers=key(X_Tenant_ID=tenant))
            assert "idempotency-replayed" not in answer.headers
            assert len(await alarms(client, **{"X-Tenant-ID": tenant})) == 1


async def test_a_second_request_while_the_first_runs_conflicts_and_a_key_that_set_nothing_is_free_again() -> None:
    script = [sse(delta(content="a"), ending="hang", done=False), SAID]
    async with (
        OpenAIPlayer(script) as player,
        service(OPENAI_BASE_URL=player.base_url, MODEL_IDLE_TIMEOUT="0.5") as client,
    ):
        async with client.stream("POST", "/tool/alarm", headers=key(**EVENTS)) as first:
            pieces = first.aiter_text()
            await anext(pieces)
            for form in ({}, EVENTS):
                second = await client.post("/tool/alarm", headers=key(**form))
                assert (second.status_code, second.json()["code"]) == (409, "idempotency-conflict")
                assert second.headers["retry-after"] == "1"
            rest = "".join([piece async for piece in pieces])
        assert events_of(rest)[-1].name == "error"
        third = await client.post("/tool/alarm", headers=key())
    assert (third.text, "idempotency-replayed" in third.headers) == ("done", False)


async def test_many_requests_with_one_key_at_once_set_one_alarm() -> None:
    async with service() as client:
        answers = await asyncio.gather(*(client.post("/tool/alarm", headers=key()) for _ in range(20)))
        assert len(await alarms(client)) == 1
    first = [each for each in answers if each.status_code == 200 and "idempotency-replayed" not in each.headers]
    assert len(first) == 1
    assert {each.status_code for each in answers} <= {200, 409}


async def test_a_question_that_fails_after_its_alarm_was_set_is_not_run_again() -> None:
    script = [alarm_at("PT10M"), body(b"{}", 400), alarm_at("PT20M"), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        failed = await client.post("/tool/alarm", headers=key())
        again = await client.post("/tool/alarm", headers=key())
        assert len(await alarms(client)) == 1
    assert failed.status_code == 502
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert "闹钟已设置" in again.text
    assert len(player.requests) == 2


async def test_the_same_minute_asked_for_twice_in_one_question_is_one_alarm() -> None:
    script = [alarm_at("PT10M", "PT600S", "PT10M"), alarm_at("PT10M"), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = (await client.post("/tool/alarm", headers=key(**JSON))).json()
        assert len(await alarms(client)) == 1
    assert [call["outcome"] for call in answer["tool_calls"][:3]] == ["ok"] * 3


def _in(delta: timedelta, zone: str = "UTC") -> str:
    return (datetime.now(ZoneInfo(zone)) + delta).isoformat()


async def test_a_time_that_cannot_be_meant_is_refused_with_a_reason() -> None:
    refused = (
        (_in(timedelta(hours=-1)), "past-time"),
        ("2001-01-01T00:00:00Z", "past-time"),
        ("PT0S", "past-time"),
        (_in(timedelta(days=400)), "too-far"),
        ("P400D", "too-far"),
        ("P999999W", "too-far"),
        ("9999-12-31T23:59:59-12:00", "invalid-time"),
        ("tomorrow", "invalid-time"),
        ("2026-02-30T00:00:00Z", "invalid-time"),
        ("2100-01-01", "invalid-time"),
        ("P", "invalid-time"),
        ("PT", "invalid-time"),
        ("-PT10M", "invalid-time"),
        ("PT１０M", "invalid-time"),
        ("x" * 100, "invalid-arguments"),
    )
    script = [turn for moment, _ in refused for turn in (alarm_at(moment), SAID)]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for number, (moment, kind) in enumerate(refused):
            answer = (await client.post("/tool/alarm", headers=key(f"k-{number}", **JSON))).json()
            assert (answer["tool_calls"][0]["error_kind"], await alarms(client)) == (kind, []), moment


async def test_a_time_without_an_offset_is_in_the_users_zone() -> None:
    wanted = (datetime.now(ZoneInfo(ZONE)) + timedelta(hours=1)).replace(microsecond=0)
    naive = wanted.replace(tzinfo=None).isoformat()
    async with (
        OpenAIPlayer([alarm_at(naive), SAID]) as player,
        service(OPENAI_BASE_URL=player.base_url, EXAMPLES_ZONE=ZONE) as client,
    ):
        await client.post("/tool/alarm", headers=key())
        (alarm,) = await alarms(client)
    assert (alarm["time"], alarm["zone"]) == (wanted.isoformat(), ZONE)


class Rung(logging.Handler):
    """Notes the log lines of the alarms."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.first = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.first.set()


def _timers() -> list[str]:
    return [name for task in asyncio.all_tasks() if "_ring" in (name := repr(task.get_coro()))]


async def test_an_alarm_fires_when_it_is_due_and_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log, rung = logging.getLogger("app.tools.examples.alarms"), Rung()
    monkeypatch.setattr(log, "level", logging.INFO)
    log.addHandler(rung)
    try:
        async with OpenAIPlayer([alarm_at("PT1H"), SAID, alarm_at("PT0.3S"), SAID]) as player:
            async with service(OPENAI_BASE_URL=player.base_url) as client:
                assert _timers() == []
                for name in ("later", "sooner"):
                    await client.post("/tool/alarm", headers=key(name))
                assert len(_timers()) == 1
                async with asyncio.timeout(5):
                    await rung.first.wait()
                sooner, later = await alarms(client)
            assert _timers() == []
    finally:
        log.removeHandler(rung)
    assert (sooner["status"], later["status"]) == ("fired", "waiting")
    assert [record.getMessage() for record in rung.records] == ["alarm fired"]
    assert vars(rung.records[0])["alarm"] == sooner["id"]


async def test_an_alarm_is_deleted_by_its_tenant_alone() -> None:
    async with service() as client:
        await client.post("/tool/alarm", headers=key())
        (alarm,) = await alarms(client)
        path = f"/tool/alarms/{alarm['id']}"
        for refused, headers in ((404, {"X-Tenant-ID": "other"}), (403, {"Sec-Fetch-Site": "cross-site"})):
            assert (await client.delete(path, headers=headers)).status_code == refused
        assert (await client.delete(path)).json() == alarm
        assert (await client.delete(path)).json()["code"] == "not-found"
        assert await alarms(client) == []


async def test_alarms_are_bounded_and_the_oldest_fired_one_gives_way() -> None:
    store, now = AlarmStore(limit=2), datetime.now(UTC)
    order = AlarmOrder("zh")
    try:
        first, _ = (store.set(order, now + timedelta(hours=n), f"{n}") for n in (1, 2))
        with pytest.raises(ToolExecutionError) as refused:
            store.set(order, now + timedelta(hours=3), "3")
        assert refused.value.kind == "too-many-alarms"
        first.fired = True
        store.set(order, now + timedelta(hours=3), "3")
        with pytest.raises(NotFound):
            store.delete("zh", first.id)
    finally:
        await store.aclose()


async def test_only_a_post_sets_an_alarm() -> None:
    async with service() as client:
        for method in ("GET", "HEAD", "PUT", "PATCH"):
            answer = await client.request(method, "/tool/alarm", headers=key())
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), method
            assert answer.headers["content-type"] == "application/problem+json"
            assert await alarms(client) == []


async def test_a_page_of_another_site_cannot_post_an_alarm() -> None:
    async with service() as client:
        answer = await client.post("/tool/alarm", headers=key(Sec_Fetch_Site="cross-site"))
        assert (answer.status_code, answer.json()["code"]) == (403, "cross-site")
        assert await alarms(client) == []


@pytest.mark.parametrize(
    ("question", "duration"),
    [
        ("10分钟以后的闹钟", "PT10M"),
        ("半小时后叫醒我", "PT30M"),
        ("一个半小时之后", "PT1H30M"),
        ("两小时三十分钟后", "PT2H30M"),
        ("再过十秒钟", "PT10S"),
        ("1天后叫醒我", "PT24H"),
        ("in half an hour", "PT30M"),
        ("in an hour and 5 minutes", "PT1H5M"),
        ("twenty minutes from now", "PT20M"),
        ("1.5 hours later", "PT1H30M"),
        ("10分钟的会议", None),
        ("for 10 minutes", None),
    ],
)
async def test_the_offline_model_reads_spans_from_now_where_a_tool_takes_a_duration(
    question: str, duration: str | None
) -> None:
    schema = {"type": "object", "properties": {"delay": {"type": "string", "format": "duration"}}}
    tool = ToolDefinition("wait", question, schema | {"required": ["delay"]})
    (response,) = [each async for each in OfflineChatModel().respond(Prompt((UserMessage(question),), (tool,)))]
    assert isinstance(response, ChatResponse)
    asked = [call.arguments for call in response.message.tool_calls]
    assert asked == ([] if duration is None else [f'{{"delay":"{duration}"}}'])


@pytest.mark.parametrize("piece", ["1 ", " ", "1", "半", "半 个", "一天", "in 1 hour ", "10分钟", "过", "1个半小时"])
def test_a_hostile_text_is_searched_for_spans_in_no_time(piece: str) -> None:
    started = time.process_time()
    list(durations(f"1{piece * 4000}"[:4000]))
    assert time.process_time() - started < 1


BY_GET = {"EXAMPLES_ALARM_BY_GET": "true"}


async def test_where_it_is_allowed_a_get_sets_one_alarm_however_often_it_is_repeated() -> None:
    async with service(**BY_GET) as client:
        answers = await asyncio.gather(*(client.get("/tool/alarm") for _ in range(5)))
        assert len(await alarms(client)) == 1
        await client.get("/tool/alarm?query=20分钟以后的闹钟")
        assert len(await alarms(client)) == 2
    assert {each.text for each in answers} == {answers[0].text}
    assert {(each.status_code, each.headers["cache-control"]) for each in answers} == {(200, "no-store")}


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


async def test_a_get_that_nobody_meant_is_refused() -> None:
    async with service(**BY_GET) as client:
        for headers in UNASKED:
            answer = await client.get("/tool/alarm", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "cross-site"), headers
            assert answer.headers["cache-control"] == "no-store"
            assert await alarms(client) == []


async def test_a_get_that_a_user_meant_passes() -> None:
    async with service(**BY_GET) as client:
        for dest in ("empty", "document"):
            headers = {"Sec-Fetch-Dest": dest, "Sec-Fetch-Site": "none"}
            assert (await client.get("/tool/alarm", headers=headers)).status_code == 200
        assert len(await alarms(client)) == 1


async def test_a_head_sets_nothing_even_where_a_get_may() -> None:
    async with service(**BY_GET) as client:
        assert (await client.head("/tool/alarm")).status_code == 405
        assert await alarms(client) == []


async def test_switched_off_the_examples_say_which_variable_to_set() -> None:
    async with service(EXAMPLES_ENABLED="false") as client:
        answers = [await client.get(path) for path in (*READING, "/tool/alarm", "/tool/alarms")]
        answers.append(await client.post("/tool/alarm", headers=key()))
        assert (await client.get("/time/chat-tool-function")).status_code == 200
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-configured")
        assert "EXAMPLES_ENABLED=true" in answer.json()["detail"]


@pytest.mark.parametrize("zone", ["CST", "Asia/Peking", "../etc/passwd", "+08:00"])
async def test_a_zone_that_does_not_exist_stops_the_start(zone: str) -> None:
    with pytest.raises(ConfigurationError, match="EXAMPLES_ZONE"):
        async with service(EXAMPLES_ZONE=zone):
            pass


async def test_openapi_shows_the_examples_under_their_own_tag_with_every_status() -> None:
    async with service() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    shown = {(path, method): each for path, methods in paths.items() for method, each in methods.items()}
    examples = {at: each for at, each in shown.items() if each.get("tags") == ["Examples"]}
    assert set(examples) == {
        *((path, "get") for path in READING),
        ("/tool/alarm", "post"),
        ("/tool/alarms", "get"),
        ("/tool/alarms/{identifier}", "delete"),
    }
    for path in READING:
        assert set(examples[path, "get"]["responses"]) >= {"200", "400", "406", "414", "422", "502", "503", "504"}
        assert len(examples[path, "get"]["parameters"][0]["examples"]) >= 3
    assert set(examples["/tool/alarm", "post"]["responses"]) >= {"200", "403", "409", "422"}
    conflict = examples["/tool/alarm", "post"]["responses"]["409"]["content"]["application/problem+json"]
    assert "idempotency-conflict" in conflict["examples"]
