"""uvicorn's HTTP/1.1 protocol with limits, deadlines, and problem documents for requests that cannot be parsed."""

import asyncio
import logging
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_from_bytes

import httptools
from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolchat.errors import HeadersTooLarge, InvalidRequest, Overloaded, RequestTimeout, TooLarge, ToolchatError
from toolchat.service.api.body_limits import CONNECTION
from toolchat.service.api.guard import MAX_URL_BYTES
from toolchat.service.api.headers import SECURITY_HEADERS
from toolchat.service.api.problems import PROBLEM_MEDIA_TYPE, problem
from toolchat.service.server.client_limits import ConnectionLimit, SlowClientWatch, limit_send_buffer

MAX_HEADER_BYTES = 64 * 1024
_MAX_BYTES_DISCARDED = 16 * 1024 * 1024
"""Twice the longest body: most clients read the response only after they have sent the whole request."""
_LINGER_SECONDS = 1
_FIRST_REQUEST_SECONDS = 5
"""How long a connection may be without a request when the server stops, as in Go's ``http.Server.Shutdown``."""

_REQUEST_LINE = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) [^\s]+ HTTP/1\.[01]\r\n")
_URL_SAFE = bytes(range(0x21, 0x7F))
_Address = tuple[str, int | None] | None
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


def encode_url(data: bytes) -> bytes:
    """Percent-encode the URL in the first bytes of a request, as a browser does; return any other data unchanged."""
    line = _REQUEST_LINE.match(data)
    if line is None or line[0].isascii():
        return data
    method, url, version = line[0].split(b" ")
    return b" ".join((method, quote_from_bytes(url, safe=_URL_SAFE).encode(), version)) + data[line.end() :]


