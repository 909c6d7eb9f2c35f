"""A worker that ends, however it does, is replaced, and the others go on."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from tests.command_line import LOG, with_tools
from tests.players.redis_server import RedisServer
from tests.service.server.paced_model import PacedModel
from tests.service.server.workers.several import (
    ANSWER,
    MANY,
    Service,
    all_answer,
    asked,
    set_up,
    streams_at_all,
    workers,
)
from tests.waiting import until

REPLACEMENTS = "toolchat_worker_replacements_total"
LIMIT = "5"
"""Seconds without a heartbeat; a busy machine delays the healthy worker for three."""

FAULTY = """
import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path

from toolchat import ToolModule


@asynccontextmanager
async def offered(container):
    for fault in Path("faults").glob("*"):
        fault.unlink()
        if fault.name == "start":
            await asyncio.Event().wait()
        if fault.name == "loop":
            asyncio.get_running_loop().call_later(0, time.sleep, 3600)
        if fault.name == "fail":
            raise ConnectionError
    yield ()


module = ToolModule(tool_source=offered)
"""


async def test_a_killed_worker_loses_only_its_own_questions_and_is_replaced(
    service: Service, model: PacedModel
) -> None:
    before, replaced = service.workers, await service.total(REPLACEMENTS)
    async with streams_at_all(service, model) as reading:
        before[0].kill()

        async def is_replaced() -> bool:
            return await service.total(REPLACEMENTS) == replaced + 1

        await until(is_replaced)
        model.gate.set()
        ended = await asyncio.gather(*reading, return_exceptions=True)
    lost = [each for each in ended if not isinstance(each, bytes)]
    assert 0 < len(lost) < MANY
    assert all(isinstance(each, EOFError | ConnectionResetError) for each in lost)
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == [ANSWER] * MANY
    await until(partial(all_answer, service, 3))
    assert set(before[1:]) < set(service.workers)


async def test_no_new_connection_fails_while_a_worker_that_was_asked_to_end_is_replaced(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    async with workers(3, tmp_path, **set_up(redis, model)) as service:
        *ended, other = service.workers
        for left in ended:
            left.terminate()
            while left in service.workers:
                answers = await asyncio.gather(*(asked_again(service.url) for _ in range(MANY)))
                assert answers == [ANSWER] * MANY
        await until(partial(all_answer, service, 3))
        assert other in service.workers


async def asked_again(url: str) -> str:
    """Ask until a worker answers that is not about to end."""
    while '"draining"' in (answer := await asked(url)):
        pass
    return answer


@pytest.mark.parametrize(
    ("fault", "told"), [("start", "WORKER TIMEOUT"), ("loop", "WORKER TIMEOUT"), ("fail", "exited with code 1.")]
)
async def test_a_worker_that_hangs_or_cannot_start_is_replaced(
    fault: str, told: str, redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    tools = with_tools(tmp_path, {"faulty": FAULTY})
    (tmp_path / "faults").mkdir()
    async with workers(2, tmp_path, SERVER_WORKER_TIMEOUT=LIMIT, **tools, **set_up(redis, model)) as service:
        (tmp_path / "faults" / fault).touch()
        stays, killed = service.workers
        killed.kill()
        # On a busy machine one more may be replaced.
        await until(lambda: any(told in line for line in LOG))
        await until(partial(all_answer, service, 2))
        assert stays in service.workers
    assert sum("toolchat on http" in line for line in LOG) == 1


async def test_a_worker_that_is_stopped_is_replaced(redis: RedisServer, model: PacedModel, tmp_path: Path) -> None:
    async with workers(2, tmp_path, SERVER_WORKER_TIMEOUT=LIMIT, **set_up(redis, model)) as service:
        stuck, stays = service.workers
        stuck.suspend()
        await until(lambda: stuck not in service.workers)
        await until(partial(all_answer, service, 2))
        assert stays in service.workers
