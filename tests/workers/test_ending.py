"""All workers end together, and finish what they answer."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.command_line import LOG
from tests.players.redis_server import RedisServer
from tests.server.paced_model import PacedModel
from tests.server.test_draining import not_ready_any_more
from tests.sessions.replicas import needs_redis
from tests.waiting import PATIENCE, until
from tests.workers.several import (
    has_ended,
    set_up,
    streams_at_all,
    workers,
)

pytestmark = needs_redis


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_at_the_end_the_streams_of_all_workers_are_finished(
    number: signal.Signals, code: int, redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, **set_up(redis, model)) as service:
        async with streams_at_all(service, model) as reading:
            service.process.send_signal(number)
            await not_ready_any_more(service.url)
            model.gate.set()
            await asyncio.gather(*reading)
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == code
    assert [line for line in LOG if '"ERROR"' in line] == []


async def test_workers_whose_parent_is_killed_finish_what_they_answer_and_end(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, **set_up(redis, model)) as service:
        left = service.workers
        async with streams_at_all(service, model) as reading:
            service.process.kill()
            await not_ready_any_more(service.url)
            model.gate.set()
            await asyncio.gather(*reading)
        await until(lambda: all(map(has_ended, left)))


async def test_a_second_interrupt_ends_what_the_workers_answer(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, **set_up(redis, model)) as service:
        # So a terminal's Ctrl-C, which is one interrupt, is not two for them.
        await until(lambda: all(os.getpgid(each.pid) == each.pid for each in service.workers))
        async with streams_at_all(service, model) as reading:
            service.process.send_signal(signal.SIGINT)
            await not_ready_any_more(service.url)
            service.process.send_signal(signal.SIGINT)
            ended = await asyncio.gather(*reading, return_exceptions=True)
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == 130
    assert not [each for each in ended if isinstance(each, bytes)]
