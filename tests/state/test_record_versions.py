"""Stored records with the version number of a newer service: they are refused, and stay as they are."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from tests.chat.played import JSON, asks, says, turns, update
from tests.players.openai_player import OpenAIPlayer
from tests.service.api.sessions.deciding import LIGHTS, approve, waiting
from tests.serving import client_of, configured, serving
from toolchat.service.main import create_app
from toolchat.state.base import RECORD_VERSION, StateStore

SWITCH = ("switchLight", {"on": True})
ALARM = JSON | {"Idempotency-Key": "alarm"}
RUN = {"Idempotency-Key": "run"}


@asynccontextmanager
async def stored() -> AsyncGenerator[tuple[httpx.AsyncClient, StateStore, str], None]:
    """A service that has a record of each kind; yields a client, the store and the place of an approval."""
    replies = turns(
        says("hello"), asks(update(("a", "pending"))), asks(SWITCH), asks(("setAlarm", {"time": "PT10M"})), says("set")
    )
    async with OpenAIPlayer(replies) as player:
        read = configured(LIGHTS, OPENAI_BASE_URL=player.base_url, EXAMPLES_ENABLED="true")
        app = create_app(read)
        async with serving(app, read.settings) as url, client_of(url) as client:
            await client.get("/chat", params={"query": "Hello", "sessionId": "talk"})
            approval, _ = await waiting(client, "/todo/chat", query="Plan", sessionId="plan")
            await client.post("/tool/alarm", params={"query": "Wake"}, headers=ALARM)
            await client.post("/tools/switchLight", json={"on": True}, headers=RUN)
            yield client, app.state.service.store, approval


async def values(store: StateStore) -> dict[str, bytes]:
    return {each.key: each.value async for each in store.records()}


async def test_the_records_of_a_newer_version_are_refused_and_stay() -> None:
    written, newer = b'"version":%d' % RECORD_VERSION, b'"version":%d' % (RECORD_VERSION + 1)
    async with stored() as (client, store, approval):
        for key, value in (await values(store)).items():
            # A newer version may also name its fields otherwise.
            await store.put(key, value.replace(written, newer).replace(b'"role":', b'"part":'), ttl=60)
        before = await values(store)
        answers = [
            await client.get("/chat/talk"),
            await client.get("/chat", params={"query": "Hello", "sessionId": "talk"}),
            await client.get("/todo/plan"),
            await approve(client, approval, "c0"),
            await client.post("/tool/alarm", params={"query": "Wake"}, headers=ALARM),
            await client.get("/tool/alarms"),
            await client.post("/tools/switchLight", json={"on": True}, headers=RUN),
        ]
        after = await values(store)

    assert {(each.status_code, each.json()["code"], each.headers["retry-after"]) for each in answers} == {
        (503, "store-unavailable", "1")
    }
    assert {"newer version" in each.json()["detail"] for each in answers} == {True}
    assert after == before
    assert sum(newer in value for value in after.values()) == 7
