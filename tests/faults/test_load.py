"""Slow clients beside others, and more questions than there are places."""

import asyncio
import time

import pytest

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import speaking
from tests.faults.wire import opened, percentile

_SHORT = {"SERVER_CLIENT_TIMEOUT": "1", "REQUEST_TIMEOUT": "6"}
_SMALL = {"MAX_QUESTIONS": "20", "STATE_URL": "memory://?max_mb=1", "SESSION_WAIT": "1"}
_POST = b"POST /time/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


async def test_half_sent_headers(stage: Stage) -> None:
    """300 clients send half of their headers and then a byte now and then (slow-loris)."""
    service = await stage.service(**_SHORT)
    assert await _hung_up_on(service, 300, b"GET /time/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ") <= 20


async def test_slow_bodies(stage: Stage) -> None:
    """300 clients send a body one byte now and then."""
    service = await stage.service(**_SHORT)
    assert await _hung_up_on(service, 300, _POST + b'Content-Length: 1000\r\n\r\n{"query": "') <= 20


@pytest.mark.nightly
async def test_others_beside_slow_clients(stage: Stage) -> None:
    """500 clients drip headers and bodies while others ask."""
    # A machine that stalls for a second must not make a fast client look slow.
    service = await stage.service(**_SHORT | {"SERVER_CLIENT_TIMEOUT": "5"})
    slow = asyncio.create_task(_hung_up_on(service, 500, _POST + b'Content-Length: 1000\r\n\r\n{"query": "'))
    took = []
    for _ in range(100):
        reply = await service.ask("/time/chat?query=hi")
        assert reply.status == 200, f"answered {reply.outcome}"
        took.append(reply.seconds * 1000)
    await slow
    assert percentile(took, 0.95) <= 1000


async def _hung_up_on(service: Service, count: int, begin: bytes, drip: bytes = b"x") -> float:
    """Seconds until the last of these clients was disconnected."""
    began = time.monotonic()

    async def dawdle() -> float:
        async with opened(service.port) as (reader, writer):
            writer.write(begin)
            read = asyncio.create_task(reader.read())
            try:
                while not (await asyncio.wait([read], timeout=0.3))[0] and not writer.transport.is_closing():
                    writer.write(drip)
                await read
            except ConnectionError:
                pass
            return time.monotonic() - began

    async with asyncio.timeout(30):
        return max(await asyncio.gather(*(dawdle() for _ in range(count))))


@pytest.mark.nightly
async def test_probes_while_saturated(stage: Stage) -> None:
    """`/health/live` is asked while 40 clients ask as fast as they can where there are 20 places."""
    service = await stage.service(**_SMALL)
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.05)
    stop = asyncio.Event()

    async def press() -> None:
        while not stop.is_set():
            await service.ask("/time/chat?query=hi")

    crowd = [asyncio.create_task(press()) for _ in range(40)]
    took = [(await service.ask("/health/live")).seconds * 1000 for _ in range(50)]
    stop.set()
    await asyncio.gather(*crowd)
    assert percentile(took, 0.95) <= 1000


@pytest.mark.nightly
async def test_goodput_beyond_capacity(stage: Stage) -> None:
    """Four times as many clients ask as there are places for; the refused wait for 50 ms and ask again."""
    service = await stage.service(**_SMALL)
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.1)
    once = await _goodput(service, 10)
    assert await _goodput(service, 40) / once >= 0.5


async def _goodput(service: Service, clients: int, seconds: float = 3) -> float:
    good, end = 0, time.monotonic() + seconds

    async def press(number: int) -> None:
        nonlocal good
        while time.monotonic() < end:
            reply = await service.ask("/time/chat?query=hi", source=f"127.0.0.{number % 4 + 1}")
            assert reply.status in (200, 429, 503), f"answered {reply.status}"
            good += reply.status == 200
            await asyncio.sleep(0 if reply.status == 200 else 0.05)

    await asyncio.gather(*(press(number) for number in range(clients)))
    return good / seconds


async def test_a_thousand_questions_at_once(stage: Stage) -> None:
    """1,000 questions of two addresses at once, each with a number that its answer has to quote."""
    service = await stage.service()
    stage.upstream.behave = speaking(lambda body: body["messages"][-1]["content"])

    async def right(number: int) -> bool:
        path, source = f"/time/chat?query=number-{number}", f"127.0.0.{1 + number % 2}"
        return (await service.ask(path, source=source, within=240)).text == f"number-{number}"

    assert sum(await asyncio.gather(*(right(number) for number in range(1000)))) >= 1000
