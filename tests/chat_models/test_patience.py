"""How long a turn's events are waited for."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.chat_models.base import ModelEvent, Progress
from app.chat_models.patience import Patience
from app.errors import UpstreamTimeout
from tests.chat_models.jumping_loop import JumpingLoop


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": JumpingLoop}


async def _events(*pauses: float) -> AsyncGenerator[ModelEvent, None]:
    for pause in pauses:
        await asyncio.sleep(pause)
        yield Progress()


async def _all(patience: Patience, events: AsyncGenerator[ModelEvent, None]) -> None:
    while True:
        await patience.next(events)


def _patience(*, total: float = 30, idle: float = 30) -> Patience:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    return Patience(deadline=loop.time() + total, idle=idle)


async def test_an_event_that_does_not_come_within_the_idle_limit_ends_the_wait() -> None:
    patience, events = _patience(idle=0.05), _events(0, 1)
    await patience.next(events)
    with pytest.raises(UpstreamTimeout):
        await patience.next(events)
    patience.end()


async def test_events_that_keep_coming_are_waited_for_longer_than_the_idle_limit() -> None:
    patience, events = _patience(idle=0.2), _events(*[0.05] * 8)
    for _ in range(8):
        await patience.next(events)
    patience.end()


async def test_the_deadline_holds_however_lively_the_model_is() -> None:
    patience, events = _patience(total=0.2), _events(*[0.03] * 100)
    with pytest.raises(UpstreamTimeout):
        await _all(patience, events)
    patience.end()


async def test_the_time_that_the_reader_takes_is_not_counted_as_silence() -> None:
    patience, events = _patience(idle=0.05), _events(0, 0.01)
    await patience.next(events)
    await asyncio.sleep(0.2)
    assert await patience.next(events) == Progress()
    patience.end()


async def test_a_deadline_that_passed_while_the_reader_was_busy_ends_the_next_wait() -> None:
    patience, events = _patience(total=0.05), _events(0, 1)
    await patience.next(events)
    await asyncio.sleep(0.1)
    with pytest.raises(UpstreamTimeout):
        await patience.next(events)
    patience.end()


async def test_a_cancelled_wait_stays_a_cancellation() -> None:
    patience, events = _patience(), _events(30)
    waiting = asyncio.create_task(patience.next(events))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    patience.end()
