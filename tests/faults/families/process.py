"""Starting, stopping, signals and settings that cannot be."""

import asyncio
import os
import signal
import socket
import time

import psutil

from tests.faults.fault import fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import speaking
from tests.faults.waiting import until
from tests.faults.wire import Reply, read_reply

_STREAM = {"Accept": "text/event-stream"}


async def _streams(stage: Stage, service: Service, count: int, seconds: float) -> "list[asyncio.Task[Reply]]":
    """Streams that have begun and will take so long."""
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=seconds / 10)
    asked = [asyncio.create_task(service.ask("/time/chat?query=hi", headers=_STREAM)) for _ in range(count)]
    await until(lambda: len(stage.upstream.calls) == count)  # the first may be over before the last has begun
    return asked


async def _drained(stage: Stage, *numbers: int, code: int = 0) -> float:
    """Of 50 streams those that are finished after these signals, and an end with this code."""
    service = await stage.own()
    asked = await _streams(stage, service, 50, 2)
    for number in numbers:
        service.signal(number)
        await asyncio.sleep(0.3)
    replies = await asyncio.gather(*asked)
    ended = await service.ended()
    held(ended == code, f"it ended with {ended}")
    return sum(each.last == "done" for each in replies)


@fault(users="every stream is finished", figure="of 50 streams", at_least=50, fast=True)
async def term_with_streams(stage: Stage) -> float:
    """SIGTERM with 50 open streams that take 2 s; the exit code is 0."""
    return await _drained(stage, signal.SIGTERM)


@fault(users="every stream is finished", figure="of 50 streams", at_least=50)
async def quit_with_streams(stage: Stage) -> float:
    """SIGQUIT with 50 open streams that take 2 s; the exit code is 0."""
    return await _drained(stage, signal.SIGQUIT)


@fault(users="every stream is finished", figure="of 50 streams", at_least=50)
async def int_with_streams(stage: Stage) -> float:
    """SIGINT with 50 open streams that take 2 s."""
    return await _drained(stage, signal.SIGINT, code=130)


@fault(users="nothing", figure="of 50 streams", at_least=50)
async def hup_with_streams(stage: Stage) -> float:
    """SIGHUP, as a log rotation sends it, with 50 open streams; the service goes on."""
    service = await stage.own()
    asked = await _streams(stage, service, 50, 1)
    service.signal(signal.SIGHUP)
    replies = await asyncio.gather(*asked)
    held((await service.ask("/time/chat?query=hi")).status == 200, "it does not answer any more")
    return sum(each.last == "done" for each in replies)


@fault(users="each stream ends with an `error` event", figure="s until the end, of 1 s of grace", at_most=8, fast=True,
       loud=True)  # fmt: skip
async def streams_longer_than_the_grace(stage: Stage) -> float:
    """SIGTERM with 20 streams that take a minute; `SHUTDOWN_TIMEOUT` is 1 s."""
    service = await stage.own(SHUTDOWN_TIMEOUT="1")
    asked = await _streams(stage, service, 20, 60)
    began = time.monotonic()
    service.signal(signal.SIGTERM)
    replies = await asyncio.gather(*asked)
    await service.ended()
    told = sum(each.last == "error" and each.events[-1][1]["code"] == "draining" for each in replies)
    held(told == 20, f"{20 - told} streams ended without being told")
    return time.monotonic() - began


@fault(users="503 `draining`; `/health/ready` likewise", figure="ms until refused", at_most=2000)
async def questions_while_draining(stage: Stage) -> float:
    """New questions come over open connections after SIGTERM."""
    service = await stage.own()
    kept = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(2)]
    asked = await _streams(stage, service, 1, 4)
    service.signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    took = []
    for (reader, writer), path in zip(kept, ("/time/chat?query=hi", "/health/ready"), strict=True):
        began = time.monotonic()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        reply = await read_reply(reader, began)
        held(reply.status == 503 and "draining" in reply.text, f"{path} was answered {reply.outcome}")
        took.append(reply.seconds * 1000)
        writer.close()
    held((await asked[0]).last == "done", "the running stream was cut")
    return max(took)


