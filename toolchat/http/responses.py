"""An upstream's answer: parsed as it arrives, unpacked as it is read."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamUnavailable

if TYPE_CHECKING:
    from toolchat.http.connections import Connection

__all__ = ["CODINGS", "MAX_BODY_BYTES", "Decoder", "Response", "ResponseHeaders"]


CODINGS = (b"gzip", b"x-gzip", b"deflate")
"""What ``Content-Encoding`` may name."""

_PIECE = 256 * 1024
"""Most bytes that are unpacked at once: a bomb is as large as its reader allows, and no larger."""


class Decoder:
    """Unpacks gzip, also of several members, and deflate, with zlib's wrapping or, as some send it, without."""

    def __init__(self, coding: bytes) -> None:
        self._gzip = coding != b"deflate"
        self._inflate: zlib._Decompress | None = None
        self._rest = b""

    @property
    def is_complete(self) -> bool:
        """Whether what was given ends where the packed data end; an empty body does."""
        return not self._rest and (self._inflate is None or self._inflate.eof)

    def read(self, data: bytes) -> bytes:
        """Take packed bytes, and unpack some of what was taken so far; nothing when more is needed.

        Raises:
            zlib.error: it is not what it says to be.
        """
        self._rest += data
        piece = b""
        while self._rest and not piece:
            if self._inflate is None or self._inflate.eof:
                raw = not self._gzip and self._rest[0] & 0x0F != zlib.DEFLATED
                self._inflate = zlib.decompressobj(31 if self._gzip else -zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
            piece = self._inflate.decompress(self._rest, _PIECE)
            self._rest = self._inflate.unconsumed_tail or self._inflate.unused_data
        return piece


MAX_BODY_BYTES = 4 * 1024 * 1024
"""Longest body that is read from any upstream; WeatherAPI's largest answer is about 0.3 MB."""

_MAX_HEAD_BYTES = 64 * 1024
_MAX_HEADERS = 256
_HIGH_WATER = 16 * 1024


class ResponseHeaders(Mapping[str, str]):
    """The headers of a response; names match in any case, and repeated headers are joined by commas.

    Args:
        fields: values by their names in lower case, as they were sent.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower().encode()].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class Response:
    """One answer.

    Reading raises, in words that name the upstream, ``UpstreamUnavailable`` when the connection is lost and
    ``UpstreamInvalid`` when the answer is cut off, is no HTTP, or cannot be unpacked.
    """

    status = 0
    has_begun = False
    is_settled = False
    """Nothing more will arrive."""
    is_last = False
    """The connection is not to be used again."""
    when_closed: Callable[[], None] | None = None

    _has_head = False
    _unproductive = _buffered = _header_count = 0
    _error: UpstreamError | None = None
    _decoder: Decoder | None = None
    _news: asyncio.Future[None] | None = None

    def __init__(self, connection: Connection, upstream: str, *, is_head: bool = False) -> None:
        self.upstream = upstream
        self._connection = connection
        self._is_head = is_head
        self._fields: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        # As lenient as aiohttp, whose users found the servers that need it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @property
    def headers(self) -> ResponseHeaders:
        """The headers."""
        return ResponseHeaders(self._fields)

    @property
    def content_type(self) -> str:
        """The media type without its parameters."""
        kind = self._fields.get(b"content-type", b"application/octet-stream")
        return kind.partition(b";")[0].strip().lower().decode("latin-1")

    async def head(self) -> None:
        """Wait for status and headers."""
        while not self._has_head:
            await self._more()
        if 300 <= self.status < 400 and self.status != 304:
            raise UpstreamInvalid("the upstream answered with a redirect, which is never followed")
        coding = self._fields.get(b"content-encoding", b"").strip().lower()
        if coding in CODINGS:
            self._decoder = Decoder(coding)
        elif coding not in (b"identity", b""):
            raise UpstreamInvalid(f"{self.upstream} packed its answer in a way that it was not asked for")

    async def readany(self) -> bytes:
        """Whatever has arrived of the body; nothing at its end."""
        while (data := self._arrived()) is None:
            await self._more()
        return data

    async def read(self, max_bytes: int = MAX_BODY_BYTES) -> bytes:
        """The whole body.

        Raises:
            UpstreamInvalid: it is longer.
        """
        pieces: list[bytes] = []
        size = 0
        while (piece := self._arrived()) != b"":
            if piece is None:
                await self._more()
                continue
            pieces.append(piece)
            size += len(piece)
            if size > max_bytes:
                raise UpstreamInvalid(f"{self.upstream} sent more than {max_bytes} bytes")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Stop reading; a connection whose answer has not ended cannot carry another."""
        if not self.is_settled:
            self._parser = None  # they hold each other
            self._connection.drop()
        if self.when_closed is not None:
            self.when_closed()
            self.when_closed = None

    def feed(self, data: memoryview) -> None:
        """Take what has arrived."""
        self.has_begun = True
        self._unproductive += len(data)
        try:
            if self._parser is not None:
                self._parser.feed_data(data)
            is_http = self._unproductive <= _MAX_HEAD_BYTES
        except (HttpParserError, HttpParserUpgrade):
            is_http, self.is_last = False, True
        if not is_http and not self.is_settled:
            self._settle(UpstreamInvalid(f"{self.upstream} sent something that is not a complete HTTP answer"))
        self._tell()

    def end(self, lost: Exception | None) -> None:
        """Take it that nothing more will arrive."""
        if lost is not None or not self._has_head:
            detail = f"{self.upstream} could not be reached, or the connection was lost"
            self._settle(UpstreamUnavailable(detail))
        else:
            framed = self._fields.keys() & {b"content-length", b"transfer-encoding"}
            self._settle(self._cut() if framed else None)
        self._tell()

    def on_message_begin(self) -> None:
        """Refuse a further answer."""
        if self.is_settled:
            raise ValueError("an answer to nothing")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or leave a trailer."""
        self._header_count += 1
        if self._header_count > _MAX_HEADERS:
            raise ValueError("too many headers")
        if not self._has_head:
            name = name.lower()
            self._fields[name] = b"%b, %b" % (self._fields[name], value) if name in self._fields else value

    def on_headers_complete(self) -> None:
        """Find out how the body ends; what is only on the way to the answer, such as 103, is left."""
        parser = self._parser
        if parser is None or 100 <= (status := parser.get_status_code()) < 200:
            self._fields.clear()
            return
        self.status, self._has_head = status, True
        self.is_last = not parser.should_keep_alive()
        if self.is_last and self._fields.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise ValueError("packed in a way that was not asked for")
        if self._is_head:
            self._settle()

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        if self.is_settled:
            raise ValueError("a body where none belongs")
        self._unproductive = 0
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > _HIGH_WATER:
            self._connection.hold(True)

    def on_message_complete(self) -> None:
        """Take it that all has arrived."""
        if self._has_head:
            self._settle()

    def _settle(self, error: UpstreamError | None = None) -> None:
        self.is_settled, self._error = True, error
        self.is_last = self.is_last or error is not None
        self._parser = None  # they hold each other

    def _more(self) -> asyncio.Future[None]:
        """What to wait for until more has arrived."""
        if self._error is not None:
            raise self._error
        if not self.is_settled:
            self._connection.hold(False)  # not before: what was read last may still be waiting for a slow client
        self._news = asyncio.get_running_loop().create_future()
        return self._news

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _arrived(self) -> bytes | None:
        """What has arrived of the body since it was asked; nothing at its end, ``None`` where more is to come."""
        if data := self._next():
            return data
        if not self.is_settled or self._error is not None:
            return None
        if self._decoder is not None and not self._decoder.is_complete:
            raise self._cut()
        return b""

    def _next(self) -> bytes:
        data = b"".join(self._pieces)
        if self._pieces:
            self._pieces.clear()
            self._buffered = 0
        if self._decoder is None:
            return data
        try:
            return self._decoder.read(data)
        except zlib.error:
            raise UpstreamInvalid(f"{self.upstream} sent a body that cannot be unpacked") from None

    def _cut(self) -> UpstreamInvalid:
        return UpstreamInvalid(f"{self.upstream} was cut off in the middle of its answer", retryable=True)