def hide_upgrade(data: bytes) -> bytes:
    """Rename the header ``Upgrade`` in the first bytes of a request.

    Java's HTTP client offers HTTP/2 with it in every request. A server may ignore the offer (RFC 9110, section 7.8),
    but httptools would leave the body unread, because it expects the other protocol there.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-upgrade:", head) + end + rest


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with these additions.

    - Non-ASCII bytes in a URL, such as Chinese typed into curl, are percent-encoded.
    - An offer to upgrade to another protocol is ignored.
    - The size of the headers is limited, and so is the time until they are complete.
    - A client that does not read its response is disconnected, which cancels its request.
    - A request that cannot be parsed gets a problem document.
    - If the response is complete before the request body, the rest is discarded, up to a limit of size and time.

    Args:
        is_stopping: returns whether the server stops: each response is then the last one of its connection.
    """

    # With uvicorn's, these are more than 30 attributes, and each connection would have a dictionary of its own, 1.2 KB.
    __slots__ = (
        "_client_sent_eof",
        "_connected_at",
        "_deadline",
        "_discard_limit",
        "_disconnect_callback",
        "_half_close_allowed",
        "_header_bytes",
        "_is_stopping",
        "_limit",
        "_response_deadline",
        "_stalled_since",
        "_unread",
        "_watch",
        "is_receiving",
    )

    def __init__(
        self,
        *args: Any,
        limit: ConnectionLimit,
        watch: SlowClientWatch,
        is_stopping: Callable[[], bool] = lambda: False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._limit, self._watch, self._is_stopping = limit, watch, is_stopping
        self.is_receiving = False
        """See ``Connection``."""
        self._header_bytes = 0
        self._deadline = self._response_deadline = math.inf
        self._unread, self._stalled_since = math.inf, 0.0
        self._disconnect_callback: Callable[[], None] | None = None
        self._half_close_allowed = self._client_sent_eof = False
        self._discard_limit: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request; refuse the connection if there are too many."""
        super().connection_made(transport)
        self.server, self.client = _without_mapping(self.server), _without_mapping(self.client)  # type: ignore[assignment]
        limit_send_buffer(transport)
        self._connected_at = self.loop.time()
        self._deadline = self._connected_at + self._watch.read_timeout
        self._watch.start(self.connections)
        if self._limit.refuses(len(self.connections)):
            self._refuse(Overloaded("too many connections are open already", retry_after=1))
            if len(self.connections) > self._limit.max_lingering:
                self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the request that is being answered."""
        if self.timeout_keep_alive_task is not None:  # it would keep a connection that was reset in memory
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)
        if self._disconnect_callback is not None:
            self._disconnect_callback()
        elif self.cycle is None or self.cycle.response_complete:
            # uvicorn's reference cycles of a burst of short connections would pile up for the garbage collector.
            self.cycle = self.scope = self.transport = None  # type: ignore[assignment]

    def on_disconnect(self, callback: Callable[[], None]) -> Callable[[], object]:
        """See ``Connection``; one callback is enough, since requests of a connection are answered one by one."""
        if self.transport.is_closing():
            return self.loop.call_soon(callback).cancel
        self._disconnect_callback = callback
        return self._remove_disconnect_callback

    def _remove_disconnect_callback(self) -> None:
        self._disconnect_callback = None

    def end_after_answer(self) -> None:
        """See ``Connection``."""
        # uvicorn would close at once. Closing a socket with unread data sends a reset, which can destroy the response
        # before the client has read it: so the connection lingers, see on_response_complete.
        self.cycle.keep_alive = True
        self._discard_limit = _MAX_BYTES_DISCARDED

    def allow_half_close(self) -> None:
        """See ``Connection``."""
        self._half_close_allowed = True

    def eof_received(self) -> bool:  # type: ignore[override]
        """Treat the end of the client's data as a disconnect, unless only the response remains to be sent."""
        self._client_sent_eof = True
        return self._half_close_allowed

    def abort(self) -> None:
        """See ``Connection``."""
        self.transport.abort()

    def abort_after(self, seconds: float) -> None:
        """See ``Connection``."""
        self._response_deadline = self.loop.time() + seconds

    def end_if_slow(self, now: float) -> None:
        """End the connection if the client sends its headers, or reads its response, too slowly."""
        if now >= self._response_deadline:
            self.abort()
        elif now >= self._deadline:
            self._end_late()
        if not (self.flow.write_paused or self.transport.is_closing()):
            self._unread = math.inf
            return
        unread = self.transport.get_write_buffer_size()
        if unread < self._unread:
            self._unread, self._stalled_since = unread, now
        elif now - self._stalled_since >= self._watch.write_timeout:
            self.abort()

    def shutdown(self) -> None:
        """Close the connection, unless a request is being answered, is being received, or is about to arrive.

        uvicorn calls this when the server stops. It would reset a new connection whose request it has not read yet.
        """
        if self.cycle is None:
            self._deadline = min(self._deadline, self._connected_at + _FIRST_REQUEST_SECONDS)
        elif not self._is_reading_headers:
            super().shutdown()

    def _end_late(self) -> None:
        if self._is_reading_headers and self._discard_limit is None:
            self._refuse(RequestTimeout("the headers did not arrive in time"))
        else:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse received data; data after the response was completed early is discarded, up to a limit."""
        if self._discard_limit is not None:
            self._discard_limit -= len(data)
            if self._discard_limit < 0:
                self.transport.close()
            return
        if not self.is_receiving:
            if not data.isascii():
                data = encode_url(data)
            if b"pgrade" in data:
                data = hide_upgrade(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin a request, and give the application access to its connection."""
        self.is_receiving = True
        self._header_bytes = 0
        self._deadline = self.loop.time() + self._watch.read_timeout
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the size of a header."""
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > MAX_HEADER_BYTES:
            raise httptools.HttpParserError("headers too large")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request to the application."""
        if self.parser.should_upgrade() and self._has_body():
            raise httptools.HttpParserError("the parser would leave the body unread")
        self._deadline = math.inf
        super().on_headers_complete()
        if self._is_stopping():
            self.cycle.keep_alive = False

    @property
    def _is_reading_headers(self) -> bool:
        return self.is_receiving and (self.cycle is None or self.cycle.response_complete)

    def _has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def on_message_complete(self) -> None:
        """Expect the next request."""
        self.is_receiving = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Watch from now on whether the client reads, because its buffer is full."""
        super().pause_writing()
        self._unread = math.inf

    def on_response_complete(self) -> None:
        """Close the connection if the response was the last one; else wait for the next request."""
        super().on_response_complete()
        self._response_deadline = math.inf
        self._half_close_allowed = False
        if self.transport.is_closing():
            return
        if self._discard_limit is not None:
            self._linger()
        elif self._client_sent_eof:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the parser's exception says more
        """Answer a request that cannot be parsed, and close the connection."""
        running = None if self.cycle is None or self.cycle.response_complete else self.cycle
        if self.pipeline or (running and running.response_started):
            # Responses must be sent in the order of their requests, and earlier ones are not complete.
            self.abort()
            return
        if running:
            running.disconnected = True
            running.message_event.set()
            if self._disconnect_callback is not None:
                self._disconnect_callback()
        self._refuse(self._parse_error(sys.exc_info()[1]))

    def _parse_error(self, fault: BaseException | None) -> ToolchatError:
        if len(getattr(self, "url", b"")) > MAX_URL_BYTES:
            return TooLarge(f"the URL is longer than {MAX_URL_BYTES} bytes")
        if self._header_bytes > MAX_HEADER_BYTES:
            return HeadersTooLarge(f"the headers are longer than {MAX_HEADER_BYTES} bytes")
        if self.parser.should_upgrade():
            return InvalidRequest("Upgrade is not supported; remove the header")
        return unparsable_request(fault)

    def _refuse(self, error: ToolchatError) -> None:
        self.transport.write(error_response(error))
        self._discard_limit = _MAX_BYTES_DISCARDED
        self._linger()

    def _linger(self) -> None:
        """Send EOF, and give the client a moment to read the response before the connection is closed."""
        self.transport.write_eof()
        self._deadline = self.loop.time() + _LINGER_SECONDS


def _without_mapping(address: _Address) -> _Address:
    """An IPv4 address as such: a listener for both protocols writes ``::ffff:192.0.2.1`` (RFC 4291, 2.5.5.2)."""
    return (address[0].removeprefix("::ffff:"), address[1]) if address else None


_log = logging.getLogger("toolchat.request")
_URL_ENDED = "Expected HTTP/"
"""Start of the parser's error for a URL that contains a space."""
_SECURITY_LINES = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in SECURITY_HEADERS)


