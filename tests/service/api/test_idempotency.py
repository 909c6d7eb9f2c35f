"""Requests with an idempotency key: what a repetition gets, asked of the example that sets alarms."""

import asyncio
import secrets
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from tests.app.tools.alarms.asking import alarm_at, alarms, key
from tests.app.tools.examples.asking import SAID
from tests.chat.played import EVENTS, JSON
from tests.players.openai_player import OpenAIPlayer, body, delta, sse
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.replicas import running_replicas
from tests.serving import client_of, events_of, service
from tests.waiting import until
from toolchat.service.api.idempotency import IdempotentRequest


@pytest.fixture
def tenant() -> dict[str, str]:
    """The header of a new tenant: alarms and keys are its own."""
    return {"X-Tenant-ID": f"t-{secrets.token_hex(8)}"}


def test_blanks_behind_a_key_do_not_change_the_name_of_its_request() -> None:
    once, again, twice = (IdempotentRequest("alice", key, "?").name for key in ("once ", "once", "twice"))
    assert once == again != twice


async def test_two_wishes_are_two_alarms_even_under_one_request_id(
    offline: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    for name in ("k-1", "k-2"):
        await offline.post("/tool/alarm", headers=key(name, X_Request_ID="same") | tenant)
    assert len(await alarms(offline, **tenant)) == 2


async def test_a_write_without_a_key_is_refused(offline: httpx.AsyncClient) -> None:
    assert (await offline.post("/tool/alarm")).status_code == 422
    assert await alarms(offline) == []


@pytest.mark.parametrize("given", [b"", b"x" * 256, b"a\tb", "é".encode()], ids=lambda given: repr(given)[:20])
async def test_a_key_that_is_none_is_refused(given: bytes, offline: httpx.AsyncClient) -> None:
    answer = await offline.post("/tool/alarm", headers=[(b"Idempotency-Key", given)])
    twice = await offline.post("/tool/alarm", headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert twice.status_code == 422
    assert (answer.status_code, await alarms(offline)) == (422, [])


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


async def test_the_same_key_with_another_question_is_refused(
    offline: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    await offline.post("/tool/alarm", headers=key() | tenant)
    answer = await offline.post("/tool/alarm?query=20分钟以后的闹钟，确认", headers=key() | tenant)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert len(await alarms(offline, **tenant)) == 1


async def test_a_second_request_while_the_first_runs_conflicts() -> None:
    hanging = sse(delta(content="a"), ending="hang", done=False)
    async with (
        OpenAIPlayer([hanging]) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
        client.stream("POST", "/tool/alarm", headers=key(**EVENTS)) as first,
    ):
        pieces = first.aiter_text()
        await anext(pieces)
        seconds = [await client.post("/tool/alarm", headers=key(**form)) for form in ({}, EVENTS)]
    assert [(each.status_code, each.json()["code"]) for each in seconds] == [(409, "idempotency-conflict")] * 2
    assert [each.headers["retry-after"] for each in seconds] == ["1", "1"]
    assert len(player.requests) == 1


async def test_the_key_of_a_question_that_failed_and_set_nothing_is_free_again() -> None:
    script = [sse(delta(content="a"), ending="cut", done=False), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        first = await client.post("/tool/alarm", headers=key(**EVENTS))
        second = await client.post("/tool/alarm", headers=key())
    assert events_of(first.text)[-1].name == "error"
    assert (second.text, "idempotency-replayed" in second.headers) == ("done", False)


async def test_many_requests_with_one_key_at_once_set_one_alarm(
    offline: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    answers = await asyncio.gather(*(offline.post("/tool/alarm", headers=key() | tenant) for _ in range(20)))
    assert len(await alarms(offline, **tenant)) == 1
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


async def test_a_key_may_have_255_printable_characters(offline: httpx.AsyncClient, tenant: dict[str, str]) -> None:
    assert (await offline.post("/tool/alarm", headers=key('a "b"~' + "x" * 249) | tenant)).status_code == 200


async def post(client: httpx.AsyncClient, time: str, **headers: str) -> httpx.Response:
    return await client.post("/tool/alarm", json={"query": time}, headers=key(**headers))


async def test_the_key_of_a_dead_process_returns_the_alarm_it_has_set(tmp_path: Path) -> None:
    # The lock of the process that died runs out after some seconds; until then its key conflicts.
    script = [alarm_at("PT1H"), sse(delta(content="a"), ending="hang", done=False)]
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisServer())
        player = await stack.enter_async_context(OpenAIPlayer(script))
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url}
        processes = await stack.enter_async_context(running_replicas(2, tmp_path, **variables))
        gone, client = [await stack.enter_async_context(client_of(each.url)) for each in processes]
        dying = asyncio.create_task(post(gone, "PT1H"))
        await until(lambda: len(player.requests) == 2)
        processes[0].kill()
        await asyncio.wait({dying})
        assert isinstance(dying.exception(), httpx.TransportError)

        async def is_free() -> bool:
            return (await post(client, "PT1H")).status_code != 409

        await until(is_free)
        again = await post(client, "PT1H")
        (alarm,) = await alarms(client)
    assert (again.status_code, "闹钟已设置" in again.text) == (200, True)
    assert (alarm["status"], len(player.requests)) == ("waiting", 2)
