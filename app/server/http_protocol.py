"""uvicorn's HTTP/1.1 protocol with limits, deadlines, and problem documents for requests that cannot be parsed."""

import asyncio
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_from_bytes

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.body_limits import CONNECTION
from app.api.guard import MAX_URL_BYTES
from app.server.connection_limit import ConnectionLimit
from app.server.response_writer import error_response, unparsable_request
from app.server.slow_clients import SlowClientWatch, limit_send_buffer
from toolchat.errors import HeadersTooLarge, InvalidRequest, Overloaded, TooLarge, ToolchatError

__all__ = ["ProblemProtocol", "encode_url", "hide_upgrade"]

MAX_HEADER_BYTES = 64 * 1024
_MAX_BYTES_DISCARDED = 64 * 1024
_LINGER_SECONDS = 1

_REQUEST_LINE = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) [^\s]+ HTTP/1\.[01]\r\n")
_URL_SAFE = bytes(range(0x21, 0x7F))
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
    - If the response is complete before the request body, only a little of the rest is read before closing.
    """

    # In the instance's dictionary, these names would exceed what Python shares between instances: 1 KiB per connection.
    __slots__ = (
        "_answered",
        "_between_requests",
        "_client_sent_eof",
        "_deadline",
        "_discard_limit",
        "_disconnect_callback",
        "_half_close_allowed",
        "_header_bytes",
        "_limit",
        "_reader",
        "_response_deadline",
        "read_timeout",
        "write_timeout",
    )

    def __init__(
        self, *args: Any, limit: ConnectionLimit, read_timeout: float = 20, write_timeout: float = 20, **kwargs: Any
    ) -> None:
        """Initialise the protocol with its limits.

        Args:
            *args: arguments of uvicorn's protocol.
            limit: decides which connections are refused.
            read_timeout: seconds from connecting, or from the first byte of a request, to the end of its headers.
            write_timeout: seconds in which the client must read some of its pending data.
            **kwargs: arguments of uvicorn's protocol.
        """
        super().__init__(*args, **kwargs)
        self._limit = limit
        self.read_timeout = read_timeout
        self.write_timeout = write_timeout
        self._between_requests = True
        self._in_head = False
        self._header_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._disconnect_callback: Callable[[], None] | None = None
        self._response_deadline: asyncio.TimerHandle | None = None
        self._answered = False
        self._half_close_allowed = self._client_sent_eof = False
        self._discard_limit: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request; refuse the connection if there are too many."""
        super().connection_made(transport)
        limit_send_buffer(transport)
        self._reader = SlowClientWatch(transport, self.write_timeout)
        self._start_read_deadline()
        if self._limit.refuses(len(self.connections)):
            self._refuse(Overloaded("too many connections are open already", retry_after=1))
            if len(self.connections) > self._limit.max_lingering:
                self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers and the request that is being answered."""
        # uvicorn's keep-alive timer would keep a connection that was reset in memory for seconds.
        self._unset_keepalive_if_required()
        self._cancel_deadline()
        self._reader.stop()
        self._cancel_response_deadline()
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

    @property
    def is_receiving(self) -> bool:
        """See ``Connection``."""
        return not self._between_requests

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
        self._cancel_response_deadline()
        self._answered = False
        self._response_deadline = self.loop.call_later(seconds, self.abort)

    def _cancel_response_deadline(self) -> None:
        if self._response_deadline is not None:
            self._response_deadline.cancel()
            self._response_deadline = None

    def data_received(self, data: bytes) -> None:
        """Parse received data; data after the response was completed early is discarded, up to a limit."""
        if self._discard_limit is not None:
            self._discard_limit -= len(data)
            if self._discard_limit < 0:
                self._close()
            return
        if self._between_requests:
            if not data.isascii():
                data = encode_url(data)
            if b"pgrade" in data:
                data = hide_upgrade(data)
        super().data_received(data)
        # The deadline starts only if the headers are incomplete: nearly always they arrive with the first bytes.
        if self._in_head and self._deadline is None:
            self._start_read_deadline()

    def on_message_begin(self) -> None:
        """Begin a request, and give the application access to its connection."""
        self._between_requests = False
        self._in_head = True
        self._header_bytes = 0
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
        self._in_head = False
        self._cancel_deadline()
        super().on_headers_complete()

    def _has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def _unsupported_upgrade_warning(self) -> None:
        """Do not log uvicorn's warning: an offer to upgrade is harmless, and is answered in HTTP/1.1."""

    def on_message_complete(self) -> None:
        """Expect the next request."""
        self._between_requests = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Watch whether the client reads, because its buffer is full."""
        super().pause_writing()
        self._reader.start()

    def resume_writing(self) -> None:
        """Stop to watch the client; its buffer has been read."""
        super().resume_writing()
        if self._answered:
            self._cancel_response_deadline()
        if not self.transport.is_closing():
            self._reader.stop()

    def on_response_complete(self) -> None:
        """Close the connection if the response was the last one; else wait for the next request."""
        super().on_response_complete()
        self._answered = True
        if not self.flow.write_paused:  # the client has read nearly everything
            self._cancel_response_deadline()
        if self.transport.is_closing():
            self._reader.start()
        elif self._discard_limit is not None:
            self._linger()
        elif self._client_sent_eof:
            self._close()
        self._half_close_allowed = False

    def timeout_keep_alive_handler(self) -> None:
        """Apply the write timeout to the rest of the last response on an idle connection."""
        super().timeout_keep_alive_handler()
        self._reader.start()

    def shutdown(self) -> None:
        """Apply the write timeout to the rest of the last response at shutdown."""
        super().shutdown()
        if self.transport.is_closing():
            self._reader.start()

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

    def _refuse(self, error: ToolchatError) -> None:
        self._cancel_deadline()
        self.transport.write(error_response(error))
        self._discard_limit = _MAX_BYTES_DISCARDED
        self._linger()

    def _parse_error(self, fault: BaseException | None) -> ToolchatError:
        if len(getattr(self, "url", b"")) > MAX_URL_BYTES:
            return TooLarge(f"the URL is longer than {MAX_URL_BYTES} bytes")
        if self._header_bytes > MAX_HEADER_BYTES:
            return HeadersTooLarge(f"the headers are longer than {MAX_HEADER_BYTES} bytes")
        if self.parser.should_upgrade():
            return InvalidRequest("Upgrade is not supported; remove the header")
        return unparsable_request(fault)

    def _start_read_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.read_timeout, self._close)

    def _linger(self) -> None:
        """Send EOF, and give the client a moment to read the response before the connection is closed."""
        self._unset_keepalive_if_required()
        self.transport.write_eof()
        self._deadline = self.loop.call_later(_LINGER_SECONDS, self._close)

    def _close(self) -> None:
        self.transport.close()
        self._reader.start()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
