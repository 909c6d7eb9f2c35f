"""A connection to an upstream: name lookup, connecting, sending, and the handling of file-descriptor exhaustion."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from aiohappyeyeballs import AddrInfoType, start_connection

from toolchat.errors import Overloaded
from toolchat.http.response_parser import Response

if TYPE_CHECKING:
    import ssl

    from toolchat.http.requests import Origin, Request

BUSY = math.inf
Lookup = asyncio.Future[Any]


_room = memoryview(bytearray(32 * 1024))
"""The read buffer of all connections: a transport passes it on in the same step in which it fills some of it.

Without it uvloop reads 250 KiB at a time, all of which has to be stored while a slow client reads the answer.
"""


class Connection(asyncio.BufferedProtocol):
    """A connection that carries one exchange at a time. It is closed if the end of a response is in any doubt.

    Args:
        when_free: called when the connection can carry the next exchange.
        when_lost: called when the socket is closed.
    """

    def __init__(self, when_free: Callable[[Connection], None], when_lost: Callable[[Connection], None]) -> None:
        self.is_used = self.is_lost = False
        self.idle_since = BUSY
        """When the connection became idle, by the event loop's clock."""
        self._when_free, self._when_lost = when_free, when_lost
        self._response: Response | None = None
        self.is_held = False
        """Whether reading is paused."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are not a subclass

    def send(self, request: Request, upstream: str) -> Response:
        """Send a request; await ``head()`` of the returned response."""
        self.is_used, self.idle_since = True, BUSY
        self._response = Response(self, upstream, is_head=request.method == "HEAD")
        self._transport.write(request.wire)
        return self._response

    def drop(self) -> None:
        """Close at once, also during an exchange."""
        self.is_lost = True
        self._transport.abort()

    def hold(self, held: bool) -> None:
        """Pause or resume reading: a pause makes the upstream wait, by TCP flow control."""
        if held != self.is_held:
            self.is_held = held
            (self._transport.pause_reading if held else self._transport.resume_reading)()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return _room

    def buffer_updated(self, nbytes: int) -> None:
        """Pass bytes to the response; bytes without a request close the connection."""
        response = self._response
        if response is not None:
            response.feed(_room[:nbytes])
            if not response.is_settled:
                return
            self._response = None
            self.hold(False)
        # With request bytes still unsent, the upstream answered before it had read the whole body, and may take the
        # rest for the next request.
        if response is None or response.is_last or self._transport.get_write_buffer_size():
            self.drop()
        else:
            self._when_free(self)

    def eof_received(self) -> None:
        """Close: the upstream reads no more, so unsent bytes are dropped."""
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._response is not None:
            self._response.end(exc)
        self._when_lost(self)


def resolve(origin: Origin) -> Lookup:
    """Start the lookup of an upstream's addresses."""
    loop = asyncio.get_running_loop()
    lookup: Lookup = loop.create_task(loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM))
    # Retrieve the error even if every caller was cancelled, or asyncio logs that it was never retrieved.
    lookup.add_done_callback(lambda each: each.cancelled() or each.exception())
    return lookup


async def connect(
    connection: Connection, origin: Origin, addresses: Sequence[AddrInfoType], tls: ssl.SSLContext | None
) -> None:
    """Connect to the first address that answers; a slow one does not hold up the next (Happy Eyeballs, RFC 8305)."""
    loop = asyncio.get_running_loop()
    found = await start_connection(addresses, happy_eyeballs_delay=0.25, loop=loop)
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = origin.host if tls else None
        await loop.create_connection(lambda: connection, sock=found, ssl=tls, server_hostname=name)
    except BaseException:
        found.close()
        raise


_log = logging.getLogger(__name__)

_NO_FILES = (errno.EMFILE, errno.ENFILE)
_LOGGED_EVERY = 60.0
_logged_at = -_LOGGED_EVERY


def exhaustion_error(error: BaseException) -> Overloaded | None:
    """Convert the error of a connection that found no free file descriptor; logged once a minute."""
    # A lookup without a free file fails as a gaierror or as an OSError with whatever number the C library left.
    is_vague = type(error) in (OSError, socket.gaierror)
    if getattr(error, "errno", None) not in _NO_FILES and not (is_vague and not _has_free_file()):
        return None
    global _logged_at
    if time.monotonic() - _logged_at >= _LOGGED_EVERY:
        _logged_at = time.monotonic()
        _log.warning("no connection to an upstream could be opened: the process has no free file descriptor")
    return Overloaded("the service has no open file left for a connection to an upstream", retry_after=1)


def _has_free_file() -> bool:
    """Whether the process may open another file: a lookup fails without one, but with a vague error."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno not in _NO_FILES
    return True
