"""A client on a bare socket, which can do what HTTP libraries do not: reset, stall, shut one half."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self
from urllib.parse import urlsplit

__all__ = ["EVENTS", "RawClient", "connected"]

EVENTS = "text/event-stream"
_RESET = struct.pack("ii", 1, 0)
_PIECE = 65536


class RawClient:
    """One connection; leaving its block closes it in order unless that has been done otherwise."""

    def __init__(self, base_url: str, receive_buffer: int | None = None) -> None:
        """Prepare a connection.

        Args:
            base_url: where the service is.
            receive_buffer: bytes that the kernel may keep unread; none leaves the system's choice.
        """
        parts = urlsplit(str(base_url))
        self._address = parts.hostname, parts.port
        self.received = bytearray()
        """All that was read so far, head included."""
        self._socket = socket.socket()
        self._socket.setblocking(False)
        if receive_buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().sock_connect(self._socket, self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The client's own port."""
        return int(self._socket.getsockname()[1])

    async def ask(self, path: str, accept: str = EVENTS, **headers: str) -> None:
        """Send one GET; the answer is left to whoever reads it."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n{lines}\r\n"
        await self.send(head.encode())

    async def post(self, path: str, body: bytes) -> None:
        """Send one POST with JSON; the answer is left to whoever reads it."""
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        await self.send(b"%bContent-Length: %d\r\n\r\n%b" % (head.encode(), len(body), body))

    async def send(self, data: bytes) -> None:
        """Send any bytes."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def read_until(self, mark: bytes) -> bytes:
        """Read until something has come; gives all that was read so far.

        Raises:
            EOFError: the service closed the connection before that.
        """
        while mark not in self.received:
            if not await self.read_piece():
                raise EOFError
        return bytes(self.received)

    async def read_to_end(self) -> bytes:
        """Read until the service closes the connection; gives all that was read so far."""
        while await self.read_piece():
            pass
        return bytes(self.received)

    def reset(self) -> None:
        """Drop the connection as a crashed program or a cut cable does: with RST, unread bytes and all."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._socket.close()

    def shut_sending_side(self) -> None:
        """Say that no more requests come, and go on reading."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close in order; doing it twice does no harm."""
        self._socket.close()

    async def read_piece(self, most: int = _PIECE) -> bytes:
        """Read what is there, or wait for something; nothing means that the service closed the connection."""
        piece = await asyncio.get_running_loop().sock_recv(self._socket, most)
        self.received += piece
        return piece


@asynccontextmanager
async def connected(
    base_url: str, count: int, receive_buffer: int | None = None
) -> AsyncGenerator[list[RawClient], None]:
    """Connect several clients; leaving the block closes them."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(RawClient(base_url, receive_buffer)) for _ in range(count)]
