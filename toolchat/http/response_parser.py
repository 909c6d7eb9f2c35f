"""Responses of upstreams: parsed as they arrive, with backpressure, and decompressed as they are read."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamUnavailable

if TYPE_CHECKING:
    from toolchat.http.connections import Connection

CODINGS = (b"gzip", b"x-gzip", b"deflate")
"""The supported values of ``Content-Encoding``."""

_PIECE = 256 * 1024
"""Bytes that are decompressed at once. The reader counts each piece, so a zip bomb ends at the reader's limit."""


class Decoder:
    """Decompresses gzip, also of several members, and deflate, with or without zlib's header."""

    def __init__(self, coding: bytes) -> None:
        self._gzip = coding != b"deflate"
        self._inflate: Any = None
        self._rest = b""

    @property
    def is_complete(self) -> bool:
        """Whether the input ends where the compressed data end; true for an empty body."""
        return not self._rest and (self._inflate is None or bool(self._inflate.eof))

    def read(self, data: bytes) -> bytes:
        """Add compressed bytes and decompress a piece; empty if more input is needed."""
        self._rest += data
        piece = b""
        while self._rest and not piece:
            if self._inflate is None or self._inflate.eof:
                # "deflate" means zlib's format, but some servers send the bare data: the first byte tells them apart.
                raw = not self._gzip and self._rest[0] & 0x0F != zlib.DEFLATED
                self._inflate = zlib.decompressobj(31 if self._gzip else -zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
            piece = self._inflate.decompress(self._rest, _PIECE)
            self._rest = self._inflate.unconsumed_tail or self._inflate.unused_data
        return piece


MAX_BODY_BYTES = 4 * 1024 * 1024
"""The default limit of a body; WeatherAPI's largest response has about 0.3 MB."""

_MAX_HEAD_BYTES = 64 * 1024
_MAX_HEADERS = 256
_HIGH_WATER = 16 * 1024
"""Unread bytes of a body at which reading from the socket pauses."""


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
    """A response; the connection feeds it, and the caller reads it.

    Reading raises ``UpstreamUnavailable`` if the connection is lost, and ``UpstreamInvalid`` if the response is
    truncated, not HTTP, or cannot be decompressed. The messages contain the upstream's name.
    """

    status = 0
    has_begun = False
    is_settled = False
    """Whether nothing more will arrive."""
    is_last = False
    """Whether the connection must not be used again."""
    when_closed: Callable[[], None] | None = None

    _has_head = False
    _unproductive = _buffered = _header_count = 0
    _error: UpstreamError | None = None
    _decoder: Decoder | None = None
    _waiter: asyncio.Future[None] | None = None

    def __init__(self, connection: Connection, upstream: str, *, is_head: bool = False) -> None:
        self.upstream = upstream
        self._connection = connection
        self._is_head = is_head
        self._fields: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        # As lenient as aiohttp, because there are servers that need it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @property
    def headers(self) -> ResponseHeaders:
        """The headers."""
        return ResponseHeaders(self._fields)

    @property
    def content_type(self) -> str:
        """The media type without parameters."""
        kind = self._fields.get(b"content-type", b"application/octet-stream")
        return kind.partition(b";")[0].strip().lower().decode("latin-1")

    async def head(self) -> None:
        """Wait for the status and the headers."""
        while not self._has_head:
            await self._more()
        if 300 <= self.status < 400 and self.status != 304:
            raise UpstreamInvalid("the upstream answered with a redirect, which is never followed")
        coding = self._fields.get(b"content-encoding", b"").strip().lower()
        if coding in CODINGS:
            self._decoder = Decoder(coding)
        elif coding not in (b"identity", b""):
            raise UpstreamInvalid(f"{self.upstream} compressed its answer in a way that was not requested")

    async def readany(self) -> bytes:
        """Read what has arrived of the body; empty at its end."""
        while (data := self._arrived()) is None:
            await self._more()
        return data

    async def read(self, max_bytes: int = MAX_BODY_BYTES) -> bytes:
        """Read the complete body."""
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
        """Stop reading; the connection is dropped unless the response is complete."""
        if not self.is_settled:
            self._parser = None  # parser and response refer to each other
            self._connection.drop()
        if self.when_closed is not None:
            self.when_closed()
            self.when_closed = None

    def feed(self, data: memoryview) -> None:
        """Accept bytes from the connection."""
        self.has_begun = True
        # Bytes since the last piece of body: a head, interim responses, chunk extensions or trailers without an end.
        self._unproductive += len(data)
        try:
            if self._parser is not None:
                self._parser.feed_data(data)
            is_http = self._unproductive <= _MAX_HEAD_BYTES
        except (HttpParserError, HttpParserUpgrade):
            is_http, self.is_last = False, True
        if not is_http and not self.is_settled:
            self._settle(UpstreamInvalid(f"{self.upstream} sent something that is not a complete HTTP answer"))
        self._wake()

    def end(self, lost: Exception | None) -> None:
        """Accept the end of the connection."""
        if lost is not None or not self._has_head:
            detail = f"{self.upstream} could not be reached, or the connection was lost"
            self._settle(UpstreamUnavailable(detail))
        else:
            # Without framing headers the end of the connection is the end of the body (RFC 9112, section 6.3).
            framed = self._fields.keys() & {b"content-length", b"transfer-encoding"}
            self._settle(self._truncated() if framed else None)
        self._wake()

    def on_message_begin(self) -> None:
        """Reject a second response to one request; called by the parser, as are the methods below."""
        if self.is_settled:
            raise ValueError("a response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; trailers are ignored."""
        self._header_count += 1
        if self._header_count > _MAX_HEADERS:
            raise ValueError("too many headers")
        if not self._has_head:
            name = name.lower()
            self._fields[name] = b"%b, %b" % (self._fields[name], value) if name in self._fields else value

    def on_headers_complete(self) -> None:
        """Start the body; the headers of an interim response, such as 103, are discarded."""
        parser = self._parser
        if parser is None or 100 <= (status := parser.get_status_code()) < 200:
            self._fields.clear()
            return
        self.status, self._has_head = status, True
        self.is_last = not parser.should_keep_alive()
        # The parser takes such a body as it comes, until the connection ends: compressed data would pass for content.
        if self.is_last and self._fields.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise ValueError("a transfer encoding that was not requested")
        if self._is_head:
            self._settle()

    def on_body(self, data: bytes) -> None:
        """Store a piece of the body, and pause reading if the reader is behind."""
        if self.is_settled:
            raise ValueError("a body after the end of the response")
        self._unproductive = 0
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > _HIGH_WATER:
            self._connection.hold(True)

    def on_message_complete(self) -> None:
        """Complete the response; an interim one has no status yet."""
        if self._has_head:
            self._settle()

    def _settle(self, error: UpstreamError | None = None) -> None:
        self.is_settled, self._error = True, error
        self.is_last = self.is_last or error is not None
        self._parser = None  # parser and response refer to each other

    def _more(self) -> asyncio.Future[None]:
        """Return a future that is done when more has arrived; raises the response's error."""
        if self._error is not None:
            raise self._error
        if self._connection.is_held and not self.is_settled:
            self._connection.hold(False)  # only now: a slow client may still hold back the last piece
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _arrived(self) -> bytes | None:
        """The next piece of the body: empty at its end, ``None`` if more is to come."""
        if not (self._pieces or self.is_settled or self._decoder):
            return None
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._decoder is not None:
            data = self._decompressed(data, self._decoder)
        if data:
            return data
        if not self.is_settled or self._error is not None:
            return None
        if self._decoder is not None and not self._decoder.is_complete:
            raise self._truncated()
        return b""

    def _decompressed(self, data: bytes, decoder: Decoder) -> bytes:
        try:
            return decoder.read(data)
        except zlib.error:
            raise UpstreamInvalid(f"{self.upstream} sent a body that cannot be decompressed") from None

    def _truncated(self) -> UpstreamInvalid:
        return UpstreamInvalid(f"{self.upstream} was cut off in the middle of its answer", retryable=True)
