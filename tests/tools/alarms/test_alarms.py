"""Alarms: how they are set, what sets none, and how they are documented."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.tools.alarms.alarms import AlarmOrder, AlarmStore
from tests.calling_as import calling_as
from tests.chat.played import JSON
from tests.documented import problems_of
from tests.players.openai_player import OpenAIPlayer
from tests.serving import service
from tests.tools.alarms.asking import alarm_at, alarms, key
from tests.tools.examples.asking import SAID
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


async def test_two_wishes_are_two_alarms_even_under_one_request_id(
    offline: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    for name in ("k-1", "k-2"):
        await offline.post("/tool/alarm", headers=key(name, X_Request_ID="same") | tenant)
    assert len(await alarms(offline, **tenant)) == 2


async def test_the_same_minute_requested_twice_is_one_alarm() -> None:
    extra = (30 - datetime.now(UTC).second) % 60  # due in the middle of a minute, far from the next one
    once, again = f"PT10M{extra}S", f"PT{605 + extra}S"  # five seconds apart
    script = [alarm_at(once, again, once), alarm_at(once), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = (await client.post("/tool/alarm", headers=key(**JSON))).json()
        assert len(await alarms(client)) == 1
    assert [call["outcome"] for call in answer["tool_calls"][:3]] == ["ok"] * 3


async def test_one_client_leaves_half_of_the_alarms_to_the_others() -> None:
    store, now, order = AlarmStore(SqliteStateStore(), limit=4), datetime.now(UTC), AlarmOrder("zh")
    for hour in (1, 2):
        await store.set(order, now + timedelta(hours=hour))
    with pytest.raises(ToolExecutionError) as refused:
        await store.set(order, now + timedelta(hours=3))
    assert refused.value.kind == "too-many-alarms"
    with calling_as(address="192.0.2.1"):
        assert (await store.set(order, now + timedelta(hours=3))).at == now + timedelta(hours=3)


async def test_alarms_are_bounded_and_the_oldest_fired_one_is_evicted() -> None:
    store, now, order = AlarmStore(SqliteStateStore(), limit=2), datetime.now(UTC), AlarmOrder("zh")
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


async def shown(client: httpx.AsyncClient) -> dict[tuple[str, str], dict[str, Any]]:
    """What OpenAPI shows of the alarms, by path and method."""
    paths = (await client.get("/openapi.json")).json()["paths"]
    found = {(path, method): each for path, methods in paths.items() for method, each in methods.items()}
    return {at: each for at, each in found.items() if each.get("tags") == ["Alarms"]}


async def test_openapi_shows_the_alarms_under_their_own_tag(offline: httpx.AsyncClient) -> None:
    assert set(await shown(offline)) == {
        ("/tool/alarm", "post"),
        ("/tool/alarms", "get"),
        ("/tool/alarms/{identifier}", "delete"),
    }


async def test_openapi_shows_the_alarm_with_every_status_and_both_ways_to_ask(offline: httpx.AsyncClient) -> None:
    alarm = (await shown(offline))["/tool/alarm", "post"]
    assert set(problems_of(alarm)) >= {403, 409, 415, 422}
    assert problems_of(alarm)[409] == ["idempotency-conflict"]
    assert "query" in [each["name"] for each in alarm["parameters"]]
    assert list(alarm["requestBody"]["content"]["application/json"]["schema"]["properties"]) == ["query"]