def error_response(error: ToolchatError) -> bytes:
    """Build a problem response that closes the connection; log it."""
    request_id, retry_after = os.urandom(8).hex(), "retry-after: 1\r\n" if error.retryable else ""
    if not isinstance(error, Overloaded):  # the connection limit logs its refusals once a minute
        fields = {"request_id": request_id, "status": error.status, "outcome": error.code, "detail": error.detail}
        _log.info("request refused", extra=fields)
    body = to_json(problem(error, request_id))
    head = (
        f"HTTP/1.1 {error.status} {error.title}\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nx-request-id: {request_id}\r\ncache-control: no-store\r\n"
        f"{_SECURITY_LINES}{retry_after}connection: close\r\n\r\n"
    )
    return head.encode() + body


def unparsable_request(fault: BaseException | None) -> InvalidRequest:
    """Convert an error of the parser; errors about the URL are replaced, because their text would show the URL."""
    is_url_error = isinstance(getattr(fault, "__context__", None) or fault, httptools.HttpParserInvalidURLError)
    if is_url_error or str(fault).startswith(_URL_ENDED):
        return InvalidRequest("the URL cannot be read; it must be percent-encoded (curl: --get --data-urlencode)")
    is_parser_error = type(fault) in (httptools.HttpParserError, httptools.HttpParserInvalidMethodError)
    return InvalidRequest(f"this is not HTTP/1.1: {fault}" if is_parser_error else "this is not HTTP/1.1")
