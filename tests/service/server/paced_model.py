"""An OpenAI-compatible chat model that writes at a set pace, and counts who is still there."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

from tests.players.openai_player import delta, event, finish

__all__ = ["Flood", "PacedModel", "Piece", "calls", "text"]

Piece = tuple[float, bytes]
"""Seconds to wait, then bytes of the body to write."""

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_NEVER = 3600.0


class Flood(tuple[Piece, ...]):
    """Pieces of which the last is repeated for ever, as fast as the reader takes it."""

    __slots__ = ()


Script = Callable[[Mapping[str, Any]], Sequence[Piece]]


def text(words: Sequence[str], pause: float = 0, first: float = 0, *, ends: bool = True) -> Sequence[Piece]:
    """Stream some words; without an end the model falls silent after the last one."""
    pieces = [(pause, event(delta(content=word))) for word in words]
    end = event(finish("stop")) + b"data: [DONE]\n\n"
    pieces.append((pause, end) if ends else (_NEVER, end))
    return [(first, pieces[0][1]), *pieces[1:]]


def calls(name: str, arguments: Mapping[str, Any]) -> Sequence[Piece]:
    """Stream one tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return [(0, event(delta(tool_calls=[call])) + event(finish("tool_calls")) + b"data: [DONE]\n\n")]


class PacedModel:
    """The server; an asynchronous context manager.

    A script is a row of pieces, or tells them from a request's body. The answer is always a stream, asked for or not.
    Its last piece comes once the gate is open, as it is at first.
    """

    def __init__(self, script: Script | Sequence[Piece]) -> None:
        self._script = script
        self._connections: set[_Connection] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0
        """Requests so far."""
        self.finished = 0
        """Answers that were written to the end."""
        self.aborted = 0
        """Answers whose reader left before the end."""
        self.written = 0
        """Bytes of bodies that the reader's side has taken."""

    @property
    def writing(self) -> int:
        """Answers that are being written now."""
        return self.asked - self.finished - self.aborted

    @property
    def open_connections(self) -> int:
        """Connections, idle ones included."""
        return len(self._connections)

    @property
    def base_url(self) -> str:
        """What ``OPENAI_BASE_URL`` has to be."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=4096)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.transport.abort()
        await self._server.wait_closed()

    def pieces_for(self, body: Mapping[str, Any]) -> Sequence[Piece]:
        """What the script says."""
        return self._script(body) if callable(self._script) else self._script


class _Connection(asyncio.Protocol):
    def __init__(self, model: PacedModel) -> None:
        self._model = model
        self._received = b""
        self._writing: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass
        self._model._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if not end or len(body) < length:
            return
        self._received = body[length:]
        self._model.asked += 1
        self._writing = asyncio.create_task(self._answer(json.loads(body[:length] or b"{}")))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._model._connections.discard(self)
        if self._writing is not None:
            self._writing.cancel()
            self._model.aborted += 1

    async def _answer(self, body: Mapping[str, Any]) -> None:
        pieces = self._model.pieces_for(body)
        self.transport.write(_HEAD)
        for wait, piece in pieces[:-1]:
            await self._write(wait, piece)
        await self._model.gate.wait()
        await self._write(*pieces[-1])
        while isinstance(pieces, Flood):
            await self._write(*pieces[-1])
        self.transport.write(b"0\r\n\r\n")
        self._writing = None
        self._model.finished += 1

    async def _write(self, wait: float, piece: bytes) -> None:
        await asyncio.sleep(wait)
        await self._writable.wait()
        self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self._model.written += len(piece)
