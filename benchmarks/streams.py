"""Many slow streams at once on one worker: is every answer whole, when does it begin, and what memory does it take?

``python -m benchmarks.streams`` starts the fake upstream, the service and the clients in processes of their own, and
prints one table. The model takes half a second to its first word and five seconds to its last.
"""

import argparse
import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic_core import from_json

from benchmarks.load import fetch
from benchmarks.processes import FOUND, Running, cores, free_port, running
from benchmarks.wire import END, NUMBER, STREAM

__all__ = ["Round", "main"]

FIRST, LAST = 0.5, 5.0
"""Seconds to the first and to the last word of a service that costs nothing."""
_LATEST = 60
_CHUNK_HEAD = re.compile(rb"\r?\n?[0-9a-f]+\r\n")


class _Stream(asyncio.Protocol):
    """One client: asks once and keeps what comes."""

    def __init__(self, number: int) -> None:
        self.label = b"%b%08d" % (NUMBER[:4], number)
        self.first = self.last = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        request = (
            b"GET /time/chat?query=%b HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        self.began = time.perf_counter()
        cast("asyncio.Transport", transport).write(request % self.label)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self.first and b"event: delta" in self._received:
            self.first = time.perf_counter() - self.began

    def connection_lost(self, _: Exception | None) -> None:
        self.last = time.perf_counter() - self.began
        if not self.done.done():
            self.done.set_result(None)

    def answer(self) -> str:
        """The answer without its number; raises ``ValueError`` when it is not whole."""
        head, _, body = bytes(self._received).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200") or not body.endswith(b"0\r\n\r\n"):
            raise ValueError("cut off")
        blocks = _CHUNK_HEAD.sub(b"", body).decode().split("\n\n")
        events = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks if "event" in block]
        text = "".join(from_json(each["data"])["text"] for each in events if each["event"] == "delta")
        whole = from_json(events[-1]["data"])["answer"]
        if text != whole or not text.startswith(self.label.decode()) or not text.endswith(END.decode()):
            raise ValueError("not what the model said")
        return text.removeprefix(self.label.decode())


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of streams showed."""

    wrong: int
    firsts: Sequence[float]
    lasts: Sequence[float]
    rss_mib: float
    """The service's memory after the round."""
    cpu_seconds: float

    def row(self, number: int, rss_before: float) -> str:
        """A line of the table."""
        figures = (_percentile(self.firsts, 50), _percentile(self.firsts, 99), _percentile(self.lasts, 99))
        return (
            f"| {number} | {self.wrong} | {figures[0]:.2f} | {figures[1]:.2f} | {figures[2]:.2f} "
            f"| {self.rss_mib:.1f} | {self.rss_mib - rss_before:+.1f} | {self.cpu_seconds:.2f} |"
        )


async def _play(service: Running, port: int, streams: int) -> Round:
    loop, cpu = asyncio.get_running_loop(), service.cpu_seconds()
    clients = [_Stream(number) for number in range(streams)]
    opening = (loop.create_connection(lambda each=each: each, "127.0.0.1", port) for each in clients)  # type: ignore[misc]
    await asyncio.gather(*opening)
    await asyncio.wait([each.done for each in clients], timeout=_LATEST)
    answers: set[str] = set()
    wrong = 0
    for each in clients:
        try:
            answers.add(each.answer())
        except (ValueError, LookupError):
            wrong += 1
    firsts, lasts = ([each.first or _LATEST for each in clients], [each.last or _LATEST for each in clients])
    return Round(wrong + len(answers) - 1, firsts, lasts, service.rss_mib(), service.cpu_seconds() - cpu)


async def _measure(service: Running, port: int, upstream: int, streams: int, rounds: int) -> None:
    await fetch(upstream, f"/control?first={FIRST}&piece={(LAST - FIRST) / (STREAM.text_pieces - 1)}")
    async with asyncio.timeout(_LATEST):
        while not await _answers(port):  # noqa: ASYNC110 - another process starts, which sends no event
            await asyncio.sleep(0.05)
    before = service.rss_mib()
    print(f"{streams} streams at once; ideal: first word {FIRST} s, end {LAST} s; memory before {before:.1f} MiB\n")
    print("| round | wrong | first word p50, s | p99, s | end p99, s | memory, MiB | growth | CPU, s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for number in range(1, rounds + 1):
        played = await _play(service, port, streams)
        print(played.row(number, before), flush=True)
        before = played.rss_mib


async def _answers(port: int) -> bool:
    try:
        return (await fetch(port, "/time/chat?query=ask-00000000"))[0] == FOUND
    except OSError:
        return False


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def main() -> None:
    """Measure and print."""
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the service")
    chosen = parser.parse_args()
    first, last = cores()
    with tempfile.TemporaryDirectory() as folder:
        logs, port = Path(folder), free_port()
        with running(["python", "-m", "benchmarks.fake_upstream", "0"], last, logs / "upstream.log") as fake:
            upstream = int(fake.first_line())
            settings = {"OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1", "SERVER_PORT": str(port)}
            settings |= dict(each.split("=", 1) for each in chosen.set)
            with running(["python", "-m", "app"], first, logs / "service.log", settings) as service:
                uvloop.run(_measure(service, port, upstream, chosen.streams, chosen.rounds))


if __name__ == "__main__":
    main()