@fault(users="every stream is finished all the same", figure="of 50 streams", at_least=50)
async def term_twice(stage: Stage) -> float:
    """SIGTERM twice, as impatient scripts send it, with 50 streams that take 2 s."""
    return await _drained(stage, signal.SIGTERM, signal.SIGTERM)


@fault(users="streams are cut", figure="s until the end", at_most=8, loud=True)
async def int_twice(stage: Stage) -> float:
    """Ctrl-C twice, with 5 streams that take a minute; no traceback."""
    service = await stage.own()
    asked = await _streams(stage, service, 5, 60)
    service.signal(signal.SIGINT)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    service.signal(signal.SIGINT)
    await service.ended()
    await asyncio.gather(*asked)
    held("Traceback" not in service.written(), "it printed a traceback")
    return time.monotonic() - began


@fault(users="nothing", figure="ms until the end", at_most=8000)
async def term_while_starting(stage: Stage) -> float:
    """SIGTERM at five moments of the first second of the start; no traceback, and never silence after it listened."""
    took = []
    for after in (0.05, 0.2, 0.4, 0.6, 0.9):
        service = stage.unstarted()
        service.spawn()
        await asyncio.sleep(after)
        began = time.monotonic()
        service.signal(signal.SIGTERM)
        code = await service.ended()
        took.append((time.monotonic() - began) * 1000)
        held("Traceback" not in service.written(), f"a traceback after {after} s")
        held(code in (0, -signal.SIGTERM, 128 + signal.SIGTERM), f"it ended with {code}")
    return max(took)


@fault(users="their streams go on", figure="of 20 streams", at_least=20)
async def stopped_and_continued(stage: Stage) -> float:
    """SIGSTOP for 3 s, as by a live migration, with 20 open streams."""
    service = await stage.own()
    asked = await _streams(stage, service, 20, 2)
    service.signal(signal.SIGSTOP)
    await asyncio.sleep(3)
    service.signal(signal.SIGCONT)
    return sum(each.last == "done" for each in await asyncio.gather(*asked))


@fault(users="the sockets are closed at once", figure="s until the service was back", at_most=20)
async def killed_and_started_again(stage: Stage) -> float:
    """SIGKILL with 20 open streams; the service is started again on the same port."""
    service = await stage.own()
    asked = await _streams(stage, service, 20, 60)
    service.signal(signal.SIGKILL)
    await service.ended()
    replies = await asyncio.gather(*asked)
    held(not any(each.whole for each in replies), "a cut stream looked finished")
    stage.upstream.reset()
    began = time.monotonic()
    await service.start()
    held((await service.ask("/time/chat?query=hi")).status == 200, "it does not answer")
    return time.monotonic() - began


async def _workers(stage: Stage) -> tuple[Service, list[psutil.Process]]:
    """A service of two workers, and their processes."""
    redis = await stage.redis()
    service = await stage.own(SERVER_WORKERS="2", SERVER_WORKER_TIMEOUT="3", REDIS_URL=redis.url)
    await until(lambda: len(_children(service)) == 2)
    held((await service.ask("/health/ready")).status == 200, "it is not ready")
    return service, _children(service)


def _children(service: Service) -> list[psutil.Process]:
    return psutil.Process(service.popen.pid).children()


async def _replaced(service: Service, victim: psutil.Process) -> float:
    """Seconds until a worker has another one in its place, and all requests are answered."""
    began = time.monotonic()
    await until(lambda: victim not in _children(service) and len(_children(service)) == 2, 20)

    async def all_answer() -> bool:
        replies = await asyncio.gather(*(service.ask("/time/chat?query=hi", within=1) for _ in range(10)))
        return all(each.status == 200 for each in replies)

    await until(all_answer)
    return time.monotonic() - began


