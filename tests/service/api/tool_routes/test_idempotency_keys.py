"""A tool that needs approval runs once per idempotency key."""

import asyncio

import httpx
import pytest

from tests.service.api.tool_routes.folders.pottery import Yard
from tests.service.api.tool_routes.running import EVENTS, key, problem
from tests.service.server.watching import in_flight
from tests.serving import events_of
from tests.waiting import until

FIRE = "/tools/firePot"


@pytest.fixture(autouse=True)
def _open(yard: Yard) -> None:
    yard.door.set()


async def test_without_a_key_nothing_is_run(client: httpx.AsyncClient, yard: Yard) -> None:
    for form in ({}, EVENTS):
        answer = await client.post(FIRE, json={"pot": "vase"}, headers=form)
        assert problem(answer) == (400, "invalid-request")
        assert "Idempotency-Key" in answer.json()["detail"]
    assert yard.fired == []


async def test_the_same_key_gets_the_first_answer_again_in_every_form(client: httpx.AsyncClient, yard: Yard) -> None:
    first, again = [await client.post(FIRE, json={"pot": "vase"}, headers=key("k-1")) for _ in range(2)]
    stream = await client.post(FIRE, json={"pot": "vase"}, headers=key("k-1") | EVENTS)
    assert yard.fired == ["vase"]
    assert first.json()["result"] == "fired vase"
    assert [each.headers.get("idempotency-replayed") for each in (first, again, stream)] == [None, "true", "true"]
    assert again.json() | {"request_id": ""} == first.json() | {"request_id": ""}
    events = events_of(stream.text)
    assert [each.name for each in events] == ["tool_call_started", "tool_call_finished", "done"]
    assert events[-1].data["id"] == first.json()["id"]


@pytest.mark.parametrize(
    "other",
    [(FIRE, {"pot": "bowl"}), ("/tools/whose", {}), (f"{FIRE}?sessionId=s-9", {"pot": "vase"})],
    ids=["arguments", "tool", "session"],
)
async def test_a_key_that_was_used_for_something_else_conflicts_for_good(
    other: tuple[str, dict[str, str]], client: httpx.AsyncClient, yard: Yard
) -> None:
    name = key(f"k-{other}".replace("'", ""))
    await client.post(FIRE, json={"pot": "vase"}, headers=name)
    answer = await client.post(other[0], json=other[1], headers=name)
    assert problem(answer) == (409, "idempotency-conflict")
    assert answer.json()["retryable"] is False
    assert yard.fired == ["vase"]


async def test_another_tenants_key_is_another_one(client: httpx.AsyncClient, yard: Yard) -> None:
    for tenant in ("a", "b"):
        await client.post(FIRE, json={"pot": "vase"}, headers=key("k-2") | {"X-Tenant-ID": tenant})
    assert yard.fired == ["vase", "vase"]


async def test_a_run_that_its_client_left_is_not_run_again(client: httpx.AsyncClient, yard: Yard) -> None:
    # Nobody knows what it has done until then.
    yard.door.clear()
    leaving = asyncio.create_task(client.post(FIRE, json={"pot": "vase"}, headers=key("k-5")))
    await until(lambda: yard.fired)
    leaving.cancel()

    async def is_over() -> bool:
        return await in_flight(client) == 0

    await until(is_over)
    answer = await client.post(FIRE, json={"pot": "vase"}, headers=key("k-5"))
    assert problem(answer) == (409, "idempotency-conflict")
    assert answer.json()["retryable"] is False
    assert yard.fired == ["vase"]


async def test_the_key_of_a_rejected_request_can_be_used_again(client: httpx.AsyncClient, yard: Yard) -> None:
    refused = await client.post(FIRE, json={}, headers=key("k-6"))
    answer = await client.post(FIRE, json={"pot": "vase"}, headers=key("k-6"))
    assert (refused.status_code, answer.status_code) == (422, 200)


async def test_a_failure_is_replayed_like_any_answer(client: httpx.AsyncClient) -> None:
    answers = [await client.post("/tools/crack", json={"kind": "told"}, headers=key("k-7")) for _ in range(2)]
    assert [each.json()["error_kind"] for each in answers] == ["crack"] * 2
    assert answers[0].json()["id"] == answers[1].json()["id"]


@pytest.mark.parametrize("given", [[("Idempotency-Key", "a"), ("Idempotency-Key", "b")], [("Idempotency-Key", "a\tb")]])
async def test_a_key_that_is_none_is_refused(
    given: list[tuple[str, str]], client: httpx.AsyncClient, yard: Yard
) -> None:
    answer = await client.post(FIRE, json={"pot": "vase"}, headers=given)
    assert problem(answer) == (422, "validation")
    assert yard.fired == []
