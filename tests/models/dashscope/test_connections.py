"""The connections to DashScope: shared, lost, and closed when nobody waits for the answer any more."""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing

import pytest

from tests.models.dashscope.playing import SILENCE, TEXT, asking, model_at, played
from tests.models.responding import begun, response_of
from tests.players.dashscope_player import Answer, DashScopePlayer, saying, sse_answer
from toolchat.errors import UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.models.base import Progress, TextDelta


async def test_requests_share_one_connection() -> None:
    async with played(saying("ok")) as (model, player):
        for stream in (False, True, True, False):
            await response_of(model, asking(stream=stream))
    assert (len(player.requests), player.connections) == (4, 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_sdk_uses_our_connections_and_leaves_none_open(stream: bool) -> None:
    async with DashScopePlayer(saying("ok")) as player, aclosing(OutboundHttp()) as http:
        answer = await response_of(model_at(player.base_url, http), asking(stream=stream))
        assert (answer.message.text, http.connections, player.connections) == ("ok", 1, 1)
        await http.aclose()
        assert http.connections == 0


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_lost_before_the_response_is_unavailable_and_not_retried(
    stream: bool, is_kept: bool
) -> None:
    # The SDK sends a request once more when aiohttp says so; whether a turn is tried again is our decision alone.
    async with played(*[saying("ok")] * is_kept, SILENCE) as (model, player):
        for _ in range(is_kept):
            await response_of(model, asking())
        with pytest.raises(UpstreamUnavailable) as lost:
            await response_of(model, asking(stream=stream))
    assert lost.value.retryable
    assert (len(player.requests), player.connections) == (1 + is_kept, 1)


async def timed_out_on(event: asyncio.Event, work: Awaitable[object]) -> None:
    """Do the work under a time limit that strikes as soon as the event has come, however slow the machine is."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        coming = asyncio.create_task(event.wait())
        coming.add_done_callback(lambda _: limit.reschedule(loop.time()))
        await work


@pytest.mark.parametrize("stream", [False, True])
async def test_a_limit_of_ours_does_not_make_the_sdk_send_again(stream: bool) -> None:
    async with played(Answer(is_silent=True, ending="hang")) as (model, player):
        with pytest.raises(TimeoutError):
            await timed_out_on(player.asked, response_of(model, asking(stream=stream)))
        await player.aborted.wait()
    assert len(player.requests) == 1


async def test_a_refused_connection_is_unavailable() -> None:
    async with played(saying("ok")) as (model, player):
        await player.close()
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking(stream=True))


async def test_a_closed_session_is_unavailable() -> None:
    http = OutboundHttp()
    async with DashScopePlayer(saying("ok")) as player:
        model = model_at(player.base_url, http)
        await response_of(model, asking())
        await http.aclose()
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking())


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_before_the_answer_closes_the_connection(stream: bool) -> None:
    async with played(Answer(is_silent=True, ending="hang")) as (model, player):
        task = asyncio.create_task(response_of(model, asking(stream=stream)))
        await player.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await player.aborted.wait()


async def test_leaving_a_stream_in_the_middle_closes_the_connection() -> None:
    async with played(sse_answer(*TEXT, *TEXT, ending="hang")) as (model, player):
        async with begun(model, asking(stream=True)) as first:
            assert isinstance(first, TextDelta | Progress)
        await player.aborted.wait()
