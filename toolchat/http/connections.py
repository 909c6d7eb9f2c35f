"""One connection to an upstream, and how it is opened."""

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
from toolchat.http.responses import Response

if TYPE_CHECKING:
    import ssl

    from toolchat.http.requests import Origin, Request

__all__ = ["BUSY", "Connection", "Lookup", "connect", "exhaustion_error", "resolve"]


BUSY = math.inf
Lookup = asyncio.Future[Any]


_room = memoryview(bytearray(32 * 1024))
"""What is read at a time, by all connections: a transport hands it over as soon as it has filled some of it.

By itself uvloop would read 250 KiB, all of which may have to wait for a client that reads slowly.
"""


class Connection(asyncio.BufferedProtocol):
    """Carries one exchange at a time; an answer that leaves any doubt where it ends is its last.

    Args:
        when_free: called when it can carry the next exchange.
        when_lost: called when its socket is closed.
    """

    def __init__(self, when_free: Callable[[Connection], None], when_lost: Callable[[Connection], None]) -> None:
        self.is_used = self.is_lost = False
        self.idle_since = BUSY
        """A time of the event loop's clock."""
        self._when_free, self._when_lost = when_free, when_lost
        self._response: Response | None = None
        self._is_held = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass

    def send(self, request: Request, upstream: str) -> Response:
        """Send a request; its response is to be waited for."""
        self.is_used, self.idle_since = True, BUSY
        self._response = Response(self, upstream, is_head=request.method == "HEAD")
        self._transport.write(request.wire)
        return self._response

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        self.is_lost = True
        self._transport.abort()

    def hold(self, held: bool) -> None:
        """Read no more for now, so that the upstream has to wait; or read on."""
        if held != self._is_held:
            self._is_held = held
            (self._transport.pause_reading if held else self._transport.resume_reading)()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - a transport's guess
        """Where to put what arrives."""
        return _room

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on what belongs to an answer; what nobody asked for ends the connection."""
        response = self._response
        if response is not None:
            response.feed(_room[:nbytes])
            if not response.is_settled:
                return
            self._response = None
            self.hold(False)
        # What has not been sent when the answer is there, the upstream did not want.
        if response is None or response.is_last or self._transport.get_write_buffer_size():
            self.drop()
        else:
            self._when_free(self)

    def eof_received(self) -> None:
        """End; what the upstream no longer waits for is not sent."""
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.is_lost = True
        if self._response is not None:
            self._response.end(exc)
        self._when_lost(self)


def resolve(origin: Origin) -> Lookup:
    """Begin to look an upstream's addresses up."""
    loop = asyncio.get_running_loop()
    lookup: Lookup = loop.create_task(loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM))
    lookup.add_done_callback(lambda each: each.cancelled() or each.exception())  # all who wait may have left
    return lookup


async def connect(
    connection: Connection, origin: Origin, addresses: Sequence[AddrInfoType], tls: ssl.SSLContext | None
) -> None:
    """Connect to the first of the addresses that answers; the next is tried meanwhile when one is slow (RFC 8305).

    Raises:
        OSError, RuntimeError: none does, or the upstream cannot show who it is.
    """
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

_SPENT = (errno.EMFILE, errno.ENFILE)
_LOGGED_EVERY = 60.0
_logged_at = -_LOGGED_EVERY


def exhaustion_error(error: BaseException) -> Overloaded | None:
    """What to tell where a connection could not be opened for want of files; the log is told once a minute."""
    # A lookup without a free file fails as a gaierror or as an OSError with whatever number the C library left.
    is_vague = type(error) in (OSError, socket.gaierror)
    if getattr(error, "errno", None) not in _SPENT and not (is_vague and not _can_open()):
        return None
    global _logged_at
    if time.monotonic() - _logged_at >= _LOGGED_EVERY:
        _logged_at = time.monotonic()
        _log.warning("an upstream could not be asked: the system allows no more open files")
    return Overloaded("the service has no open file left for a connection to an upstream", retry_after=1)


def _can_open() -> bool:
    """Whether another file may be opened; looking up a name fails without that, and does not say so."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno not in _SPENT
    return True
