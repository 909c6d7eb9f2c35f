"""Several processes on one port: they share the work, and none of them is missed."""

import asyncio
import json
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from tests.clients.paced_model import PacedModel, text
from tests.clients.raw_client import connected
from tests.clients.test_draining import not_ready_any_more
from tests.command_line import LOG, Process, run, started, with_tools
from tests.observation.reading import Figures, figures_of
from tests.players.redis_server import RedisServer
from tests.serving import client_of
from tests.sessions.replicas import needs_redis
from tests.waiting import PATIENCE, until

pytestmark = needs_redis

MANY = 40
"""Connections of which by all likelihood every worker has some."""
REPLACEMENTS = "toolchat_worker_replacements_total"


@dataclass(frozen=True)
class Service:
    """The parent of several workers."""

    process: Process
    url: str

    @property
    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    async def figures(self) -> Figures:
        """As one of them tells, whichever is asked: each time by a new connection."""
        async with client_of(self.url) as client:
            return await figures_of(client)

    async def by_worker(self, name: str) -> dict[str, float]:
        """The samples of a name, added up for each worker."""
        found: defaultdict[str, float] = defaultdict(float)
        for (sample, labels), value in (await self.figures()).items():
            if sample == name:
                found[dict(labels)["worker"]] += value
        return dict(found)

    async def replaced(self) -> float:
        return sum((await self.by_worker(REPLACEMENTS)).values())


@contextmanager
def workers(count: int, folder: Path, **variables: str) -> Generator[Service, None, None]:
    with started("--workers", str(count), cwd=folder, **variables) as (process, url):
        yield Service(process, url)


@pytest.fixture(scope="module")
async def redis() -> AsyncGenerator[RedisServer, None]:
    async with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
async def model() -> AsyncGenerator[PacedModel, None]:
    async with PacedModel(text(["begun", "finished"])) as model:
        yield model


@pytest.fixture(scope="module")
def service(
    redis: RedisServer, model: PacedModel, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Service, None, None]:
    """Three workers, which every test leaves behind at work."""
    with workers(3, tmp_path_factory.mktemp("workers"), **set_up(redis, model)) as service:
        yield service


def set_up(redis: RedisServer, model: PacedModel) -> dict[str, str]:
    return {"REDIS_URL": redis.url, "OPENAI_BASE_URL": model.base_url, "LOG_LEVEL": "ERROR"}


async def asked(url: str) -> str:
    """Ask on a connection of its own; the answer."""
    async with client_of(url) as client:
        return (await client.get("/chat", params={"userInput": "hello"})).text


@asynccontextmanager
async def streams_at_all(service: Service, model: PacedModel) -> AsyncGenerator[list[asyncio.Task[bytes]], None]:
    """Streams that have begun, some at each worker; gives who reads them to their end, once the gate is open."""
    model.gate.clear()
    async with connected(service.url, MANY) as clients:
        for each in clients:
            await each.ask("/time/chat")
            await each.read_until(b"event: delta")
        running = await service.by_worker("toolchat_questions_in_flight")
        assert sum(running.values()) == MANY
        assert min(running.values()) > 0
        yield [asyncio.create_task(each.read_until(b"event: done")) for each in clients]


async def test_whichever_worker_is_asked_tells_the_figures_of_all(service: Service) -> None:
    name = "toolchat_questions_total"
    before = sum((await service.by_worker(name)).values())
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == ["begunfinished"] * MANY

    async def are_counted() -> bool:
        return sum((await service.by_worker(name)).values()) == before + MANY

    await until(are_counted)
    told = [await service.by_worker(name) for _ in range(12)]
    assert told == [told[0]] * 12
    assert min(told[0].values()) > 0
    assert set(told[0]) == {"0", "1", "2"}


def test_a_port_on_which_several_listen_is_taken_for_other_services(service: Service) -> None:
    port = service.url.rpartition(":")[2]
    done = run("--workers", "2", cwd=Path(), SERVER_PORT=port, REDIS_URL="redis://nobody")
    assert done.returncode == 2
    assert done.stderr == f"toolchat: SERVER_PORT: cannot listen on 127.0.0.1:{port}: Address already in use\n"


