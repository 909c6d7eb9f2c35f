"""A fake chat model and weather service that costs a few microseconds per call.

``python -m benchmarks.fake_upstream PORT`` speaks OpenAI's chat completions, DashScope's text generation (both whole
and streamed) and WeatherAPI's forecast. A request without a tool's result is answered with a call of the first tool
that it offers, one with a result by a text. ``GET /control?first=0.2&piece=0.05`` sets how many seconds the model
takes to its first piece and between pieces, and answers with what was counted. With a certificate as second argument
it also serves TLS, on another port; it prints each port on a line.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from pydantic_core import to_json

from benchmarks.wire import NUMBER, RESULT_MARKERS, Reply, calling, numbered, saying, weather

__all__ = ["Counts", "serve"]


_TAKEN = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
_BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
_USER = (b'"role":"user"', b'"role": "user"')
_TOOL = (b'"role":"tool"', b'"role": "tool"')
_STREAM = (b'"stream":true', b'"stream": true')


@dataclass
class Counts:
    """What was asked since the start."""

    calls: int = 0
    """Turns of the model that ended in a tool call."""
    answers: int = 0
    """Turns of the model that ended in a text."""
    forecasts: int = 0
    refused: int = 0
    """Requests that made no sense, or whose tool result was not what the tool had given."""


@dataclass
class _World:
    counts: Counts
    first: float = 0.0
    piece: float = 0.0


class _Upstream(asyncio.Protocol):
    """One kept-alive connection."""

    def __init__(self, world: _World) -> None:
        self._world = world
        self._buffer = b""
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass
        self._write = self._transport.write

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        while len(self._buffer) >= max(self._needed, 1):
            body = self._buffer.find(b"\r\n\r\n") + 4
            if body < 4:
                return
            self._needed = body + _content_length(self._buffer[:body])
            if len(self._buffer) < self._needed:
                return
            request, self._buffer = self._buffer[: self._needed], self._buffer[self._needed :]
            self._needed = 0
            self._answer(request, body)

    def _answer(self, request: bytes, body: int) -> None:
        counts = self._world.counts
        if request.startswith(b"POST /v1/traces"):
            self._write(_TAKEN)
        elif request.startswith(b"POST"):
            self._model(request, body)
        elif b"/forecast.json" in request[:200]:
            counts.forecasts += 1
            self._write(weather())
        else:
            self._write(_control(self._world, request))

    def _model(self, request: bytes, body: int) -> None:
        counts = self._world.counts
        at = request.rfind(b"ask-")
        number = request[at : at + len(NUMBER)]
        protocol = "dashscope" if b"/text-generation/" in request[:200] else "openai"
        asked_last = _last(request, _USER)
        result = _last(request, _TOOL) > asked_last
        tools = request.rfind(b'"tools":', body)
        if at < 0 or (result and not any(request.find(each, asked_last) > 0 for each in RESULT_MARKERS)):
            counts.refused += 1
            self._write(_BAD)
            return
        if result or tools < 0:
            counts.answers += 1
            reply = saying(protocol)
        else:
            counts.calls += 1
            reply = calling(protocol, _first_name(request, tools))
        self._say(reply, number, streams=b"SSE: enable" in request[:body] or _last(request, _STREAM) > 0)

    def _say(self, reply: Reply, number: bytes, *, streams: bool) -> None:
        world = self._world
        later = asyncio.get_running_loop().call_later
        if not streams or not world.piece:
            content = reply.stream(number) if streams else reply.numbered(number)
            if world.first:
                later(world.first, self._write, content)
            else:
                self._write(content)
            return
        self._write(reply.head)
        for place, each in enumerate(reply.pieces):
            later(world.first + place * world.piece, self._write, numbered(each, number))


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    return int(lower[at + 17 : lower.index(b"\r\n", at + 2)]) if at >= 0 else 0


def _last(request: bytes, spellings: tuple[bytes, bytes]) -> int:
    compact, spaced = spellings
    at = request.rfind(compact)
    return at if at >= 0 else request.rfind(spaced)


def _first_name(request: bytes, tools: int) -> str:
    at = request.index(b'"name":', tools) + len(b'"name":')
    start = request.index(b'"', at) + 1
    return request[start : request.index(b'"', start)].decode()


def _control(world: _World, request: bytes) -> bytes:
    values = dict(parse_qsl(urlsplit(request[: request.index(b"\r\n")].split(b" ")[1].decode()).query))
    if values:
        world.first, world.piece = float(values.get("first", 0)), float(values.get("piece", 0))
    content = to_json(asdict(world.counts))
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content


async def serve(port: int, ready: Callable[[int], None]) -> None:
    """Serve for ever.

    Args:
        port: where to listen; 0 picks a free one.
        ready: called with the port.
    """
    made = partial(_Upstream, _World(Counts()))
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", port, backlog=4096)
    ready(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _tell(port: int) -> None:
    print(port, flush=True)


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1]), _tell))
