"""Files, memory, processor: what there is too little of, and what must not be used up."""

import asyncio
import itertools
import multiprocessing
import time

from tests.faults.fault import fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import Call, frozen, playing, saying, speaking
from tests.faults.waiting import until
from tests.faults.wire import Reply, opened, percentile, question, read_reply
from tests.players.openai_player import Answer

_STREAM = {"Accept": "text/event-stream"}


@fault(
    users="503, or an answer",
    figure="of 300 clients that were cut off without a word",
    at_most=0,
    fast=True,
)
async def open_files_used_up(stage: Stage) -> float:
    """300 clients at once where 256 files may be open, each with a question to a slow provider."""
    service = await stage.service("prlimit", "--nofile=256:256")
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.5)
    replies = await asyncio.gather(*(_or_nothing(service) for _ in range(300)))
    told = sum(each.status == 503 for each in replies)
    stage.note = f"{told} received 503"
    held(all(each.status in (0, 200, 503) for each in replies), "one was answered otherwise")
    held("provider could not" not in " ".join(each.text for each in replies), "the provider was blamed")
    return sum(not each.status for each in replies)


async def _or_nothing(service: Service) -> Reply:
    try:
        return await service.ask("/time/chat?query=hi")
    except OSError:
        return Reply(0, {}, b"", 0, whole=False)


@fault(users="all is well again", figure="open files more than before", at_most=8)
async def open_files_given_back(stage: Stage) -> float:
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
    held((await service.ask("/time/chat?query=hi")).status == 200, "it does not answer")
    return service.files() - before


@fault(users="nothing", figure="lines of the log about it", at_least=1, at_most=3)
async def used_up_files_are_told_once(stage: Stage) -> float:
    """300 clients are refused for want of files within a second."""
    service = await stage.own("prlimit", "--nofile=128:128")
    stage.upstream.behave = speaking(lambda _: "Hello.", first=0.5)
    begin = service.log.stat().st_size
    await asyncio.gather(*(_or_nothing(service) for _ in range(300)))
    lines = service.written(begin).splitlines()
    return sum('"toolchat.request"' not in line for line in lines)


@fault(users="every stream is whole", figure="of 1,000 streams", at_least=1000, limit=90)
async def a_thousand_streams(stage: Stage) -> float:
    """1,000 streams of two addresses at once, each of 5 s and 10 pieces."""
    service = await stage.service()
    replies, first = await _streamed(stage, service, 1000)
    stage.note = f"first piece after {percentile(first, 0.5):.1f} s in the median, {percentile(first, 0.99):.1f} s p99"
    return sum(each.last == "done" for each in replies)


@fault(users="nothing", figure="MiB more after the third 500 streams than after the first", at_most=8, limit=90)
async def memory_of_streams(stage: Stage) -> float:
    """500 streams at once, three times."""
    service = await stage.service()
    after = []
    for _ in range(3):
        await _streamed(stage, service, 500, seconds=1)
        await asyncio.sleep(0.5)
        after.append(service.mib())
    return after[-1] - after[0]


async def _streamed(stage: Stage, service: Service, count: int, seconds: float = 5) -> tuple[list[Reply], list[float]]:
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=seconds / 10)
    first: list[float] = []

    async def one(number: int) -> Reply:
        began = time.monotonic()
        async with opened(service.port, f"127.0.0.{1 + number % 2}") as (reader, writer):
            writer.write(question("/time/chat?query=hi", headers=_STREAM))
            head = await reader.readuntil(b"\r\n\r\n")
            piece = await reader.readuntil(b"event: delta")
            first.append(time.monotonic() - began)
            async with asyncio.timeout(60):
                rest = await reader.read(-1)
        return Reply(int(head[9:12]), {}, _unchunked(piece + rest), 0, whole=True)

    return list(await asyncio.gather(*(one(number) for number in range(count)))), first


def _unchunked(content: bytes) -> bytes:
    lines = content.split(b"\r\n")
    return b"".join(line for line in lines if not line or not all(byte in b"0123456789abcdef" for byte in line))


@fault(users="nothing", figure="MiB more after 3,000 further questions", at_most=8, limit=90)
async def memory_of_questions(stage: Stage) -> float:
    """1,000 questions to be warm, then 3,000 more, in sessions that come and go."""
    service = await stage.service(STATE_URL="memory://?max_mb=1")
    await _asked(service, 1000)
    before = service.mib()
    await _asked(service, 3000)
    return service.mib() - before


@fault(users="nothing", figure="open files more after 2,000 questions", at_most=10)
async def files_of_questions(stage: Stage) -> float:
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
    return service.files() - before


