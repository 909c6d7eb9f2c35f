"""uvicorn's HTTP/1.1 protocol with limits, and with requests that httptools alone would refuse or misread."""

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from urllib.parse import quote_from_bytes

import httptools
from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolchat.errors import HeadersTooLarge, Overloaded, TooLarge, ToolchatError
from toolchat.service.api.body_limits import CONNECTION
from toolchat.service.api.guard import MAX_URL_BYTES
from toolchat.service.api.problems import PROBLEM_MEDIA_TYPE, problem
from toolchat.service.server.client_limits import ClientLimits

MAX_HEADER_BYTES = 64 * 1024
_MAX_BYTES_DISCARDED = 16 * 1024 * 1024
"""Twice the longest body: most clients read the response only after they have sent the whole request."""
_LINGER_SECONDS = 1
_FIRST_REQUEST_SECONDS = 3
"""How long a connection may be without a request when the server stops, as in Go's ``http.Server.Shutdown``."""
_ASCII = bytes(range(0x80))
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


def _readable(data: bytes, *, is_start: bool) -> bytes:
    """Percent-encode the URL, which may be Chinese typed into curl, and rename the header ``Upgrade``.

    Java's HTTP client offers HTTP/2 with it in every request. A server may ignore the offer (RFC 9110, section 7.8),
    but httptools would leave the body unread.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    line, separator, headers = head.partition(b"\r\n")
    if is_start and not line.isascii():
        line = quote_from_bytes(line, safe=_ASCII).encode()
    return line + _UPGRADE.sub(b"\r\nx-upgrade:", separator + headers) + end + body


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with the limits of its server; see also ``Connection``."""

    limits: ClientLimits
    _head_bytes = 0
    """Bytes received of headers that are not complete yet."""
    _timer: asyncio.TimerHandle | None = None
    """For the headers, and then for the response."""
    _disconnect_callback: Callable[[], None] | None = None
    _discarded: int | None = None
    """Bytes received that nobody will read; ``None`` unless the next response is the last one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the first request, or refuse the connection if there are too many."""
        super().connection_made(transport)
        if self.client:  # a listener for both protocols writes ``::ffff:192.0.2.1`` (RFC 4291, 2.5.5.2)
            self.client = self.client[0].removeprefix("::ffff:"), self.client[1]
        self.limits.limit_reading(transport)
        if not self.limits.refuses(len(self.connections)):
            self._expect_head(self.limits.timeout)
            return
        self._refuse(Overloaded("too many connections are open already", retry_after=1))
        if len(self.connections) > self.limits.max_lingering:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the request that is being answered."""
        self._stop_timer()  # or it would keep the connection in memory, as uvicorn's does
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)
        if self._disconnect_callback is not None:
            self._disconnect_callback()

    def on_disconnect(self, callback: Callable[[], None]) -> Callable[[], object]:
        """See ``Connection``; one callback is enough, since requests of a connection are answered one by one."""
        if self.transport.is_closing():
            return self.loop.call_soon(callback).cancel
        self._disconnect_callback = callback
        return partial(setattr, self, "_disconnect_callback", None)

    @property
    def is_receiving(self) -> bool:
        """See ``Connection``."""
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    def end_after_answer(self) -> None:
        """See ``Connection``."""
        # uvicorn would close at once. Closing a socket with unread data sends a reset, which can destroy the response
        # before the client has read it: so the connection lingers, see on_response_complete.
        self.cycle.keep_alive = True
        self._discarded = 0

    def abort(self) -> None:
        """See ``Connection``."""
        self.transport.abort()

    def abort_after(self, seconds: float) -> None:
        """See ``Connection``."""
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.abort)

    def data_received(self, data: bytes) -> None:
        """Parse received data; data behind the last request is discarded, up to a limit."""
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > _MAX_BYTES_DISCARDED:
                self.transport.close()
            return
        if not self.is_receiving:
            data = _readable(data, is_start=not self._head_bytes)
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_URL_BYTES + MAX_HEADER_BYTES:
            self.send_400_response("")
        elif self._head_bytes and self._timer is None and not self.transport.is_closing():
            self._expect_head(self.limits.timeout)

    def on_headers_complete(self) -> None:
        """Pass the request to the application."""
        if self.parser.should_upgrade():  # it came in pieces, so that the offer was seen too late
            raise httptools.HttpParserError("the parser would leave the body unread")
        # The bytes received also count a body; a line has a colon, a space and an end.
        sizes = (len(name) + len(value) + 4 for name, value in self.headers)
        if self._head_bytes > MAX_HEADER_BYTES and sum(sizes) > MAX_HEADER_BYTES:
            raise httptools.HttpParserError("headers too large")
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]
        super().on_headers_complete()
        self._head_bytes = 0
        if not self.pipeline:
            self._stop_timer()
        if self.limits.is_draining:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """Wait for the next request; or linger, so that the client can read the response before the end."""
        super().on_response_complete()
        self._stop_timer()
        if self._discarded is not None and not self.transport.is_closing():
            self._linger()

    def shutdown(self) -> None:
        """Close the connection, unless a request is being answered, is being received, or is about to arrive."""
        if self.cycle is None or (self._head_bytes and self.cycle.response_complete):
            self._expect_head(_FIRST_REQUEST_SECONDS)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed or is too long, and close the connection."""
        if self.pipeline or (self.cycle and self.cycle.response_started and not self.cycle.response_complete):
            self.abort()  # a client would take the refusal for part of an earlier response
        elif self._head_bytes <= MAX_HEADER_BYTES:
            super().send_400_response(msg)
        elif len(getattr(self, "url", b"")) > MAX_URL_BYTES:
            self._refuse(TooLarge(f"the URL is longer than {MAX_URL_BYTES} bytes"))
        else:
            self._refuse(HeadersTooLarge(f"the headers are longer than {MAX_HEADER_BYTES} bytes"))

    def _expect_head(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, error: ToolchatError) -> None:
        self._discarded = 0
        self.transport.write(_error_response(error))
        self._linger()

    def _linger(self) -> None:
        self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)


def _error_response(error: ToolchatError) -> bytes:
    request_id, retry_after = os.urandom(8).hex(), "retry-after: 1\r\n" if error.retryable else ""
    body = to_json(problem(error, request_id))
    head = (
        f"HTTP/1.1 {error.status} {error.title}\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\ncontent-length: {len(body)}"
        f"\r\nx-request-id: {request_id}\r\n{retry_after}connection: close\r\n\r\n"
    )
    return head.encode() + body
