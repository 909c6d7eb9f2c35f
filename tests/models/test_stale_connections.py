"""A kept connection that the provider had closed: asked once more, and no failure of the provider."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, message, whole
from tests.serving import service

PATH = "/time/chat"
FIRST, SECOND = whole(message(content="the first")), whole(message(content="the second"))
CLOSED = Answer(ending="cut", is_silent=True)


@asynccontextmanager
async def standing_by(
    *answers: Answer, **variables: str
) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer, OpenAIPlayer], None]:
    async with OpenAIPlayer(answers) as first, OpenAIPlayer(lambda _: SECOND) as second:
        entry = {"provider": "openai_compatible", "base_url": second.base_url, "model": "second"}
        fallbacks = json.dumps([entry])
        async with service(OPENAI_BASE_URL=first.base_url, CHAT_FALLBACKS=fallbacks, **variables) as client:
            yield client, first, second


async def texts(client: httpx.AsyncClient, questions: int) -> Sequence[str]:
    return [(await client.get(PATH)).text for _ in range(questions)]


async def test_a_kept_connection_that_was_closed_is_no_failure_of_the_provider() -> None:
    async with standing_by(FIRST, CLOSED, FIRST, FIRST, BREAKER_FAILURES="1") as (client, first, second):
        assert await texts(client, 3) == ["the first"] * 3
    assert (len(first.requests), first.connections, len(second.requests)) == (4, 2, 0)


@pytest.mark.parametrize("kept", [0, 1])
async def test_a_provider_that_closes_a_new_connection_as_well_is_left_for_the_fallback(kept: int) -> None:
    async with standing_by(*[FIRST, CLOSED] * kept, CLOSED, BREAKER_FAILURES="1") as (client, first, _):
        assert await texts(client, kept + 2) == [*["the first"] * kept, "the second", "the second"]
    assert len(first.requests) == 1 + 2 * kept  # its circuit is open for the last question
