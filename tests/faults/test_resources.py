"""Open files, memory and processor time run short, or must not be used up."""

import asyncio
import itertools

import pytest

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import Call, frozen, playing, saying, speaking
from tests.faults.wire import Reply
from tests.players.openai_player import Answer
from tests.waiting import until

_STREAM = {"Accept": "text/event-stream"}


async def test_open_files_used_up(stage: Stage) -> None:
    """300 clients at once where 256 files may be open, each with a question to a slow provider."""
    service = await stage.service("prlimit", "--nofile=256:256")
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.5)
    replies = await asyncio.gather(*(_or_nothing(service) for _ in range(300)))
    told = sum(each.status == 503 for each in replies)
    print(f"{told} received 503")
    assert all(each.status in (0, 200, 503) for each in replies), "one was answered otherwise"
    assert "provider could not" not in " ".join(each.text for each in replies), "the provider was blamed"
    assert sum(not each.status for each in replies) == 0


async def _or_nothing(service: Service) -> Reply:
    try:
        return await service.ask("/time/chat?query=hi")
    except OSError:
        return Reply(0, {}, b"", 0, whole=False)


@pytest.mark.nightly
async def test_open_files_given_back(stage: Stage) -> None:
    """400 silent connections where 256 files may be open; then they leave."""
    service = await stage.service("prlimit", "--nofile=256:256")
    await service.ask("/health/live")
    before = service.files()
    writers = []
    for _ in range(400):
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writers.append(writer)
    for writer in writers:
        writer.transport.abort()
    await until(lambda: service.files() <= before + 8)
    assert (await service.ask("/time/chat?query=hi")).status == 200, "it does not answer"
    assert service.files() - before <= 8


@pytest.mark.nightly
async def test_used_up_files_are_told_once(stage: Stage) -> None:
    """300 clients are refused for want of files within a second."""
    service = await stage.own("prlimit", "--nofile=128:128")
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.5)
    begin = service.log.stat().st_size
    await asyncio.gather(*(_or_nothing(service) for _ in range(300)))
    lines = service.written(begin).splitlines()
    assert 1 <= sum('"toolchat.request"' not in line for line in lines) <= 3


@pytest.mark.nightly
async def test_a_thousand_streams(stage: Stage) -> None:
    """1,000 streams of two addresses at once, each of 5 s and 10 pieces."""
    service = await stage.service()
    assert await _streamed(stage, service, 1000, seconds=5) == {"done"}


@pytest.mark.nightly
async def test_memory_of_streams(stage: Stage) -> None:
    """500 streams at once, three times."""
    service = await stage.service()
    after = []
    for _ in range(3):
        await _streamed(stage, service, 500, seconds=1)
        await asyncio.sleep(0.5)
        after.append(service.mib())
    assert after[-1] - after[0] <= 8


async def _streamed(stage: Stage, service: Service, count: int, seconds: float) -> set[str]:
    """The last events of so many streams of ten pieces."""
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=seconds / 10)
    asked = (
        service.ask("/time/chat?query=hi", headers=_STREAM, source=f"127.0.0.{1 + number % 2}", within=60)
        for number in range(count)
    )
    return {reply.last for reply in await asyncio.gather(*asked)}


@pytest.mark.nightly
async def test_memory_of_questions(stage: Stage) -> None:
    """1,000 questions to be warm, then 3,000 more, in sessions that come and go."""
    service = await stage.service(STATE_URL="memory://?max_mb=1")
    await _asked(service, 1000)
    before = service.mib()
    await _asked(service, 3000)
    assert service.mib() - before <= 8


@pytest.mark.nightly
async def test_files_of_questions(stage: Stage) -> None:
    """2,000 questions; the provider cuts every third of its answers off."""
    service = await stage.service(MODEL_MAX_ATTEMPTS="1")
    turns, cut, whole = itertools.count(), playing(Answer([b"x"], ending="cut")), saying()

    async def sometimes(call: Call) -> None:
        await (whole if next(turns) % 3 else cut)(call)

    stage.upstream.behave = sometimes
    await _asked(service, 100)
    before = service.files()
    await _asked(service, 2000)
    await until(lambda: service.files() <= before + 10)
    assert service.files() - before <= 10


async def _asked(service: Service, count: int) -> None:
    async def some(number: int) -> None:
        for at in range(count // 20):
            path = "/chat?userInput=hi" if at % 2 else "/time/chat?query=hi"
            await service.ask(path, source=f"127.0.0.{1 + number % 3}")

    await asyncio.gather(*(some(number) for number in range(20)))


async def _sessions(stage: Stage, service: Service, count: int) -> None:
    for _ in range(count):
        await service.ask("/chat?userInput=hi", session=stage.name())


@pytest.mark.nightly
async def test_long_conversations_without_end(stage: Stage) -> None:
    """1,500 sessions with an answer of 100,000 characters each, 150 MB; memory keeps 64 MiB."""
    service = await stage.own()
    await _asked(service, 200)
    before = service.mib()
    stage.upstream.behave = speaking(lambda _: "x" * 100_000)
    await asyncio.gather(*(_sessions(stage, service, 75) for _ in range(20)))
    assert service.mib() - before <= 160


@pytest.mark.nightly
async def test_at_rest_after_a_storm(stage: Stage) -> None:
    """200 streams whose provider falls silent are left; does anything still spin?"""
    service = await stage.service()
    stage.upstream.behave = frozen
    asked = [asyncio.create_task(service.ask("/time/chat?query=hi", headers=_STREAM)) for _ in range(200)]
    await until(lambda: stage.upstream.open == 200)
    for each in asked:
        each.cancel()
    await until(lambda: stage.upstream.aborts == 200)
    await asyncio.sleep(1)
    before = service.cpu_seconds()
    await asyncio.sleep(2)
    assert (service.cpu_seconds() - before) / 2 * 100 <= 15
