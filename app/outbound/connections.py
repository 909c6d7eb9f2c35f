"""One connection to an upstream, and how it is opened."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import cast

from aiohappyeyeballs import AddrInfoType, start_connection
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from app.errors import UpstreamInvalid, UpstreamUnavailable
from app.outbound.requests import Origin, Request
from app.outbound.responses import Response

__all__ = ["Connection", "opened"]

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256

_HAPPY_EYEBALLS_DELAY = 0.25


class Connection(asyncio.Protocol):
    """Carries one exchange at a time; an answer that leaves any doubt where it ends is its last.

    Args:
        origin: where it leads.
        when_free: called when the connection can carry the next exchange.
        when_lost: called when its socket is closed.
    """

    def __init__(
        self, origin: Origin, when_free: Callable[[Connection], None], when_lost: Callable[[Connection], None]
    ) -> None:
        self.origin = origin
        self.is_used = self.is_lost = False
        self.idle_since = 0.0
        self._when_free, self._when_lost = when_free, when_lost
        self._response: Response | None = None
        self._is_head = self._is_reusable = self._ends_by_closing = self._is_paused = False
        self._unproductive = self._header_count = 0
        self._parser = HttpResponseParser(self)
        # As lenient as aiohttp, whose users found servers that need it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass

    def send(self, request: Request, upstream: str) -> Response:
        """Send a request; its response is to be waited for."""
        self._response = response = Response(self, upstream)
        self._is_head, self._is_reusable, self.is_used = request.is_head, False, True
        self._unproductive = self._header_count = 0
        self._transport.write(request.wire)
        return response

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        self.is_lost = True
        self._transport.abort()

    def pause(self) -> None:
        """Read no more for now; the upstream has to wait."""
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:  # nobody asked
            self.drop()
            return
        response.has_begun = True
        self._unproductive += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._is_reusable, self._unproductive = False, MAX_HEAD_BYTES + 1
        if response.has_ended:
            self._finish()
        elif self._unproductive > MAX_HEAD_BYTES:
            response.fail(UpstreamInvalid(f"{response.upstream} sent something that is not a complete HTTP answer"))
            self.drop()
        response.tell()

    def eof_received(self) -> None:
        self._end(None)
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._end(exc)
        del self._parser  # they hold each other
        self._when_lost(self)

    def _end(self, exc: Exception | None) -> None:
        response, self._response = self._response, None
        if response is None:
            return
        if exc is not None or not response.has_head:
            response.fail(UpstreamUnavailable(f"{response.upstream} could not be reached, or the connection was lost"))
        elif self._ends_by_closing:
            response.has_ended = True
        else:
            detail = f"{response.upstream} was cut off in the middle of its answer"
            response.fail(UpstreamInvalid(detail, retryable=True))
        response.tell()

    def _finish(self) -> None:
        self._response = None
        self.resume()
        # What has not been sent when the answer is there, the upstream did not want.
        if self._is_reusable and not self._transport.get_write_buffer_size():
            self._when_free(self)
        else:
            self.drop()

    # What the parser calls; what is raised here ends the answer as one that is no HTTP.

    def on_message_begin(self) -> None:
        if self._response is None or self._response.has_ended:
            raise ValueError("an answer to nothing")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count > MAX_HEADERS:
            raise ValueError("too many headers")
        if self._response is not None and not self._response.has_head:  # else it is a trailer
            self._response.headers.add(name, value)

    def on_headers_complete(self) -> None:
        response, status = self._response, self._parser.get_status_code()
        if response is None or 100 <= status < 200:
            return
        response.status, response.has_head = status, True
        coding = response.headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise ValueError("packed in a way that was not asked for")
        self._is_reusable = self._parser.should_keep_alive() and not self._is_head
        self._ends_by_closing = coding is None and "content-length" not in response.headers
        response.has_ended = self._is_head

    def on_body(self, data: bytes) -> None:
        self._unproductive = 0
        if self._response is not None and not self._response.has_ended:
            self._response.add(data)

    def on_message_complete(self) -> None:
        if self._response is not None and self._response.has_head:
            self._response.has_ended = True


async def opened(
    origin: Origin,
    addresses: Sequence[AddrInfoType],
    tls: ssl.SSLContext | None,
    when_free: Callable[[Connection], None],
    when_lost: Callable[[Connection], None],
) -> Connection:
    """Connect to the first address that answers; see :class:`Connection`.

    Raises:
        OSError: none does, or the upstream cannot show who it is.
    """
    loop = asyncio.get_running_loop()
    found = await start_connection(addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY, loop=loop)
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = origin.host if tls else None
        _, connection = await loop.create_connection(
            lambda: Connection(origin, when_free, when_lost), sock=found, ssl=tls, server_hostname=name
        )
    except BaseException:
        found.close()
        raise
    return connection
