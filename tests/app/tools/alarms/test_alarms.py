"""Alarms: how they are set, at which times, what sets none, and whose they are."""

from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest

from app.tools.alarms.alarms import AlarmOrder, AlarmStore, due_at
from tests.app.tools.alarms.asking import alarm_at, alarms, key
from tests.app.tools.examples.asking import SAID, ZONE
from tests.calling_as import calling_as
from tests.chat.played import JSON
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.serving import service
from tests.waiting import until
from toolchat.errors import NotFound
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.errors import ToolExecutionError


@pytest.mark.parametrize(
    "query", ["", "帮我设置一个10分钟以后的闹钟，确认", "Set an alarm in 10 minutes, yes", "设一个闹钟，十分钟后，确认"]
)
async def test_an_alarm_is_set_without_a_key_and_listed(
    query: str, offline: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    answer = await offline.post("/tool/alarm", params={"query": query}, headers=key() | tenant)
    (alarm,) = await alarms(offline, **tenant)
    due = datetime.fromisoformat(alarm["time"]) - timedelta(minutes=10)
    assert before <= due <= datetime.now(UTC)
    assert answer.text == f"设置闹钟成功! {alarm['time']} (Asia/Shanghai)"
    assert (alarm["zone"], alarm["status"]) == ("Asia/Shanghai", "waiting")


async def test_a_question_sent_twice_is_rejected(offline: httpx.AsyncClient) -> None:
    answer = await offline.post("/tool/alarm?query=八点", json={"query": "七点"}, headers=key())
    assert (answer.status_code, await alarms(offline)) == (422, [])


async def test_the_same_minute_requested_twice_is_one_alarm() -> None:
    extra = (30 - datetime.now(UTC).second) % 60  # due in the middle of a minute, far from the next one
    once, again = f"PT10M{extra}S", f"PT{605 + extra}S"  # five seconds apart
    script = [alarm_at(once, again, once), alarm_at(once), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = (await client.post("/tool/alarm", headers=key(**JSON))).json()
        assert len(await alarms(client)) == 1
    assert [call["outcome"] for call in answer["tool_calls"][:3]] == ["ok"] * 3


async def test_one_client_leaves_half_of_the_alarms_to_the_others() -> None:
    store, now, order = AlarmStore(SqliteStateStore()), datetime.now(UTC), AlarmOrder("zh")
    store.limit = 4
    for hour in (1, 2):
        await store.set(order, now + timedelta(hours=hour))
    with pytest.raises(ToolExecutionError) as refused:
        await store.set(order, now + timedelta(hours=3))
    assert refused.value.kind == "too-many-alarms"
    with calling_as(address="192.0.2.1"):
        assert (await store.set(order, now + timedelta(hours=3))).at == now + timedelta(hours=3)


async def test_alarms_are_bounded_and_the_oldest_fired_one_is_evicted() -> None:
    store, now, order = AlarmStore(SqliteStateStore()), datetime.now(UTC), AlarmOrder("zh")
    store.limit = 2
    with calling_as(address="192.0.2.1"):  # half of the places are for others
        await store.set(order, now + timedelta(hours=2))
    first = await store.set(order, now + timedelta(hours=1))
    with pytest.raises(ToolExecutionError) as refused:
        await store.set(order, now + timedelta(hours=3))
    assert refused.value.kind == "too-many-alarms"
    await store.delete("zh", first.id)
    due = await store.set(order, now)
    assert (await store.of("zh"))[0].is_due
    await store.set(order, now + timedelta(hours=3))
    with pytest.raises(NotFound):
        await store.delete("zh", due.id)


async def test_the_status_of_an_alarm_follows_from_its_time() -> None:
    script = [alarm_at("PT1H"), SAID, alarm_at("PT0.1S"), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for name in ("later", "sooner"):
            await client.post("/tool/alarm", headers=key(name))

        async def has_fired() -> bool:
            return [each["status"] for each in await alarms(client)] == ["fired", "waiting"]

        await until(has_fired)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH"])
async def test_only_a_post_sets_an_alarm(method: str, offline: httpx.AsyncClient) -> None:
    answer = await offline.request(method, "/tool/alarm", headers=key())
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.headers["content-type"] == "application/problem+json"
    assert await alarms(offline) == []


async def test_an_alarm_is_deleted_by_its_tenant_alone(offline: httpx.AsyncClient) -> None:
    await offline.post("/tool/alarm", headers=key())
    (alarm,) = await alarms(offline)
    path = f"/tool/alarms/{alarm['id']}"
    assert (await offline.delete(path, headers={"X-Tenant-ID": "other"})).status_code == 404
    assert await alarms(offline) == [alarm]
    assert (await offline.delete(path)).json() == alarm
    assert (await offline.delete(path)).json()["code"] == "not-found"
    assert await alarms(offline) == []


def obedient(request: PlayedRequest) -> Answer:
    """A model that takes the whole question as the time of an alarm."""
    last = request.body["messages"][-1]
    return alarm_at(last["content"]) if last["role"] == "user" else SAID


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with OpenAIPlayer(obedient) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        yield client


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        (timedelta(hours=-1), "past-time"),
        ("2001-01-01T00:00:00Z", "past-time"),
        ("PT0S", "past-time"),
        (timedelta(days=400), "too-far"),
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
    ],
    ids=str,
)
async def test_a_time_that_cannot_be_meant_is_refused_with_a_reason(
    moment: str | timedelta, kind: str, client: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    time = moment if isinstance(moment, str) else (datetime.now(UTC) + moment).isoformat()
    answer = (await client.post("/tool/alarm", json={"query": time}, headers=key(**JSON) | tenant)).json()
    assert (answer["tool_calls"][0]["error_kind"], await alarms(client, **tenant)) == (kind, [])


async def test_a_time_without_an_offset_is_in_the_users_zone(client: httpx.AsyncClient, tenant: dict[str, str]) -> None:
    wanted = (datetime.now(ZoneInfo(ZONE)) + timedelta(hours=1)).replace(microsecond=0)
    naive = wanted.replace(tzinfo=None).isoformat()
    await client.post("/tool/alarm", json={"query": naive}, headers=key() | tenant)
    (alarm,) = await alarms(client, **tenant)
    assert (alarm["time"], alarm["zone"]) == (wanted.isoformat(), ZONE)


@pytest.mark.parametrize("year", range(2025, 2030))
def test_a_time_that_clocks_leave_out_is_refused(year: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    sunday = next(day for day in range(31, 24, -1) if date(year, 3, day).weekday() == 6)
    asked_at = datetime(year, 3, 1, tzinfo=UTC)
    for left_out in ("02:00", "02:30"):
        with pytest.raises(ToolExecutionError, match="put forward") as refused:
            due_at(f"{year}-03-{sunday}T{left_out}", asked_at, zone)
        assert refused.value.kind == "no-such-time"
