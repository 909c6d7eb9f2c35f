"""A server on 127.0.0.1 whose connections a test plays itself, and all ways to ask it.

async def play(peer: Peer) -> None:
    await peer.asked()
    await peer.send(b"HTTP/1.1 200 OK\r\n...")

async with playing(play) as upstream:
    ...  # ask upstream.url
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from tests.waiting import PATIENCE
from toolchat.http.client import OutboundHttp, Reply

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Upstream:
    """What is known of a server."""

    url: str = ""
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    """Head and body of each, as they came."""
    connections: int = 0
    open: int = 0
    """Connections at this moment."""


@dataclass
class Peer:
    """The server's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    upstream: Upstream
    number: int
    """Of the connection, from 1."""

    async def asked(self) -> bytes:
        """Wait for the next request and give it."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        request = head + await self.reader.readexactly(int(fields.get(b"content-length", b"0")))
        self.upstream.requests.append(request)
        return request

    async def send(self, *pieces: bytes) -> None:
        """Send pieces, each alone."""
        for piece in pieces:
            if self.writer.is_closing():  # uvloop's writer would raise a RuntimeError
                raise ConnectionResetError
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    def reset(self) -> None:
        """Close by a TCP reset."""
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def left(self) -> None:
        """Wait until the client has closed the connection."""
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Play = Callable[[Peer], Awaitable[None]]


def answering(*answers: bytes) -> Play:
    """Give the answers to the requests of each connection, and close it behind the last one."""

    async def play(peer: Peer) -> None:
        for answer in answers:
            await peer.asked()
            await peer.send(answer)

    return play


def holding(*pieces: bytes) -> Play:
    """Send the pieces to the first request, and then nothing until the client leaves."""

    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(*pieces)
        await peer.left()

    return play


async def forever(peer: Peer) -> None:
    """Answer every request; each answer tries to set a cookie."""
    while True:
        await peer.asked()
        await peer.send(OK.replace(b"\r\n", b"\r\nSet-Cookie: a=b\r\n", 1))


@asynccontextmanager
async def playing(
    play: Play, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Upstream, None]:
    """Serve; a connection is closed when its play ends."""
    upstream, tasks = Upstream(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream.connections += 1
        upstream.open += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await play(Peer(reader, writer, upstream, upstream.connections))
        finally:
            upstream.open -= 1
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async with await asyncio.start_server(accept, host, 0, ssl=tls) as server:
        upstream.port = server.sockets[0].getsockname()[1]
        upstream.url = f"http{'s' if tls else ''}://{host}:{upstream.port}/"
        yield upstream
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


@asynccontextmanager
async def outbound(**limits: float) -> AsyncGenerator[OutboundHttp, None]:
    http = OutboundHttp(**limits)  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(PATIENCE):
            yield http
    finally:
        await http.aclose()


async def asked(http: OutboundHttp, url: str, method: str = "GET", data: bytes = b"") -> Reply:
    """Ask for a whole answer."""
    return await http.fetch(method, url, upstream="Shop", timeout=PATIENCE, data=data)


async def _streamed(http: OutboundHttp, url: str) -> bytes:
    async with http.request("GET", url, upstream="Shop") as response:
        return await response.read()


async def _by_httpx(http: OutboundHttp, url: str) -> bytes:
    return (await http.httpx.get(url, extensions={"upstream": "Shop"}, timeout=PATIENCE)).content


async def _by_library(http: OutboundHttp, url: str) -> bytes:
    async with http.session("Shop", url) as session, session.get(url) as response:
        return await response.read()


async def _fetched(http: OutboundHttp, url: str) -> bytes:
    return (await asked(http, url)).body


Ask = Callable[[OutboundHttp, str], Awaitable[bytes]]
CLIENTS: dict[str, Ask] = {"fetch": _fetched, "request": _streamed, "httpx": _by_httpx, "session": _by_library}
clients = pytest.mark.parametrize("ask", CLIENTS.values(), ids=CLIENTS)
