"""Clients that leave, dawdle, or send what no client library would."""

import asyncio
import time

from lab.fault import fault
from lab.stage import Stage
from lab.upstream import frozen, speaking
from lab.waiting import until
from lab.wire import opened, question, reset

_STREAM = {"Accept": "text/event-stream"}
_SHORT = {"SERVER_READ_TIMEOUT": "1", "SERVER_WRITE_TIMEOUT": "1", "REQUEST_TIMEOUT": "10", "STREAM_KEEP_ALIVE": "1"}


async def _leavers(stage: Stage, count: int) -> float:
    """The longest from a client's reset to the provider's noticing, in seconds."""
    service = await stage.service()
    stage.upstream.behave = speaking(lambda _: "word " * 2000, pieces=2000, pause=0.02)
    delays: list[float] = []

    async def leave(after: float) -> None:
        async with opened(service.port) as (reader, writer):
            writer.write(question("/time/chat?query=tell", headers=_STREAM))
            await reader.readuntil(b"event: delta")
            await asyncio.sleep(after)
            reset(writer)

    draw = stage.random()
    await asyncio.gather(*(leave(draw.random()) for _ in range(count)))
    began = time.monotonic()
    await until(lambda: stage.upstream.aborts == count)
    delays.append(time.monotonic() - began)
    return max(delays)


@fault(users="nobody waits for them", figure="s until the provider was left by the last", at_most=2, fast=True)
async def leavers_mid_stream(stage: Stage) -> float:
    """200 clients reset the connection at random points of a stream."""
    return await _leavers(stage, 200)


@fault(users="nobody waits for them", figure="s until the provider was left by the last", at_most=2, fast=True)
async def leavers_before_the_first_token(stage: Stage) -> float:
    """100 clients of a stream close while the provider has not said a word."""
    service = await stage.service()
    stage.upstream.behave = frozen

    async def leave() -> None:
        async with opened(service.port) as (_, writer):
            writer.write(question("/time/chat?query=tell", headers=_STREAM))
            await until(lambda: stage.upstream.open == 100)

    await asyncio.gather(*(leave() for _ in range(100)))
    began = time.monotonic()
    await until(lambda: stage.upstream.aborts == 100)
    return time.monotonic() - began
