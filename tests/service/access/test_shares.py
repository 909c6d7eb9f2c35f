"""What one client does leaves the others their share."""

import asyncio

import httpx

from tests.players.openai_player import OpenAIPlayer
from tests.service.api.sessions.conversing import GatedPlayer, ask, sociable
from tests.service.observability.reading import figures_of, grown
from tests.serving import service
from tests.waiting import until
from toolchat.service.access.keys import digest_of

PATH = "/time/chat"


def from_(address: str) -> dict[str, str]:
    return {"X-Forwarded-For": address}


async def in_flight(client: httpx.AsyncClient) -> int:
    return int((await figures_of(client))["toolchat_questions_in_flight", ()])


async def test_one_address_can_take_at_most_half_of_the_slots() -> None:
    async with (
        GatedPlayer(sociable) as player,
        service(OPENAI_BASE_URL=player.base_url, MAX_QUESTIONS="6", TRUSTED_PROXIES="127.0.0.1") as client,
    ):
        player.gate.clear()
        greedy = [asyncio.create_task(client.get(PATH, headers=from_("192.0.2.1"))) for _ in range(10)]

        async def is_full() -> bool:
            return await in_flight(client) == 3 and sum(task.done() for task in greedy) == 7

        await until(is_full)
        other = asyncio.create_task(client.get(PATH, headers=from_("192.0.2.2")))

        async def is_let_in() -> bool:
            return await in_flight(client) == 4

        await until(is_let_in)
        player.gate.set()
        assert (await other).status_code == 200
        refused = [answer for answer in await asyncio.gather(*greedy) if answer.status_code != 200]
        assert {(each.status_code, each.json()["code"]) for each in refused} == {(503, "overloaded")}
        assert "3 questions of this client" in refused[0].json()["detail"]


async def test_many_new_sessions_of_one_address_leave_the_conversations_of_others() -> None:
    async with (
        OpenAIPlayer(sociable) as player,
        service(OPENAI_BASE_URL=player.base_url, STATE_URL="memory://?max_mb=1", TRUSTED_PROXIES="127.0.0.1") as client,
    ):
        await client.get("/chat", params={"query": "hi", "sessionId": "hers"}, headers=from_("192.0.2.2"))
        for number in range(200):  # 8 KB each
            parameters = {"query": "hi " * 1300, "sessionId": f"flood-{number}"}
            assert (await client.get("/chat", params=parameters, headers=from_("192.0.2.1"))).status_code == 200
        assert (await client.get("/chat/hers", headers=from_("192.0.2.2"))).status_code == 200


async def test_waiting_requests_of_others_do_not_block_the_owner_of_a_session() -> None:
    # Where keys are, a session of one is not that of another; without them who knows its name is its owner.
    keys = f"alice={digest_of('a')},bob={digest_of('b')}"
    async with (
        GatedPlayer(sociable) as player,
        service(OPENAI_BASE_URL=player.base_url, API_KEYS=keys, SESSION_WAIT="600") as client,
    ):
        player.gate.clear()
        theirs = [asyncio.create_task(ask(client, "hi", **{"X-API-Key": "b"})) for _ in range(60)]

        async def are_waiting() -> bool:
            # One is asked, 32 wait, and the others were refused.
            return sum(task.done() for task in theirs) == 27 and len(player.requests) == 1

        await until(are_waiting)
        hers = asyncio.create_task(ask(client, "hi", **{"X-API-Key": "a"}))
        await until(lambda: len(player.requests) == 2)
        player.gate.set()
        assert (await hers).status_code == 200
        assert {each.status_code for each in await asyncio.gather(*theirs)} == {200, 409}


async def test_a_quota_has_headers_and_rejects_as_the_draft_specifies() -> None:
    key = "toolchat_right"
    async with service(API_KEYS=f"alice={digest_of(key)}", REQUESTS_PER_MINUTE="2") as client:
        client.headers["X-API-Key"] = key
        before = await figures_of(client)
        answers = [await client.get("/time/chat-tool-function") for _ in range(3)]
        refused = grown(before, await figures_of(client), "toolchat_quotas_refused_total")
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert {each.headers["RateLimit-Policy"] for each in answers} == {'"minute";q=2;w=60'}
    assert 0 < int(answers[2].headers["Retry-After"]) <= 30
    document = answers[2].json()
    assert document["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert (document["violated-policies"], document["code"]) == (["minute"], "quota-exceeded")
    assert refused == {(): 1}
