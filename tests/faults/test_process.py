"""The process is stopped, killed or started without a log."""

import asyncio
import signal
import time

import pytest

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import speaking
from tests.faults.wire import Reply
from tests.waiting import until

_STREAM = {"Accept": "text/event-stream"}


async def _streams(stage: Stage, service: Service, count: int, seconds: float) -> "list[asyncio.Task[Reply]]":
    """Streams that have begun and will take so long."""
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=seconds / 10)
    asked = [asyncio.create_task(service.ask("/time/chat?query=hi", headers=_STREAM)) for _ in range(count)]
    await until(lambda: len(stage.upstream.calls) == count)  # the first may be over before the last has begun
    return asked


async def test_term_with_streams(stage: Stage) -> None:
    """SIGTERM with 50 open streams that take 2 s: each is finished, and the exit code is 0."""
    service = await stage.own()
    asked = await _streams(stage, service, 50, 2)
    service.signal(signal.SIGTERM)
    assert {each.last for each in await asyncio.gather(*asked)} == {"done"}
    assert await service.ended() == 0


@pytest.mark.nightly
async def test_stopped_and_continued(stage: Stage) -> None:
    """SIGSTOP for 3 s, as by a live migration, with 20 open streams."""
    service = await stage.own()
    asked = await _streams(stage, service, 20, 2)
    service.signal(signal.SIGSTOP)
    await asyncio.sleep(3)
    service.signal(signal.SIGCONT)
    assert sum(each.last == "done" for each in await asyncio.gather(*asked)) >= 20


@pytest.mark.nightly
async def test_killed_and_started_again(stage: Stage) -> None:
    """SIGKILL with 20 open streams; the service is started again on the same port."""
    service = await stage.own()
    asked = await _streams(stage, service, 20, 60)
    service.signal(signal.SIGKILL)
    await service.ended()
    replies = await asyncio.gather(*asked)
    assert not any(each.whole for each in replies), "a cut stream looked finished"
    stage.upstream.reset()
    began = time.monotonic()
    await service.start()
    assert (await service.ask("/time/chat?query=hi")).status == 200, "it does not answer"
    assert time.monotonic() - began <= 20


async def test_the_log_is_closed(stage: Stage) -> None:
    """Standard output and error are closed from the start."""
    port = stage.port()
    service = stage.unstarted("sh", "-c", 'exec "$@" >&- 2>&-', "sh", SERVER_PORT=str(port))
    service.url = f"http://127.0.0.1:{port}"
    service.spawn()

    async def answers() -> bool:
        try:
            return (await service.ask("/time/chat?query=hi")).status == 200
        except OSError:
            return False

    await until(answers)
