"""A conversation has so many tool calls, and no more."""

from collections import Counter

import httpx

from tests.chat.played import asks, clock, says, turns
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.service.api.sessions.conversing import JSON, ask
from tests.serving import service

LIMIT = {"TOOL_MAX_CALLS_PER_SESSION": "3"}


def looks_twice(request: PlayedRequest) -> Answer:
    """A model that looks at two clocks at once and answers with whatever it is told."""
    told = request.body["messages"][-1]["role"] == "tool"
    return turns(says("ok") if told else asks(clock("Europe/Paris"), clock("Asia/Tokyo")))(request)


async def outcomes(client: httpx.AsyncClient, question: str, session: str = "s-1") -> Counter[str]:
    """What became of the calls of one question."""
    answer = await ask(client, question, session, **JSON)
    assert answer.status_code == 200, answer.text
    return Counter(each.get("error_kind", "ok") for each in answer.json()["tool_calls"])


async def test_calls_of_a_conversation_are_counted_over_its_questions() -> None:
    async with OpenAIPlayer(looks_twice) as player, service(OPENAI_BASE_URL=player.base_url, **LIMIT) as client:
        told = [await outcomes(client, "What time is it?") for _ in range(3)]
        other = await outcomes(client, "What time is it?", "s-2")
    assert [each["ok"] for each in told] == [2, 1, 0]
    assert [each["limit"] for each in told] == [0, 1, 2]
    assert other == {"ok": 2}


async def test_a_conversation_that_is_forgotten_begins_to_count_anew() -> None:
    async with OpenAIPlayer(looks_twice) as player, service(OPENAI_BASE_URL=player.base_url, **LIMIT) as client:
        await outcomes(client, "What time is it?")
        assert (await client.delete("/chat/s-1")).status_code == 204
        assert await outcomes(client, "What time is it?") == {"ok": 2}
