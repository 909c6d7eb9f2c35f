"""The connections to DashScope: shared, lost, and closed when nobody waits for the answer any more."""

import asyncio
from collections.abc import Awaitable

import pytest

from app.chat_models.base import Progress, TextDelta
from app.chat_models.dashscope.model import DashScopeChatModel
from app.errors import UpstreamUnavailable
from app.http import OutboundHttp
from tests.chat_models.dashscope.playing import SILENCE, TEXT, asking, configured, played
from tests.chat_models.responding import begun, response_of
from tests.players.dashscope_player import Answer, DashScopePlayer, saying, sse_answer


async def test_requests_share_one_connection() -> None:
    async with played(saying("ok")) as (model, player):
        for stream in (False, True, True, False):
            await response_of(model, asking(stream=stream))
    assert (len(player.requests), player.connections) == (4, 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_sdk_sends_a_request_twice_when_the_connection_is_lost_before_the_answer(stream: bool) -> None:
    async with played(SILENCE) as (model, player):
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking(stream=stream))
    assert len(player.requests) == 2


async def timed_out_on(event: asyncio.Event, work: Awaitable[object]) -> None:
    """Do the work under a time limit that strikes as soon as the event has come, however slow the machine is."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        coming = asyncio.create_task(event.wait())
        coming.add_done_callback(lambda _: limit.reschedule(loop.time()))
        await work


async def test_a_limit_of_ours_does_not_make_the_sdk_send_again() -> None:
    async with played(Answer(silent=True, ending="hang")) as (model, player):
        with pytest.raises(TimeoutError):
            await timed_out_on(player.arrived, response_of(model, asking(stream=True)))
        await player.aborted.wait()
    assert len(player.requests) == 1


async def test_nobody_listening_is_unavailable() -> None:
    async with played(saying("ok")) as (model, player):
        await player.close()
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking(stream=True))


async def test_a_closed_session_is_unavailable() -> None:
    http = OutboundHttp()
    async with DashScopePlayer(saying("ok")) as player:
        model = DashScopeChatModel(configured(player.base_url), http)
        await response_of(model, asking())
        await http.aclose()
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking())


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_before_the_answer_closes_the_connection(stream: bool) -> None:
    async with played(Answer(silent=True, ending="hang")) as (model, player):
        task = asyncio.create_task(response_of(model, asking(stream=stream)))
        await player.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await player.aborted.wait()


async def test_leaving_a_stream_in_the_middle_closes_the_connection() -> None:
    async with played(sse_answer(*TEXT, *TEXT, ending="hang")) as (model, player):
        async with begun(model, asking(stream=True)) as first:
            assert isinstance(first, TextDelta | Progress)
        await player.aborted.wait()
