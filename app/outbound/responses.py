"""An upstream's answer, read as it arrives."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from app.errors import UpstreamError, UpstreamInvalid
from app.outbound.decoding import CODINGS, Decoder

if TYPE_CHECKING:
    from app.outbound.connections import Connection

__all__ = ["MAX_BODY_BYTES", "Headers", "Response"]

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Longest body that is read from any upstream; WeatherAPI's largest answer is about 0.3 MB."""

_HIGH_WATER = 1024 * 1024


class Headers(Mapping[str, str]):
    """Headers by their names, in whatever case; what came several times is joined by commas."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, name: bytes, value: bytes) -> None:
        """Take one header as it came."""
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._values[key] = f"{self._values[key]}, {text}" if key in self._values else text


class Response:
    """One answer; what it raises names the upstream.

    Reading raises ``UpstreamUnavailable`` when the connection is lost and ``UpstreamInvalid`` when the answer is cut
    off, is no HTTP, or does not unpack.
    """

    __slots__ = (
        "_buffered", "_connection", "_decoder", "_error", "_news", "_pieces", "has_begun", "has_ended", "has_head", "headers", "status",
        "upstream",
    )  # fmt: skip

    def __init__(self, connection: Connection, upstream: str) -> None:
        self.upstream = upstream
        self.status = 0
        self.headers = Headers()
        self.has_begun = self.has_head = self.has_ended = False
        """What has arrived: the first byte, the head, all of it."""
        self._connection = connection
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._decoder: Decoder | None = None
        self._error: UpstreamError | None = None
        self._news: asyncio.Future[None] | None = None

    @property
    def content_type(self) -> str:
        """The media type without its parameters."""
        return self.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()

    async def head(self) -> None:
        """Wait until status and headers are there."""
        while not self.has_head:
            await self._more()
        if 300 <= self.status < 400 and self.status != 304:
            raise UpstreamInvalid("the upstream answered with a redirect, which is never followed")
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding in CODINGS:
            self._decoder = Decoder(coding)
        elif coding not in ("identity", ""):
            raise UpstreamInvalid(f"{self.upstream} packed its answer in a way that it was not asked for")

    async def readany(self) -> bytes:
        """Whatever has arrived of the body, unpacked; nothing at its end."""
        while not (data := self._next()):
            if self.has_ended:
                if self._decoder is not None and not self._decoder.is_complete:
                    raise UpstreamInvalid(f"{self.upstream} was cut off in the middle of its answer", retryable=True)
                return b""
            await self._more()
        return data

    async def read(self, max_bytes: int = MAX_BODY_BYTES) -> bytes:
        """Read the whole body.

        Raises:
            UpstreamInvalid: it is longer.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := await self.readany():
            pieces.append(piece)
            size += len(piece)
            if size > max_bytes:
                raise UpstreamInvalid(f"{self.upstream} sent more than {max_bytes} bytes")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Stop reading; a connection whose answer has not ended cannot serve another."""
        if not self.has_ended:
            self._connection.drop()

    def add(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > _HIGH_WATER:
            self._connection.pause()

    def fail(self, error: UpstreamError) -> None:
        """Let reading raise an error, behind what has arrived."""
        self._error = error
        self.tell()

    def tell(self) -> None:
        """Wake the reader."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _next(self) -> bytes:
        data = b""
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._buffered = 0
            self._connection.resume()
        if self._decoder is None:
            return data
        try:
            self._decoder.feed(data)
            return self._decoder.read()
        except zlib.error:
            raise UpstreamInvalid(f"{self.upstream} sent a body that cannot be unpacked") from None
