"""A worker that ends, however it does, is replaced, and the others go on."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.command_line import LOG
from tests.observability.reading import Figures
from tests.players.redis_server import RedisServer
from tests.server.paced_model import PacedModel
from tests.sessions.replicas import needs_redis
from tests.waiting import until
from tests.workers.several import (
    ANSWER,
    MANY,
    Service,
    all_are_heard,
    all_have_answered,
    asked,
    has_ended,
    set_up,
    stopped,
    streams_at_all,
    workers,
)

pytestmark = needs_redis


async def test_a_worker_that_is_killed_takes_only_its_own_questions_with_it_and_is_replaced(
    service: Service, model: PacedModel
) -> None:
    before, replaced = service.workers, await service.replaced()
    async with streams_at_all(service, model) as reading:
        before[0].kill()

        async def is_replaced() -> bool:
            return await service.replaced() == replaced + 1

        await until(is_replaced)
        model.gate.set()
        ended = await asyncio.gather(*reading, return_exceptions=True)
    lost = [each for each in ended if not isinstance(each, bytes)]
    assert 0 < len(lost) < MANY
    assert all(isinstance(each, EOFError | ConnectionResetError) for each in lost)
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY
    assert set(before[1:]) < set(service.workers)


async def test_a_worker_that_somebody_asks_to_end_leaves_connections_to_the_others_and_is_replaced(
    service: Service,
) -> None:
    left, *others = service.workers
    with stopped(service):
        left.terminate()
        await until(lambda: has_ended(left))
        assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY
    await until(lambda: left not in service.workers)
    await until(partial(all_are_heard, service, 3))
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY
    await until(partial(all_have_answered, service, 3))
    assert set(others) < set(service.workers)


async def test_a_worker_that_ends_again_and_again_is_waited_for_longer_while_the_others_answer(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, **set_up(redis, model)) as service:
        stays, *_ = service.workers
        killed = []
        for times in range(1, 4):
            await until(lambda: len(service.workers) == 2)
            killed.append(next(each for each in service.workers if each != stays))
            killed[-1].kill()
            await until(partial(pauses_said, times))
            if times > 1:
                with stopped(service):  # which makes the pause as long as this takes
                    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY
        assert stays in service.workers
    assert pauses() == [0, 0.5, 1]
    assert [each["pid"] for each in replacements()] == [each.pid for each in killed]


def replacements() -> list[dict[str, Any]]:
    """What the parent has said of workers that it replaces."""
    return [json.loads(line) for line in LOG if "a worker ended and is replaced" in line]


def pauses() -> list[float]:
    """How long it waited until it did."""
    return [each["pause"] for each in replacements()]


def pauses_said(times: int) -> bool:
    return len(pauses()) == times


async def test_a_worker_that_shows_no_life_is_left_out_of_the_figures_and_replaced(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, SERVER_WORKER_TIMEOUT="3", **set_up(redis, model)) as service:
        stuck = service.workers[0]
        stuck.suspend()
        told = await figures_of_others(service)
        assert {dict(labels)["worker"] for _, labels in told} == {"1"}
        await until(lambda: stuck not in service.workers)
        await until(partial(all_are_heard, service, 2))
        assert (await service.by_worker("toolchat_workers_unheard_total"))["1"] > 0
    assert sum("toolchat on http" in line for line in LOG) == 1


async def figures_of_others(service: Service) -> Figures:
    """What one tells that is not stuck: of many who ask, some do not ask that one."""
    asking = [asyncio.create_task(service.figures()) for _ in range(20)]
    done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    await asyncio.wait(asking)
    return next(iter(done)).result()
