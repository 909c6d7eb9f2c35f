"""A TCP proxy on 127.0.0.1 that stalls, cuts, drips, spoils or doubles what goes through it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

from tests.faults.server import Server
from tests.faults.wire import reset

__all__ = ["Mode", "Proxy"]

Mode = Literal["pass", "stall", "refuse", "drip", "slow", "garbage", "double", "half"]
"""What happens to the bytes that come back: nothing; they wait; connections are reset at once; one byte each 5 ms; all
wait for 0.2 s; random bytes come in their place; they come twice; only their first half does, then a reset."""


async def _pass(_: bytes) -> None:
    pass


class Proxy(Server):
    """The proxy; an asynchronous context manager. :attr:`mode` may be changed at any time."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.mode: Mode = "pass"
        self.gate: Callable[[bytes], Awaitable[None]] = _pass
        """Awaited with each piece that a client sends, before it goes on to the server."""
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Reset all connections that are open."""
        for writer in list(self._writers):
            reset(writer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what one connection carries, as the mode says."""
        self._writers.add(writer)
        try:
            await self._relay(reader, writer)
        finally:
            self._writers.discard(writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "refuse":
            return reset(writer)
        there, to = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forth(reader, to))
                both.create_task(self._back(there, writer))
        finally:
            to.transport.abort()
        return None

    async def _forth(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(2**16):
            await self._stalled()
            await self.gate(piece)
            await _put(writer, piece)
        raise ConnectionResetError  # ends the other half, too

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(2**16):
            await self._stalled()
            await self._given_back(piece, writer)
        with suppress(OSError):
            writer.write_eof()

    async def _stalled(self) -> None:
        while self.mode == "stall":  # noqa: ASYNC110 - the mode is a plain attribute, for tests to set
            await asyncio.sleep(0.01)

    async def _given_back(self, piece: bytes, writer: asyncio.StreamWriter) -> None:
        if self.mode == "drip":
            for byte in piece:
                await _put(writer, bytes([byte]))
                await asyncio.sleep(0.005)
            return
        if self.mode == "half":
            await _put(writer, piece[: len(piece) // 2])
            reset(writer)
            return
        if self.mode == "slow":
            await asyncio.sleep(0.2)
        spoilt = {"garbage": bytes((byte * 7 + 13) % 256 for byte in piece), "double": piece + piece}
        await _put(writer, spoilt.get(self.mode, piece))


async def _put(writer: asyncio.StreamWriter, piece: bytes) -> None:
    if writer.transport.is_closing():
        raise ConnectionResetError
    writer.write(piece)
    await writer.drain()
