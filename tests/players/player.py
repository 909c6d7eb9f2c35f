"""A server on 127.0.0.1 that plays an upstream, byte for byte, by a script of answers."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

Ending = Literal["whole", "close", "cut", "reset", "hang"]


@dataclass(frozen=True, slots=True)
class PlayedRequest:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The parsed JSON body, ``None`` without one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the player sends for one request."""

    pieces: Sequence[bytes] = ()
    """The body; each piece is a chunk of HTTP and a write of its own."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "whole"
    """After the pieces: ``whole`` ends the body in order and keeps the connection, ``close`` sends it without any
    framing and ends it by closing, ``cut`` closes inside the body, ``reset`` does so with a TCP reset, ``hang`` stays
    silent until the client leaves."""
    is_silent: bool = False
    """Whether not even a status is sent."""
    gate: asyncio.Event | None = None
    """Awaited before the last piece is sent."""


RequestT = TypeVar("RequestT", bound=PlayedRequest)


class Player(Generic[RequestT]):
    """The server; an asynchronous context manager."""

    path: ClassVar[str]
    """Of the base URL."""
    request_type: type[RequestT]

    def __init__(self, script: Iterable[Answer] | Callable[[RequestT], Answer] = ()) -> None:
        self.connections = 0
        """Connections accepted so far."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.follow(script)

    def follow(self, script: Iterable[Answer] | Callable[[RequestT], Answer]) -> None:
        """Answer by another script from now on, and forget what was requested."""
        self.requests: list[RequestT] = []
        self.asked = asyncio.Event()
        """Set when a request has arrived."""
        self.aborted = asyncio.Event()
        """Set when a client left in the middle of an answer."""
        self._script = script if callable(script) else None
        self._answers = iter(() if callable(script) else script)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self.path}"
        """The URL that the service is given for its upstream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop listening, and drop every connection."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # left, or stopped: of a cancelled task asyncio's own callback would complain
        finally:
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await self._read_request(reader)
        self.requests.append(request)
        self.asked.set()
        answer = self._script(request) if self._script else next(self._answers, Answer([b"no answer left"], 500))
        try:
            if not answer.is_silent:
                await self._send(answer, reader, writer)
            if answer.ending == "hang" and await reader.read(1) == b"":
                raise ConnectionResetError
        except ConnectionError:
            self.aborted.set()
            raise
        if answer.ending in ("close", "cut"):
            writer.close()
            await writer.wait_closed()
        if answer.ending == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return answer.ending == "whole" and not answer.is_silent

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        framed = answer.ending != "close"
        framing = "Transfer-Encoding: chunked" if framed else "Connection: close"
        lines = [f"{name}: {value}" for name, value in answer.headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {answer.status} Played", framing, *lines])
        writer.write(f"{head}\r\n\r\n".encode())
        for number, piece in enumerate(answer.pieces, start=1):
            if answer.gate is not None and number == len(answer.pieces):
                await answer.gate.wait()
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if framed and piece else piece)
            await writer.drain()
            await asyncio.sleep(0)  # lets the client read this piece alone
            if reader.at_eof():
                raise ConnectionResetError
        if answer.ending == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _read_request(self, reader: asyncio.StreamReader) -> RequestT:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        return self.request_type(method, path, headers, json.loads(content) if content else None)
