"""A TCP proxy on 127.0.0.1 that passes everything on until it is told to cut.

In front of a chunked event stream it tells the browser to reconnect soon, where it would wait for three seconds.
"""

import asyncio
import contextlib
from typing import Self

__all__ = ["CuttingProxy"]

_SOON = b"retry: 50\n\n"


class CuttingProxy:
    """An asynchronous context manager; connections made after a cut are passed on again."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self.passed_to_client = b""
        """All bytes that went from the service to clients."""
        self.passed_to_service = b""
        """All bytes that went from clients to the service."""

    @property
    def base_url(self) -> str:
        """The address to use instead of the service's."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Drop every connection that there is, on both sides."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, upstream_writer}
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._pass_up(reader, upstream_writer), self._pass_down(upstream_reader, writer))
        self._writers -= {writer, upstream_writer}

    async def _pass_up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            self.passed_to_service += piece
            writer.write(piece)
        writer.close()

    async def _pass_down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            self.passed_to_client += piece
            writer.write(_hurried(piece))
        writer.close()


def _hurried(piece: bytes) -> bytes:
    head, end, body = piece.partition(b"\r\n\r\n")
    if not end or b"text/event-stream" not in head:
        return piece
    return head + end + b"%x\r\n%b\r\n" % (len(_SOON), _SOON) + body
