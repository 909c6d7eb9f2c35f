"""How long a turn's events are waited for."""

import asyncio
from typing import Any

import pytest

from tests.models.jumping_loop import JumpingLoop
from tests.models.responding import events_of
from toolchat.errors import UpstreamTimeout
from toolchat.messages import AssistantMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.models.resilience import KEEPALIVE, ModelTimeouts, ResilientChatModel


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": JumpingLoop}


async def _turn(*pauses: float, total: float = 30, idle: float = 30, reading: float = 0) -> None:
    """A turn whose events come after pauses; each is read for so many seconds."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    with ModelTimeouts(deadline=loop.time() + total, idle=idle) as timeouts:
        for pause in pauses:
            await asyncio.sleep(pause)
            timeouts.pause()
            await asyncio.sleep(reading)
            timeouts.resume()


async def test_an_event_that_does_not_come_within_the_idle_limit_ends_the_wait() -> None:
    with pytest.raises(UpstreamTimeout):
        await _turn(0, 1, idle=0.05)


async def test_events_that_keep_coming_are_waited_for_longer_than_the_idle_limit() -> None:
    await _turn(*[0.05] * 8, idle=0.2)


async def test_the_deadline_holds_however_lively_the_model_is() -> None:
    with pytest.raises(UpstreamTimeout):
        await _turn(*[0.03] * 100, total=0.2)


async def test_the_time_that_the_reader_takes_is_not_counted_as_silence() -> None:
    await _turn(0, 0.01, 0.01, idle=0.05, reading=0.2)


async def test_a_deadline_that_passed_while_the_reader_was_busy_ends_the_next_wait() -> None:
    with pytest.raises(UpstreamTimeout):
        await _turn(0, 1, total=0.05, reading=0.1)


async def test_a_cancelled_wait_stays_a_cancellation() -> None:
    waiting = asyncio.create_task(_turn(30))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_limit_that_expires_while_a_cancelled_model_tidies_up_leaves_it_a_cancellation() -> None:
    tidied = asyncio.Event()

    async def turn() -> None:
        with ModelTimeouts(deadline=asyncio.get_running_loop().time() + 1, idle=30):
            try:
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(5)  # the deadline passes meanwhile
                tidied.set()

    waiting = asyncio.create_task(turn())
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert tidied.is_set()


class _Busy(ChatModel):
    """Sends signs of life every 20 seconds, and then its answer."""

    provider = name = "busy"

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        for _ in range(10):
            await asyncio.sleep(20)
            await emit(KEEPALIVE)
        await emit(TextDelta("ok"))
        return ChatResponse(AssistantMessage("ok"), "stop", Usage(), self.name)


@pytest.mark.parametrize("total", [300, 100])
async def test_signs_of_life_reset_the_idle_limit_only_and_are_not_passed_on(total: int) -> None:
    busy = ResilientChatModel(_Busy(), total_timeout=total, idle_timeout=30)
    asked = events_of(busy, Prompt((UserMessage("?"),), stream=True))
    if total == 100:
        with pytest.raises(UpstreamTimeout):
            await asked
    else:
        assert (await asked)[:-1] == [TextDelta("ok")]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_silent_model_is_given_up_at_the_idle_limit_and_not_asked_again(stream: bool) -> None:
    asked = 0

    class Silent(_Busy):
        async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
            nonlocal asked
            asked += 1
            await asyncio.sleep(1000)
            raise AssertionError("nobody waited for so long")

    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(UpstreamTimeout):
        await events_of(
            ResilientChatModel(Silent(), total_timeout=600, idle_timeout=30),
            Prompt((UserMessage("?"),), stream=stream),
        )
    assert asked == 1
    assert loop.time() - began == pytest.approx(30)
