"""Clients that leave or dawdle."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.faults.fault import fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import frozen, playing, speaking
from tests.faults.waiting import until
from tests.faults.wire import opened, percentile, question, read_reply, reset
from tests.players.openai_player import delta, finish, sse

_STREAM = {"Accept": "text/event-stream"}
_SHORT = {"SERVER_CLIENT_TIMEOUT": "1", "REQUEST_TIMEOUT": "6"}
_PATIENT = {"REQUEST_TIMEOUT": "15"}
_POST = b"POST /time/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@fault(
    users="no task is left behind",
    figure="s until the last request to the provider was cancelled",
    at_most=3,
    fast=True,
)
async def leavers_mid_stream(stage: Stage) -> float:
    """200 clients reset the connection at random points of a stream."""
    service = await stage.service()
    stage.upstream.behave = speaking(lambda _: "word " * 2000, pieces=2000, pause=0.02)
    draw = stage.random()

    async def leave(after: float) -> None:
        async with opened(service.port) as (reader, writer):
            writer.write(question("/time/chat?query=tell", headers=_STREAM))
            await reader.readuntil(b"event: delta")
            await asyncio.sleep(after)
            reset(writer)

    await asyncio.gather(*(leave(draw.random()) for _ in range(200)))
    return await _until_left(stage, 200)


@fault(
    users="no task is left behind",
    figure="s until the last request to the provider was cancelled",
    at_most=3,
    fast=True,
)
async def leavers_before_the_first_token(stage: Stage) -> float:
    """100 clients of a stream leave before the provider has sent anything."""
    return await _leaving_silence(stage, _STREAM)


@fault(
    users="no task is left behind",
    figure="s until the last request to the provider was cancelled",
    at_most=3,
    fast=True,
)
async def leavers_of_whole_answers(stage: Stage) -> float:
    """100 clients that wait for a whole answer leave while the provider is silent."""
    return await _leaving_silence(stage, {})


async def _leaving_silence(stage: Stage, headers: dict[str, str]) -> float:
    service = await stage.service()
    stage.upstream.behave = frozen
    leave = asyncio.Event()

    async def ask() -> None:
        async with opened(service.port) as (_, writer):
            writer.write(question("/time/chat?query=tell", headers=headers))
            await leave.wait()

    clients = [asyncio.create_task(ask()) for _ in range(100)]
    await until(lambda: stage.upstream.open == 100)
    leave.set()
    await asyncio.gather(*clients)
    return await _until_left(stage, 100)


async def _until_left(stage: Stage, count: int) -> float:
    began = time.monotonic()
    await until(lambda: stage.upstream.aborts == count)
    return time.monotonic() - began


@fault(
    users="it counts as disconnected, as documented",
    figure="s until the request to the provider was cancelled",
    at_most=2,
)
async def a_client_that_shuts_its_sending_side(stage: Stage) -> float:
    """A client half-closes its connection right after its question, as `nc -N` does."""
    service = await stage.service()
    stage.upstream.behave = frozen
    async with opened(service.port) as (_, writer):
        writer.write(question("/time/chat?query=tell"))
        await until(lambda: stage.upstream.open == 1)
        writer.write_eof()
        return await _until_left(stage, 1)


@fault(users="nothing stays behind", figure="open files more than before", at_most=5)
async def connecting_and_leaving(stage: Stage) -> float:
    """2,000 clients connect, ask half a question and reset the connection."""
    service = await stage.service()
    await service.ask("/health/live")
    before = service.files()
    for _ in range(40):
        await asyncio.gather(*(_ask_and_reset(service) for _ in range(50)))
    await service.ask("/health/live")
    await until(lambda: service.files() <= before + 5)
    return service.files() - before


async def _ask_and_reset(service: Service) -> None:
    async with opened(service.port) as (_, writer):
        writer.write(question("/time/chat?query=tell")[:40])
        await writer.drain()
        reset(writer)


@fault(users="they are disconnected", figure="s until the last was, of 1 s that they had", at_most=6, fast=True)
async def half_sent_headers(stage: Stage) -> float:
    """300 clients send half of their headers and then a byte now and then (slow-loris)."""
    service = await stage.service(**_SHORT)
    return await _hung_up_on(service, 300, b"GET /time/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")


@fault(
    users="408, then they are disconnected", figure="s until the last was, of 1 s that they had", at_most=6, fast=True
)
async def slow_bodies(stage: Stage) -> float:
    """300 clients send a body one byte now and then."""
    service = await stage.service(**_SHORT)
    return await _hung_up_on(service, 300, _POST + b'Content-Length: 1000\r\n\r\n{"query": "')


@fault(users="they are disconnected", figure="s until the last was, of 1 s that they had", at_most=12)
async def silent_connections(stage: Stage) -> float:
    """300 clients connect and never send a byte."""
    service = await stage.service(**_SHORT)
    return await _hung_up_on(service, 300, b"", drip=b"")


@fault(users="others are answered as usual", figure="ms, the 95th percentile of 100 others", at_most=1000)
async def others_beside_slow_clients(stage: Stage) -> float:
    """500 clients drip headers and bodies while others ask."""
    # Whoever asks at once must not be taken for slow, either, where the machine itself stands still for a second.
    service = await stage.service(**_SHORT | {"SERVER_CLIENT_TIMEOUT": "5"})
    slow = asyncio.create_task(_hung_up_on(service, 500, _POST + b'Content-Length: 1000\r\n\r\n{"query": "'))
    took = []
    for _ in range(100):
        reply = await service.ask("/time/chat?query=hi")
        held(reply.status == 200, f"answered {reply.outcome}")
        took.append(reply.seconds * 1000)
    await slow
    return percentile(took, 0.95)


async def _hung_up_on(service: Service, count: int, begin: bytes, drip: bytes = b"x") -> float:
    """Seconds until the last of these clients was disconnected."""
    began = time.monotonic()

    async def dawdle() -> float:
        async with opened(service.port) as (reader, writer):
            writer.write(begin)
            read = asyncio.create_task(reader.read())
            try:
                while not (await asyncio.wait([read], timeout=0.3))[0] and not writer.transport.is_closing():
                    writer.write(drip)
                await read
            except ConnectionError:
                pass
            return time.monotonic() - began

    return max(await asyncio.gather(*(dawdle() for _ in range(count))))


# The server discards 16 MiB of a refused body, more than any that it accepts; the sockets' buffers hold some more.
@fault(users="413, then they are disconnected", figure="MiB of the body that were taken", at_most=32)
async def chunks_without_end(stage: Stage) -> float:
    """A client sends 200 MiB of chunks after it was refused."""
    service = await stage.service(**_SHORT)
    sent = 0
    async with opened(service.port) as (_, writer):
        writer.write(_POST + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            while sent < 200 * 2**20 and not writer.transport.is_closing():
                writer.write(b"10000\r\n" + b" " * 2**16 + b"\r\n")
                sent += 2**16
                async with asyncio.timeout(5):
                    await writer.drain()
        except (ConnectionError, TimeoutError):
            pass
    return sent / 2**20


@fault(users="they are disconnected when the time of their questions is over", figure="MiB that the service grows by",
       at_most=20, limit=120)  # fmt: skip
async def slow_readers(stage: Stage) -> float:
    """100 clients read nothing of an answer of 2 MB each, 200 MB together, for the 15 s that their questions have."""
    service = await stage.own(**_PATIENT)
    await service.ask("/time/chat?query=warm")
    before, samples = service.mib(), list[float]()
    async with _not_reading(stage, service, 100) as begun:
        await asyncio.sleep(1)
        while not await _no_question_runs(service):
            samples.append(service.mib())
        late = time.monotonic() - begun - 15
    held(late < 5, f"they were disconnected {late:.1f} s late")
    stage.note = f"disconnected {max(late, 0):.1f} s after that time"
    return max(samples) - before


@fault(users="it is disconnected", figure="s after the last byte that it took", at_most=4)
async def a_slow_reader_is_hung_up_on(stage: Stage) -> float:
    """A client reads nothing of an answer of 2 MB; `SERVER_CLIENT_TIMEOUT` is 1 s."""
    service = await stage.service(**_SHORT)
    await until(lambda: _no_question_runs(service))
    async with _not_reading(stage, service, 1):
        began = time.monotonic()
        await until(lambda: _no_question_runs(service))
        return time.monotonic() - began


@fault(users="the memory is given back", figure="s until all but 8 MiB are", at_most=90, limit=180)
async def memory_after_slow_readers(stage: Stage) -> float:
    """Three times in a row, 100 clients read nothing of an answer of 2 MB each for some seconds, and leave."""
    service = await stage.own(**_PATIENT)
    await service.ask("/time/chat?query=warm")
    before = most = service.mib()
    for _ in range(3):
        async with _not_reading(stage, service, 100):
            await asyncio.sleep(6)
            most = max(most, service.mib())
    stage.note = f"it had grown by {most - before:.0f} MiB"
    began = time.monotonic()
    await until(lambda: service.mib() - before < 8, 100)
    return time.monotonic() - began


async def _no_question_runs(service: Service) -> bool:
    return (await service.figures()).get("toolchat_questions_in_flight") == 0


@asynccontextmanager
async def _not_reading(stage: Stage, service: Service, count: int) -> AsyncGenerator[float, None]:
    """So many clients that have asked and read nothing; gives when the last did."""
    pieces = [delta(content=f"{number:08} " * 114) for number in range(2048)]
    stage.upstream.behave = playing(sse(*pieces, finish("stop")))
    writers = []
    for _ in range(count):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # else the system reads in its place
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", service.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(question("/time/chat?query=tell", headers=_STREAM))
        writers.append(writer)
    try:
        await until(lambda: len(stage.upstream.calls) >= count)
        yield time.monotonic()
    finally:
        for writer in writers:
            reset(writer)


@fault(users="each is answered, in order", figure="of 20 answers", at_least=20, at_most=20, fast=True)
async def pipelined_requests(stage: Stage) -> float:
    """20 requests at once over one connection."""
    service = await stage.service()
    answered = 0
    async with opened(service.port) as (reader, writer):
        writer.write(b"".join(question(f"/time/chat?query={n}", keep=True) for n in range(20)))
        for _ in range(20):
            answered += (await read_reply(reader)).status == 200
    return answered


@fault(users="it is answered", figure="ms until answered", at_most=5000)
async def a_request_byte_by_byte(stage: Stage) -> float:
    """A client sends its question one byte per packet."""
    service = await stage.service()
    began = time.monotonic()
    async with opened(service.port) as (reader, writer):
        for byte in question("/time/chat?query=hi"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        held((await read_reply(reader)).status == 200, "it was not answered")
    return (time.monotonic() - began) * 1000


@fault(users="nothing", figure="bytes of log for each", at_most=400, fast=True)
async def garbage_does_not_flood_the_log(stage: Stage) -> float:
    """300 connections send bytes that are not HTTP."""
    service = await stage.service()
    before = service.log.stat().st_size

    async def send() -> None:
        async with opened(service.port) as (reader, writer):
            writer.write(b"X\r\n\r\n")
            await read_reply(reader)

    for _ in range(6):
        await asyncio.gather(*(send() for _ in range(50)))
    return (service.log.stat().st_size - before) / 300


@fault(users="the stream says that it goes on", figure="s of silence at most, of 15 s", at_most=18)
async def silence_within_a_stream(stage: Stage) -> float:
    """The provider is silent for 20 s in a stream; a proxy would close the connection after 30."""
    service = await stage.service()
    stage.upstream.behave = speaking(lambda _: "a", pieces=1, pause=20)
    gaps, last = [], time.monotonic()
    async with opened(service.port) as (reader, writer):
        writer.write(question("/time/chat?query=tell", headers=_STREAM))
        while await reader.read(2**16):
            gaps.append(time.monotonic() - last)
            last = time.monotonic()
    return max(gaps)


@fault(users="204, so that the browser stops", figure="questions to the model", at_most=1, fast=True)
async def a_browser_that_reconnects(stage: Stage) -> float:
    """An `EventSource` repeats its question after the stream has ended (`Last-Event-ID`)."""
    service = await stage.service()
    first = await service.ask("/chat/stream?userInput=hi", session=stage.name(), headers=_STREAM)
    held(first.last == "done", f"the stream ended with {first.last!r}")
    identifier = next(line[4:] for line in first.text.splitlines() if line.startswith("id: "))
    again = await service.ask("/chat/stream?userInput=hi", headers=_STREAM | {"Last-Event-ID": identifier})
    held(again.status == 204, f"answered {again.status}")
    return len(stage.upstream.calls)