@fault(users="lost connections, then answers", figure="s until another one was in its place", at_most=15, loud=True)
async def a_worker_that_is_killed(stage: Stage) -> float:
    """SIGKILL to one of two workers."""
    service, (victim, _) = await _workers(stage)
    victim.kill()
    return await _replaced(service, victim)


@fault(users="time-outs, then answers", figure="s until another one was in its place, of 3 s", at_most=20, loud=True)
async def a_worker_that_hangs(stage: Stage) -> float:
    """One of two workers is stopped by SIGSTOP; `SERVER_WORKER_TIMEOUT` is 3 s."""
    service, (victim, _) = await _workers(stage)
    victim.suspend()
    return await _replaced(service, victim)


@fault(users="it answers", figure="s from nothing to the first answer", at_most=20, fast=True)
async def cold_start(stage: Stage) -> float:
    """The process is started; what it needs of memory at rest is beside."""
    began = time.monotonic()
    service = await stage.own()
    held((await service.ask("/health/ready")).status == 200, "it is not ready")
    took = time.monotonic() - began
    stage.note = f"{service.mib():.0f} MiB"
    return took


@fault(users="nothing", figure="lines that say so", at_least=1, at_most=3)
async def the_port_is_taken(stage: Stage) -> float:
    """Another program listens on the port already."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        service = stage.unstarted(SERVER_PORT=str(port))
        service.spawn()
        held(await service.ended(), "it ended as if all were well")
    lines = service.written().splitlines()
    held(any(str(port) in line for line in lines), "the port is not named")
    return len(lines)


@fault(users="they notice nothing", figure="ms, the 95th percentile of 100", at_most=1000, fast=True)
async def nobody_reads_the_log(stage: Stage) -> float:
    """The log is a pipe that is full, since its reader was stopped; 400 questions."""
    reading, writing = os.pipe()
    stage.row.callback(os.close, reading)
    service = await _logging_to(stage, f"/proc/self/fd/{writing}", writing)
    for _ in range(300):
        await service.ask("/health/live")
    took = []
    for _ in range(100):
        reply = await service.ask("/time/chat?query=hi")
        held(reply.status == 200, f"answered {reply.status}")
        took.append(reply.seconds * 1000)
    stage.note = f"{(await service.figures())['toolchat_log_lines_lost_total']:.0f} lines lost by then"
    return sorted(took)[95]


@fault(users="they notice nothing", figure="of 50 questions answered", at_least=50)
async def the_log_cannot_be_written(stage: Stage) -> float:
    """The log is `/dev/full`: every write fails as on a full disk."""
    service = await _logging_to(stage, "/dev/full")
    replies = [await service.ask("/time/chat?query=hi") for _ in range(50)]
    lost = (await service.figures())["toolchat_log_lines_lost_total"]
    held(lost > 0, "the lost lines are not counted")
    stage.note = f"{lost:.0f} lines lost, and counted"
    return sum(each.status == 200 for each in replies)


@fault(users="they notice nothing", figure="of 20 questions answered", at_least=20, fast=True)
async def the_log_is_closed(stage: Stage) -> float:
    """Standard output and error are closed from the start."""
    service = await _logging_to(stage, "&-")
    replies = [await service.ask("/time/chat?query=hi") for _ in range(20)]
    return sum(each.status == 200 for each in replies)


async def _logging_to(stage: Stage, target: str, descriptor: int | None = None) -> Service:
    """A service on a known port that writes its log where a shell redirects it."""
    port = stage.port()
    to = f'exec "$@" >{target} 2>{target}' if target != "&-" else 'exec "$@" >&- 2>&-'
    service = stage.unstarted("sh", "-c", to, "sh", SERVER_PORT=str(port))
    service.url = f"http://127.0.0.1:{port}"
    service.spawn(keeping=() if descriptor is None else (descriptor,))
    if descriptor is not None:
        os.close(descriptor)

    async def answers() -> bool:
        try:
            return (await service.ask("/health/live")).status == 200
        except OSError:
            return False

    await until(answers)
    return service