async def test_workers_of_one_parent_draw_numbers_of_their_own(service: Service) -> None:
    async def identifier() -> str:
        async with client_of(service.url) as client:
            return (await client.get("/health/live")).headers["x-request-id"]

    assert len(set(await asyncio.gather(*(identifier() for _ in range(MANY))))) == MANY


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
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == ["begunfinished"] * MANY
    assert set(before[1:]) < set(service.workers)


async def test_a_worker_that_somebody_asks_to_end_is_replaced_as_well(service: Service) -> None:
    left, *others = service.workers
    left.terminate()
    await until(lambda: left not in service.workers)
    await until(partial(all_are_heard, service, 3))
    assert await asyncio.gather(*(asked(service.url) for _ in range(MANY))) == ["begunfinished"] * MANY
    assert set(others) < set(service.workers)


async def test_a_worker_that_ends_again_and_again_is_waited_for_longer_while_the_others_answer(
    redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, **set_up(redis, model)) as service:
        stays, *_ = service.workers
        for times in range(1, 4):
            await until(lambda: len(service.workers) == 2)
            next(each for each in service.workers if each != stays).kill()
            await until(partial(pauses_said, times))
            answers = await asyncio.gather(*(asked(service.url) for _ in range(10)))
            assert answers == ["begunfinished"] * 10
        assert stays in service.workers
    assert pauses() == [0, 0.5, 1]


def pauses() -> list[float]:
    """What the parent has said of how long it waits until it replaces a worker."""
    told = (json.loads(line) for line in LOG if "a worker ended and is replaced" in line)
    return [each["pause"] for each in told]


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


async def all_are_heard(service: Service, count: int) -> bool:
    try:
        return len(await service.by_worker(REPLACEMENTS)) == count
    except httpx.TransportError:  # asked was the one that ends
        return False


async def figures_of_others(service: Service) -> Figures:
    """What one tells that is not stuck: of many who ask, some do not ask that one."""
    asking = [asyncio.create_task(service.figures()) for _ in range(20)]
    done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    await asyncio.wait(asking)
    return next(iter(done)).result()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_at_the_end_the_streams_of_all_workers_are_finished(
    number: signal.Signals, code: int, redis: RedisServer, model: PacedModel, tmp_path: Path
) -> None:
    with workers(2, tmp_path, **set_up(redis, model)) as service:
        async with streams_at_all(service, model) as reading:
            for each in (service.process, *service.workers):  # as a terminal's Ctrl-C reaches them all
                each.send_signal(number)
            await not_ready_any_more(service.url)
            model.gate.set()
            await asyncio.gather(*reading)
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == code


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


def has_ended(process: psutil.Process) -> bool:
    """Whether or not somebody has taken note of it, which is not the parent any more."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


FAULTY = """
from contextlib import asynccontextmanager

from app.tools.module import ToolModule


@asynccontextmanager
async def nobody(container):
    raise ConnectionError
    yield


module = ToolModule(offered=nobody)
"""


def test_what_keeps_a_worker_from_starting_is_told_once_and_with_the_same_code(
    redis: RedisServer, tmp_path: Path
) -> None:
    variables = {"REDIS_URL": redis.url, "SERVER_PORT": "0", **with_tools(tmp_path, {"faulty": FAULTY})}
    alone, several = (run("serve", *more, cwd=tmp_path, **variables) for more in ([], ["--workers", "3"]))
    assert several.returncode == alone.returncode != 0
    told = [[json.loads(line)["message"] for line in each.stderr.splitlines()] for each in (alone, several)]
    assert told[0] == told[1]
    assert told[0][0] == "tools cannot be opened"


def test_a_number_of_workers_is_for_the_service_alone(tmp_path: Path) -> None:
    done = run("--workers", "3", "ask", "hello", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("toolchat: error: --workers is for serve alone\n")


def test_a_demonstration_is_one_process_whatever_is_set(tmp_path: Path) -> None:
    with started("demo", cwd=tmp_path, SERVER_WORKERS="3") as (process, _):
        assert psutil.Process(process.pid).children() == []
