"""HTTP as uvicorn and httptools read it, with what they leave open: limits, deadlines, and answers to bad bytes."""

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
from app.server import response_writer  # noqa: F401 - takes its place in uvicorn
from app.server.connection_limit import ConnectionLimit
from app.server.raw_responses import bare_answer, unreadable
from app.server.slow_clients import SlowClientWatch, keep_little_waiting
from toolchat.errors import HeadersTooLarge, InvalidRequest, Overloaded, TooLarge, ToolchatError

__all__ = ["ProblemProtocol", "with_encoded_url", "without_upgrade"]


_REQUEST_LINE = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) [^\s]+ HTTP/1\.[01]\r\n")
_SAFE = bytes(range(0x21, 0x7F))
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


def with_encoded_url(data: bytes) -> bytes:
    """The beginning of a request with its URL percent-encoded, as a browser would have done; anything else as it is."""
    line = _REQUEST_LINE.match(data)
    if line is None or line[0].isascii():
        return data
    method, url, version = line[0].split(b" ")
    return b" ".join((method, quote_from_bytes(url, safe=_SAFE).encode(), version)) + data[line.end() :]


def without_upgrade(data: bytes) -> bytes:
    """The beginning of a request with no ``Upgrade`` in its head.

    Java's own client offers HTTP/2 so with every request. A server may go on as if nothing had been said (RFC 9110,
    section 7.8), but httptools would take the body for something in the other protocol, and leave it unread.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-upgrade:", head) + end + rest


MAX_HEADER_BYTES = 64 * 1024
_MOST_UNREAD_BYTES = 64 * 1024
_MOST_UNREAD_SECONDS = 1


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol for one connection.

    - Chinese typed into a URL arrives as bare UTF-8; it is percent-encoded, as a browser would have done.
    - Nobody is taken at the word that another protocol would be welcome, too.
    - Headers have a bound in size, and a request a time in which it must have arrived.
    - A client that does not read what it is sent is hung up on; a question that waits for it ends as if it had left.
    - What cannot be parsed is answered with a problem document.
    - After an answer to a request whose body is still on its way little of it is read, and the connection ends.
    """

    # With these in its dictionary, it would have more than Python shares the names of: 1 KiB more for each connection.
    __slots__ = (
        "_answer_deadline",
        "_answered",
        "_between_requests",
        "_deadline",
        "_eof",
        "_header_bytes",
        "_left_to_read",
        "_limit",
        "_on_lost",
        "_outlives_eof",
        "_reader",
        "read_timeout",
        "write_timeout",
    )

    def __init__(
        self, *args: Any, limit: ConnectionLimit, read_timeout: float = 20, write_timeout: float = 20, **kwargs: Any
    ) -> None:
        """Take what uvicorn gives, and two limits.

        Args:
            *args: uvicorn's own.
            limit: says which connection is one too many.
            read_timeout: seconds from connecting, or from a request's first byte, to the end of its headers.
            write_timeout: seconds in which a client must have read something of what waits to be sent.
            **kwargs: uvicorn's own.
        """
        super().__init__(*args, **kwargs)
        self._limit = limit
        self.read_timeout = read_timeout
        self.write_timeout = write_timeout
        self._between_requests = True
        self._in_head = False
        self._header_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._on_lost: Callable[[], None] | None = None
        self._answer_deadline: asyncio.TimerHandle | None = None
        self._answered = False
        self._outlives_eof = self._eof = False
        self._left_to_read: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        keep_little_waiting(transport)
        self._reader = SlowClientWatch(transport, self.write_timeout)
        self._wait_for_request()
        if self._limit.refuses(len(self.connections)):
            self._refuse(Overloaded("too many connections are open already", retry_after=1))
            if len(self.connections) > self._limit.at_once:
                self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting; uvicorn's own timer would keep a connection that was reset in memory for some seconds."""
        self._unset_keepalive_if_required()
        self._stop_waiting()
        self._reader.stop()
        self._forget_answer_deadline()
        super().connection_lost(exc)
        if self._on_lost is not None:
            self._on_lost()
        elif self.cycle is None or self.cycle.response_complete:
            # uvicorn leaves circles of references, which a burst of short connections would pile up for the collector.
            self.cycle = self.scope = self.transport = None  # type: ignore[assignment]

    def on_disconnect(self, callback: Callable[[], None]) -> Callable[[], object]:
        """See ``Connection``; one request of a connection is answered at a time."""
        if self.transport.is_closing():
            return self.loop.call_soon(callback).cancel
        self._on_lost = callback
        return self._forget_callback

    def _forget_callback(self) -> None:
        self._on_lost = None

    @property
    def is_receiving(self) -> bool:
        """See ``Connection``."""
        return not self._between_requests

    def end_after_answer(self) -> None:
        """See ``Connection``."""
        # uvicorn would close at once; the system resets a connection of which something is unread: the answer is lost.
        self.cycle.keep_alive = True
        self._left_to_read = _MOST_UNREAD_BYTES

    def allow_half_close(self) -> None:
        """See ``Connection``."""
        self._outlives_eof = True

    def eof_received(self) -> bool:  # type: ignore[override]
        """Take it for the client's leaving, unless only the rest of its answer is still to be sent."""
        self._eof = True
        return self._outlives_eof

    def abort(self) -> None:
        """See ``Connection``."""
        self.transport.abort()

    def abort_after(self, seconds: float) -> None:
        """See ``Connection``."""
        self._forget_answer_deadline()
        self._answered = False
        self._answer_deadline = self.loop.call_later(seconds, self.abort)

    def _forget_answer_deadline(self) -> None:
        if self._answer_deadline is not None:
            self._answer_deadline.cancel()
            self._answer_deadline = None

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless it is the rest of a request that has been answered."""
        if self._left_to_read is not None:
            self._left_to_read -= len(data)
            if self._left_to_read < 0:
                self._close()
            return
        if self._between_requests:
            if not data.isascii():
                data = with_encoded_url(data)
            if b"pgrade" in data:
                data = without_upgrade(data)
        super().data_received(data)
        if self._in_head and self._deadline is None:
            self._wait_for_request()

    def on_message_begin(self) -> None:
        """Begin a request; its headers are waited for unless they come with its first bytes, as nearly always."""
        self._between_requests = False
        self._in_head = True
        self._header_bytes = 0
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > MAX_HEADER_BYTES:
            raise httptools.HttpParserError("headers too large")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request on."""
        if self.parser.should_upgrade() and self._has_body():
            raise httptools.HttpParserError("the parser would leave the body unread")
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def _has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def _unsupported_upgrade_warning(self) -> None:
        """Keep uvicorn from a line in the log for what a client asks for; the answer comes in this protocol."""

    def on_message_complete(self) -> None:
        """Expect the next request."""
        self._between_requests = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Watch whether the client reads, now that much waits for it."""
        super().pause_writing()
        self._reader.start()

    def resume_writing(self) -> None:
        """Stop watching."""
        super().resume_writing()
        if self._answered:
            self._forget_answer_deadline()
        if not self.transport.is_closing():
            self._reader.stop()

    def on_response_complete(self) -> None:
        """Watch whether the client reads the rest, if the connection ends with it."""
        super().on_response_complete()
        self._answered = True
        if not self.flow.write_paused:  # little or nothing is left
            self._forget_answer_deadline()
        if self.transport.is_closing():
            self._reader.start()
        elif self._left_to_read is not None:
            self._linger()
        elif self._eof:
            self._close()
        self._outlives_eof = False

    def timeout_keep_alive_handler(self) -> None:
        """Likewise for the rest of the last answer when no further request comes."""
        super().timeout_keep_alive_handler()
        self._reader.start()

    def shutdown(self) -> None:
        """Likewise when the service ends."""
        super().shutdown()
        if self.transport.is_closing():
            self._reader.start()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the error says more
        """Answer bytes that cannot be served, and hang up."""
        running = None if self.cycle is None or self.cycle.response_complete else self.cycle
        if self.pipeline or (running and running.response_started):
            self.abort()  # there is no place for it among the answers that are on their way
            return
        if running:
            running.disconnected = True
            running.message_event.set()
            if self._on_lost is not None:
                self._on_lost()
        self._refuse(self._refusal(sys.exc_info()[1]))

    def _refuse(self, error: ToolchatError) -> None:
        self._stop_waiting()
        self.transport.write(bare_answer(error))
        self._left_to_read = _MOST_UNREAD_BYTES
        self._linger()

    def _refusal(self, fault: BaseException | None) -> ToolchatError:
        if len(getattr(self, "url", b"")) > MAX_URL_BYTES:
            return TooLarge(f"the URL is longer than {MAX_URL_BYTES} bytes")
        if self._header_bytes > MAX_HEADER_BYTES:
            return HeadersTooLarge(f"the headers are longer than {MAX_HEADER_BYTES} bytes")
        if self.parser.should_upgrade():
            return InvalidRequest("no other protocol is spoken here; leave Upgrade out")
        return unreadable(fault)

    def _wait_for_request(self) -> None:
        self._deadline = self.loop.call_later(self.read_timeout, self._close)

    def _linger(self) -> None:
        """Say that nothing more comes, and give the client a moment to read that before the connection ends."""
        self._unset_keepalive_if_required()
        self.transport.write_eof()
        self._deadline = self.loop.call_later(_MOST_UNREAD_SECONDS, self._close)

    def _close(self) -> None:
        self.transport.close()
        self._reader.start()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
