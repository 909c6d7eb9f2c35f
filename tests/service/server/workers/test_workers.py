"""Several workers are one service, from their start to their end."""

import asyncio
import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.command_line import LOG, run, started, with_tools
from tests.players.otlp_receiver import OtlpReceiver
from tests.players.redis_server import RedisServer
from tests.ports import silent_port
from tests.service.server.paced_model import PacedModel
from tests.service.server.test_draining import not_ready_any_more
from tests.service.server.workers.several import (
    ANSWER,
    MANY,
    Service,
    asked,
    has_ended,
    set_up,
    staying,
    streams_at_all,
    workers,
)
from tests.serving import client_of
from tests.waiting import PATIENCE, until

FAULTY = """
from contextlib import asynccontextmanager

from toolchat import ToolModule


@asynccontextmanager
async def nobody(container):
    raise ConnectionError
    yield


module = ToolModule(tool_source=nobody)
"""


def test_a_failed_start_ends_the_service_with_the_cause_and_the_exit_code_of_one_process(tmp_path: Path) -> None:
    with silent_port() as redis:
        variables = {"REDIS_URL": f"redis://127.0.0.1:{redis}", **with_tools(tmp_path, {"faulty": FAULTY})}
        alone, several = (
            run("serve", *more, cwd=tmp_path, SERVER_PORT="0", LOG_LEVEL="ERROR", **variables)
            for more in ([], ["--workers", "3"])
        )
    assert several.returncode == alone.returncode != 0
    lines = [[json.loads(line) for line in each.stderr.splitlines()] for each in (alone, several)]
    # gunicorn adds that a worker failed to boot.
    told = [[line["message"] for line in each if line["logger"] != "gunicorn.error"] for each in lines]
    assert "tools/faulty/__init__.py: tool_source: ConnectionError (line 9)" in told[0]
    assert set(told[0]) <= set(told[1])


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--workers", "3", "demo"], "Got unexpected extra argument (demo)"),
        (["demo", "--workers", "3"], "No such option '--workers'"),
        (["ask", "--port", "3", "?"], "No such option '--port'"),
    ],
)
def test_an_option_of_the_server_is_refused_by_other_commands(typed: list[str], told: str, tmp_path: Path) -> None:
    done = run(*typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"\nError: {told}" in done.stderr


def test_a_demonstration_is_one_process_whatever_is_set(tmp_path: Path) -> None:
    with started("demo", cwd=tmp_path, SERVER_WORKERS="3") as (process, _):
        assert psutil.Process(process.pid).children() == []


async def test_connections_that_come_one_after_another_are_distributed_over_all_workers(service: Service) -> None:
    async with staying(service.url, 64) as clients:
        shares = service.connections()
        assert len(clients) == sum(shares) == 64
    assert min(shares) > 0


async def test_each_worker_reports_the_metrics_of_all_workers(service: Service) -> None:
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


async def test_a_port_of_several_workers_cannot_be_used_by_another_service(service: Service) -> None:
    port = service.url.rpartition(":")[2]
    arguments, variables = ("--workers", "2"), {"SERVER_PORT": port, "REDIS_URL": "redis://nobody"}
    done = await asyncio.to_thread(run, *arguments, cwd=Path(), **variables)
    assert done.returncode == 2
    assert done.stderr == f"toolchat: SERVER_PORT: cannot listen on 127.0.0.1:{port}: Address already in use\n"


async def test_workers_generate_different_request_ids(service: Service) -> None:
    async def identifier() -> str:
        async with client_of(service.url) as client:
            return (await client.get("/health/live")).headers["x-request-id"]

    assert len(set(await asyncio.gather(*(identifier() for _ in range(MANY))))) == MANY


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stopping_service_finishes_the_streams_of_all_workers(
    number: signal.Signals, redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    async with workers(2, tmp_path, **set_up(redis, model)) as service:
        async with streams_at_all(service, model) as reading:
            service.process.send_signal(number)
            await not_ready_any_more(service.url)
            model.gate.set()
            await asyncio.gather(*reading)
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
    assert [line for line in LOG if '"ERROR"' in line] == []


async def test_workers_whose_parent_is_killed_finish_what_they_answer_and_end(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    async with workers(2, tmp_path, **set_up(redis, model)) as service:
        left = service.workers
        async with streams_at_all(service, model) as reading:
            service.process.kill()
            await not_ready_any_more(service.url)
            model.gate.set()
            await asyncio.gather(*reading)
        await until(lambda: all(map(has_ended, left)))


async def test_an_interrupt_while_the_service_stops_cuts_the_streams_of_all_workers(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    async with workers(2, tmp_path, **set_up(redis, model)) as service:
        async with streams_at_all(service, model) as reading:
            service.process.terminate()
            await not_ready_any_more(service.url)
            service.process.send_signal(signal.SIGINT)
            ended = await asyncio.gather(*reading, return_exceptions=True)
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
    assert not [each for each in ended if isinstance(each, bytes)]
