"""The connections to the provider: shared, and closed when nobody waits for the answer any more."""

import asyncio
from contextlib import aclosing

import pytest

from tests.models.openai.playing import AT_ONCE, LIMIT, STREAMED, model_at, played
from tests.models.responding import begun, events_of
from tests.players.openai_player import Answer, OpenAIPlayer, delta, message, sse, whole
from toolchat.errors import ProviderRateLimited, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.models.base import Prompt, TextDelta


async def test_no_connection_is_upstream_unavailable() -> None:
    async with OpenAIPlayer([]) as player:
        url = player.base_url
    async with aclosing(OutboundHttp()) as http:
        with pytest.raises(UpstreamUnavailable):
            await events_of(model_at(url, http), STREAMED)


async def test_leaving_the_stream_closes_the_upstream_connection() -> None:
    async with played([sse(delta(content="晴"), done=False, ending="hang")]) as (model, player):
        async with begun(model, STREAMED) as first:
            assert first == TextDelta("晴")
        await player.aborted.wait()


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])
async def test_cancelling_the_question_closes_the_upstream_connection(prompt: Prompt) -> None:
    async with played([Answer(ending="hang")]) as (model, player):
        task = asyncio.create_task(events_of(model, prompt))
        await player.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await player.aborted.wait()


async def test_one_connection_serves_all_questions_and_all_kinds_of_answers() -> None:
    answers = [
        sse(delta("stop", content="a")),
        whole(message(content="b")),
        whole({"error": LIMIT}, 429),
        sse(delta("stop", content="c")),
    ]
    async with played(answers) as (model, player):
        for _ in range(2):
            await events_of(model, STREAMED)
        with pytest.raises(ProviderRateLimited):
            await events_of(model, STREAMED)
        await events_of(model, STREAMED)
    assert player.connections == 1