async def _asked(service: Service, count: int) -> None:
    async def some(number: int) -> None:
        for at in range(count // 20):
            path = "/chat?userInput=hi" if at % 2 else "/time/chat?query=hi"
            await service.ask(path, source=f"127.0.0.{1 + number % 3}")

    await asyncio.gather(*(some(number) for number in range(20)))


@fault(users="nothing", figure="KiB for each of 1,000 sessions", at_most=24)
async def memory_of_sessions(stage: Stage) -> float:
    """1,000 sessions of one turn each, kept in memory."""
    service = await stage.own()
    await _asked(service, 400)
    before = service.mib()
    await asyncio.gather(*(_sessions(stage, service, 50) for _ in range(20)))
    return max(0, service.mib() - before) * 1024 / 1000


async def _sessions(stage: Stage, service: Service, count: int) -> None:
    for _ in range(count):
        await service.ask("/chat?userInput=hi", session=stage.name())


@fault(users="old conversations give way", figure="MiB that the service grows by", at_most=160, limit=120)
async def long_conversations_without_end(stage: Stage) -> float:
    """1,500 sessions with an answer of 100,000 characters each, 150 MB; memory keeps 64 MiB."""
    service = await stage.own()
    await _asked(service, 200)
    before = service.mib()
    stage.upstream.behave = speaking(lambda _: "x" * 100_000)
    await asyncio.gather(*(_sessions(stage, service, 75) for _ in range(20)))
    return service.mib() - before


def _burn() -> None:
    while True:
        pass


@fault(users="answered, later", figure="ms, the 95th percentile of 50 probes", at_most=3000)
async def the_processor_is_taken(stage: Stage) -> float:
    """Four other processes take all of the processor."""
    service = await stage.service()
    burning = [multiprocessing.get_context("fork").Process(target=_burn, daemon=True) for _ in range(4)]
    for each in burning:
        each.start()
    try:
        took = [(await service.ask("/health/live")).seconds * 1000 for _ in range(50)]
        held((await service.ask("/time/chat?query=hi")).status == 200, "a question was not answered")
    finally:
        for each in burning:
            each.kill()
            each.join()
    return percentile(took, 0.95)


@fault(users="nothing", figure="% of a core, 1 s after 200 broken streams", at_most=15)
async def at_rest_after_a_storm(stage: Stage) -> float:
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
    return (service.cpu_seconds() - before) / 2 * 100


@fault(users="nobody waits for another's long text", figure="ms, the longest of 30 probes", at_most=1500)
async def long_texts_do_not_block(stage: Stage) -> float:
    """20 questions of 4,000 characters in ten scripts, answered by the offline model, beside probes."""
    service = await stage.service(CHAT_PROVIDER="offline", OPENAI_BASE_URL="", OPENAI_API_KEY="")
    texts = ["time in " * 500, "9" * 4000, "明天" * 2000, "in in in " * 444, "(" * 4000, "a b " * 1000, "́" * 4000]
    asked = [
        asyncio.create_task(service.ask("/time/chat-tool-function", json_body={"query": text[:4000]}))
        for text in texts * 3
    ]
    took = [(await service.ask("/health/live")).seconds * 1000 for _ in range(30)]
    for each in asked:
        reply = await each
        held(reply.status in (200, 422), f"answered {reply.outcome}")
    return max(took)


@fault(users="409 or the answer, never a wait without end", figure="s until the next turn was answered", at_most=3)
async def a_session_whose_client_left(stage: Stage) -> float:
    """A client leaves in mid-turn of its session and asks again at once."""
    service = await stage.service()
    session = stage.name()
    stage.upstream.behave = frozen
    async with opened(service.port) as (_, writer):
        writer.write(question(f"/chat?userInput=hi&sessionId={session}"))
        await until(lambda: stage.upstream.open == 1)
    stage.upstream.behave = speaking(lambda _: "Hello.")
    began = time.monotonic()

    async def answered() -> bool:
        return (await service.ask("/chat?userInput=again", session=session)).status == 200

    await until(answered)
    return time.monotonic() - began


@fault(users="the connection is closed after a while", figure="open files more than before", at_most=5)
async def idle_connections(stage: Stage) -> float:
    """300 clients keep their connection after an answer, and never ask again."""
    service = await stage.service(SERVER_IDLE_TIMEOUT="2")
    await service.ask("/health/live")
    before = service.files()
    kept = []
    for _ in range(300):
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(question("/health/live", keep=True))
        await read_reply(reader)
        kept.append(writer)
    began = time.monotonic()
    await until(lambda: service.files() <= before + 5)
    stage.note = f"after {time.monotonic() - began:.0f} s"
    for writer in kept:
        writer.close()
    return service.files() - before
