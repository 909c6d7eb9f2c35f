"""Several workers are one service."""

import asyncio
from pathlib import Path

from tests.command_line import run
from tests.serving import client_of
from tests.sessions.replicas import needs_redis
from tests.waiting import until
from tests.workers.several import (
    ANSWER,
    MANY,
    Service,
    asked,
)

pytestmark = needs_redis


async def test_whichever_worker_is_asked_tells_the_figures_of_all(service: Service) -> None:
    name = "toolchat_questions_total"
    before = sum((await service.by_worker(name)).values())
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY

    async def are_counted() -> bool:
        return sum((await service.by_worker(name)).values()) == before + MANY

    await until(are_counted)
    told = [await service.by_worker(name) for _ in range(12)]
    assert told == [told[0]] * 12
    assert min(told[0].values()) > 0
    assert set(told[0]) == {"0", "1", "2"}


async def test_spans_that_are_lost_are_counted_in_every_worker(service: Service) -> None:
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY

    async def are_counted() -> bool:
        lost = await service.by_worker("toolchat_spans_lost_total")
        return len(lost) == 3 and min(lost.values()) > 0

    await until(are_counted)


async def test_a_port_on_which_several_listen_is_taken_for_other_services(service: Service) -> None:
    port = service.url.rpartition(":")[2]
    arguments, variables = ("--workers", "2"), {"SERVER_PORT": port, "REDIS_URL": "redis://nobody"}
    done = await asyncio.to_thread(run, *arguments, cwd=Path(), **variables)
    assert done.returncode == 2
    assert done.stderr == f"toolchat: SERVER_PORT: cannot listen on 127.0.0.1:{port}: Address already in use\n"


async def test_workers_of_one_parent_draw_numbers_of_their_own(service: Service) -> None:
    async def identifier() -> str:
        async with client_of(service.url) as client:
            return (await client.get("/health/live")).headers["x-request-id"]

    assert len(set(await asyncio.gather(*(identifier() for _ in range(MANY))))) == MANY
