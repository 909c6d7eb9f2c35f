"""The same load on the service and on agent frameworks behind FastAPI and uvicorn, as their documentation shows it.

The frameworks come from ``benchmarks/services``, in the environment ``benchmarks/.venv``. What they did stands
beside the figure of each row, which is the service's own.
"""

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.faults.fault import fault, held
from tests.faults.service import PEERS, bare_environment
from tests.faults.stage import Stage
from tests.faults.upstream import frozen, speaking
from tests.faults.waiting import until
from tests.faults.wire import ask, opened, percentile, question, reset

_PEERS = {"Agno": "agno_agent", "Haystack": "haystack_agent"}
_PYTHON = PEERS / "bin" / "python"
_PATH = "/time/chat-tool-function?query=hi"
_STREAM = {"Accept": "text/event-stream"}
_ENOUGH = 20.0
"""Seconds after which a question without a response counts as unanswered."""
_SETTINGS = {"SERVER_CLIENT_TIMEOUT": "5", "MODEL_TIMEOUT": "5", "MODEL_MAX_ATTEMPTS": "1"}

Load = Callable[[Stage, int], Awaitable[tuple[float, str]]]
"""Given a port: a figure, and the same in words."""


async def _beside(stage: Stage, load: Load, **settings: str) -> float:
    """The service's own figure; what the peers did under the same load becomes the note."""
    held(_PYTHON.exists(), "the peers are not installed: make benchmarks/.venv/.peers")
    service = await stage.own(**{**_SETTINGS, **settings})
    figure, said = await load(stage, service.port)
    words = [f"toolchat {said}"]
    await service.stop()
    for name, module in _PEERS.items():
        stage.upstream.reset()
        port = await _peer(stage, module)
        words.append(f"{name} {(await load(stage, port))[1]}")
    stage.note = "; ".join(words)
    return figure


async def _peer(stage: Stage, module: str) -> int:
    """Start one behind uvicorn and wait until it answers; gives its port."""
    port = stage.port()
    log = stage.row.enter_context((stage.folder / f"{module}-{port}.log").open("ab"))
    variables = bare_environment({"BENCH_UPSTREAM": stage.upstream.url.removesuffix("/v1")})
    command = [str(_PYTHON), "-m", f"benchmarks.services.{module}", str(port)]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=stage.folder, env=variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL
    )
    stage.row.push_async_callback(process.wait)
    stage.row.callback(process.kill)

    async def answers() -> bool:
        with suppress(OSError):
            return (await ask(port, _PATH)).status == 200
        return False

    await until(answers, 60)
    return port


@fault(users="every stream is whole", figure="s to the first piece in the median, 0.5 s without load", at_most=6,
       peer=True, limit=300)  # fmt: skip
async def a_thousand_streams_beside_peers(stage: Stage) -> float:
    """1,000 streams at once, each of 10 pieces in 5 s."""
    return await _beside(stage, _thousand_streams, MODEL_TIMEOUT="60")


async def _thousand_streams(stage: Stage, port: int) -> tuple[float, str]:
    stage.upstream.behave = speaking(lambda _: "abcdefghij", pieces=10, pause=0.5, first=0.5)
    took: list[float] = []

    async def one(number: int) -> bool:
        began = time.monotonic()
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(60), opened(port, f"127.0.0.{1 + number % 4}") as (reader, writer):
                writer.write(question(_PATH, headers=_STREAM))
                await reader.readuntil(b"data: ")
                took.append(time.monotonic() - began)
                rest = await reader.read(-1)
                return rest.endswith(b"0\r\n\r\n") and b"j" in rest
        return False

    whole = sum(await asyncio.gather(*(one(number) for number in range(1000))))
    middle = percentile(took, 0.5) if took else float("inf")
    return (middle if whole == 1000 else float("inf")), f"{whole} of 1,000 whole, {middle:.1f} s"


@fault(users="they are disconnected", figure="of 300 still connected after 15 s", at_most=0, peer=True, limit=200)
async def slow_loris_beside_peers(stage: Stage) -> float:
    """300 clients send half of their headers and then one byte each second; the service gives them 5 s."""
    return await _beside(stage, _slow_loris)


async def _slow_loris(stage: Stage, port: int) -> tuple[float, str]:
    async def drip() -> bool:
        async with opened(port) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
            read = asyncio.create_task(reader.read())
            for _ in range(15):
                if (await asyncio.wait([read], timeout=1))[0] or writer.transport.is_closing():
                    read.cancel()
                    return False
                writer.write(b"x")
            read.cancel()
            return True

    left = sum(await asyncio.gather(*(drip() for _ in range(300))))
    return left, f"{left} still connected"


@fault(
    users="no task is left behind",
    figure="s until all requests to the provider were cancelled",
    at_most=5,
    peer=True,
    limit=200,
)
async def leavers_beside_peers(stage: Stage) -> float:
    """200 clients reset the connection in mid-stream of an answer that would take a minute."""
    return await _beside(stage, _leavers)


async def _leavers(stage: Stage, port: int) -> tuple[float, str]:
    stage.upstream.behave = speaking(lambda _: "word " * 600, pieces=600, pause=0.1)

    async def leave() -> bool:
        with suppress(OSError, asyncio.IncompleteReadError):  # some are answered an error, where there is much load
            async with opened(port) as (reader, writer):
                writer.write(question(_PATH, headers=_STREAM))
                await reader.readuntil(b"data: ")
                reset(writer)
                return True
        return False

    streamed = sum(await asyncio.gather(*(leave() for _ in range(200))))
    began = time.monotonic()
    with suppress(TimeoutError):
        await until(lambda: stage.upstream.aborts >= streamed, 15)
    left, took = stage.upstream.aborts, time.monotonic() - began
    said = f"{left} of {streamed} left within {took:.2f} s" + f", {200 - streamed} answered no stream" * (
        streamed < 200
    )
    return (took if left == streamed == 200 else float("inf")), said


@fault(
    users="504 `upstream-timeout`",
    figure="s until the last of 20 was answered, of 5 s",
    at_most=12,
    peer=True,
    limit=200,
)
async def a_frozen_provider_beside_peers(stage: Stage) -> float:
    """20 questions to a provider that takes them and never answers; the service gives it 5 s."""
    return await _beside(stage, _frozen)


async def _frozen(stage: Stage, port: int) -> tuple[float, str]:
    stage.upstream.behave = frozen

    async def told() -> float:
        with suppress(TimeoutError):
            return (await ask(port, _PATH, within=_ENOUGH)).seconds
        return float("inf")

    took = await asyncio.gather(*(told() for _ in range(20)))
    answered = [each for each in took if each < _ENOUGH]
    return max(took), f"{len(answered)} of 20 answered within {max(answered, default=_ENOUGH):.0f} s"
