"""Asks questions over kept-alive connections and checks every answer; a few microseconds each."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote

from benchmarks.wire import END, NUMBER

__all__ = ["Load", "Question", "ask", "fetch", "question"]


Question = Callable[[int, int], bytes]
"""Makes the bytes of a request from the question's number and the number of its connection."""

_numbers = itertools.count(1)
_ANSWER_SECONDS = 120
_QUESTIONS = ("What is it now? ", "上海现在几点了？")


@dataclass
class Load:
    """A request and its response; times in seconds."""

    latencies: list[float] = field(default_factory=list)
    first_texts: list[float] = field(default_factory=list)
    """How long streams took to the first word of the answer."""
    asked: int = 0
    wrong: int = 0
    sample: bytes = b""
    """One wrong answer."""
    wall: float = 0.0


def question(path: str, accept: str = "text/plain", parameter: str = "query", *more: str) -> Question:
    """Ask a path, in English and Chinese by turns; the question holds its number. ``more`` are lines of the head."""
    start = f"GET {path}{'&' if '?' in path else '?'}{parameter}="
    before = [f"{start}{quote(text)}".encode() for text in _QUESTIONS]
    after = "\r\n".join((" HTTP/1.1", "Host: 127.0.0.1", f"Accept: {accept}", *more, "\r\n")).encode()
    return lambda number, _: b"%b%b%b" % (before[number % 2], _label(number), after)


async def ask(
    ports: Sequence[int],
    make: Question,
    *,
    connections: int,
    seconds: float = 0,
    questions: int = 0,
) -> Load:
    """Keep a number of connections busy, each with one question at a time.

    Args:
        ports: where the services listen; connections take turns.
        make: makes the requests.
        connections: how many there are; all are open before the first question.
        seconds: after which no new question is asked.
        questions: after which no new question is asked, if not 0.
    """
    load, loop = Load(), asyncio.get_running_loop()
    left = itertools.count(questions, -1) if questions else itertools.repeat(1)
    opened: list[_Connection] = []
    for slot in range(connections):

        def made(slot: int = slot) -> _Connection:
            return _Connection(load, make, slot, left)

        _, connection = await loop.create_connection(made, "127.0.0.1", ports[slot % len(ports)])
        opened.append(connection)
    began = time.perf_counter()
    for connection in opened:
        connection.start(began + seconds if seconds else float("inf"))
    _, late = await asyncio.wait([each.done for each in opened], timeout=seconds + _ANSWER_SECONDS)
    load.wall = time.perf_counter() - began
    load.wrong += len(late)
    for connection in opened:
        connection.close()
    return load


async def fetch(port: int, path: str) -> tuple[int, bytes]:
    """One small request on a connection of its own; gives status and body.

    Raises:
        OSError: nobody listens there, or the connection was lost.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/plain\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            return int(head[9:12]), await reader.readexactly(_length(head))
        except asyncio.IncompleteReadError:
            raise ConnectionResetError from None
    finally:
        writer.close()


class _Connection(asyncio.Protocol):
    """One client: asks, waits for the answer, asks again."""

    def __init__(
        self,
        load: Load,
        make: Question,
        slot: int,
        left: "itertools.count[int] | itertools.repeat[int]",
    ) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._load, self._make, self._slot, self._left = load, make, slot, left
        self._deadline = self._began = 0.0
        self._waiting = self._streams = self._has_text = False
        self._buffer, self._label = bytearray(), b""
        self._body = self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass

    def start(self, deadline: float) -> None:
        self._deadline = deadline
        self._next()

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._body and not self._read_head():
            return
        if self._streams and not self._has_text and self._label in self._buffer:
            self._has_text = True
            self._load.first_texts.append(time.perf_counter() - self._began)
        if self._buffer.endswith(b"\r\n0\r\n\r\n") if self._streams else len(self._buffer) >= self._needed:
            self._finish()

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        self._body = end + 4
        head = bytes(self._buffer[: self._body])
        self._streams = b"chunked" in head
        self._needed = 0 if self._streams else self._body + _length(head)
        return True

    def connection_lost(self, _: Exception | None) -> None:
        if self._waiting:
            self._load.wrong += 1
        if not self.done.done():
            self.done.set_result(None)

    def _next(self) -> None:
        if time.perf_counter() >= self._deadline or next(self._left) <= 0:
            self._waiting = False
            self.done.set_result(None)
            return
        number = next(_numbers)
        self._reset()
        self._label, self._waiting = _label(number), True
        self._load.asked += 1
        self._began = time.perf_counter()
        self._transport.write(self._make(number, self._slot))

    def _reset(self) -> None:
        self._buffer, self._label = bytearray(), b""
        self._body = self._needed = 0
        self._streams = self._has_text = False
        self._began = 0.0

    def _finish(self) -> None:
        load, now = self._load, time.perf_counter()
        load.latencies.append(now - self._began)
        right = self._buffer.startswith(b"HTTP/1.1 200") and self._label in self._buffer
        if not (right and (END in self._buffer or (self._streams and _ends(self._buffer)))):
            load.wrong += 1
            load.sample = bytes(self._buffer[:2000])
        self._next()


def _ends(stream: bytearray) -> bool:
    """Whether a stream's pieces hold the answer's last words, word for word."""
    place = 0
    for word in END.split():
        place = stream.find(word, place)
        if place < 0:
            return False
    return True


def _label(number: int) -> bytes:
    return b"%b%08d" % (NUMBER[:4], number % 10**8)


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    return int(lower[at + 17 : lower.index(b"\r\n", at + 2)]) if at >= 0 else 0
