"""Several workers are one service."""

import asyncio
from pathlib import Path

from tests.command_line import run
from tests.players.otlp_receiver import OtlpReceiver
from tests.server.raw_client import connected
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


async def test_connections_that_are_opened_together_are_shared_by_all_workers(service: Service) -> None:
    async with connected(service.url, 64) as clients:
        for each in clients:
            await each.ask("/health/live", "application/json")
        await asyncio.gather(*(each.read_until(b"ok") for each in clients))
        shares = service.connections()
    assert sum(shares) == 64
    assert min(shares) > 64 / 3 / 4


async def test_whichever_worker_is_asked_reports_the_figures_of_all(service: Service) -> None:
    name = "toolchat_questions_total"
    before = await service.total(name)
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY

    async def are_counted() -> bool:
        return await service.total(name) == before + MANY

    await until(are_counted)
    assert {await service.total(name) for _ in range(12)} == {before + MANY}


async def test_every_worker_sends_its_traces(service: Service, collector: OtlpReceiver) -> None:
    trace = "1" * 32

    async def ask() -> None:
        async with client_of(service.url) as client:
            await client.get("/time/chat", headers={"traceparent": f"00-{trace}-{'2' * 16}-01"})

    await asyncio.gather(*(ask() for _ in range(MANY)))

    def arrived() -> int:
        return sum(each.trace == trace and each.kind == "server" for each in collector.spans)

    await until(lambda: arrived() == MANY)


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
