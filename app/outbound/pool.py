"""The connections that wait for the next request, and the limits of how many there are."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, deque
from functools import cached_property

from app.errors import UpstreamError, UpstreamTimeout, UpstreamUnavailable
from app.outbound.addresses import Addresses
from app.outbound.connections import Connection, opened
from app.outbound.requests import Origin, Request
from app.outbound.responses import Response

__all__ = ["Pool"]

_KEEPALIVE = 30.0
_Turn = asyncio.Future[Connection | None]


class Pool:
    """Sends requests over connections that it keeps.

    It belongs to the event loop that uses it: in another one, as after a fork, it begins anew.

    Args:
        connect_timeout: seconds to look the upstream up, to connect, and to agree on encryption.
        max_connections: open at once, to all upstreams together.
        max_per_origin: open at once to one upstream.
        max_wait: seconds that a request waits for its connection when there are as many as there may be.
    """

    def __init__(
        self, *, connect_timeout: float, max_connections: int, max_per_origin: int | None = None, max_wait: float = 60
    ) -> None:
        self._connect_timeout, self._max_wait = connect_timeout, max_wait
        self._max_connections, self._max_per_origin = max_connections, max_per_origin or max_connections
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def exchange(self, request: Request, upstream: str) -> Response:
        """Send a request and wait for the head of its answer.

        A connection may have been closed by the upstream just as it was used again. If not a byte of an answer came,
        the request is sent once more where its method says that it can be.

        Raises:
            UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid: naming the upstream as given.
        """
        for is_last in (False, True):
            connection = await self._connection(request.origin, upstream)
            may_be_stale = connection.is_used
            response = connection.send(request, upstream)
            try:
                await response.head()
            except BaseException as error:
                response.close()
                is_stale = may_be_stale and not response.has_begun and isinstance(error, UpstreamUnavailable)
                if is_last or not is_stale or not request.is_repeatable:
                    raise
            else:
                return response
        raise AssertionError("the last attempt ends with an answer or an error")

    async def aclose(self) -> None:
        """Close every connection, also those in use, and wait until their sockets are closed."""
        self._is_closed = True
        if self._loop is None:
            return
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._connections:
            connection.drop()
        while self._connections:
            await asyncio.sleep(0)

    async def _connection(self, origin: Origin, upstream: str) -> Connection:
        if self._is_closed:
            raise UpstreamUnavailable("the service is shutting down")
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        may_go, connection = self._claim(origin)
        if not may_go:
            connection = await self._turn(origin, upstream)
        return connection or await self._opened(origin, upstream)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._addresses = Addresses()
        self._connections = set[Connection]()
        self._places = Counter[Origin]()  # connections that are open or being opened
        self._idle: dict[Origin, list[Connection]] = {}  # the longest idle first
        self._waiting: deque[tuple[Origin, _Turn]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None

    def _claim(self, origin: Origin) -> tuple[bool, Connection | None]:
        """Whether a request may go now, and over which connection; without one it has a place to open its own."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if not connection.is_lost:
                return True, connection
        if self._places[origin] >= self._max_per_origin:
            return False, None
        if self._places.total() >= self._max_connections:
            self._drop_oldest()
            return False, None
        self._places[origin] += 1
        return True, None

    def _drop_oldest(self) -> None:
        """Close what has been idle longest, whoever it leads to, so that its place comes free."""
        oldest = min((each for each in self._idle.values() if each), key=lambda each: each[0].idle_since, default=None)
        if oldest is not None:
            oldest.pop(0).drop()

    async def _turn(self, origin: Origin, upstream: str) -> Connection | None:
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.append((origin, turn))
        try:
            async with asyncio.timeout(self._max_wait):
                return await turn
        except BaseException as error:
            if turn.cancelled():
                self._waiting.remove((origin, turn))
            elif connection := turn.result():  # it came free just when nobody wanted it any more
                self._free(connection)
            else:
                self._leave(origin)
            if isinstance(error, TimeoutError):
                raise UpstreamTimeout(f"no connection to {upstream} came free in time") from None
            raise

    async def _opened(self, origin: Origin, upstream: str) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                addresses = await self._addresses.of(origin.host, origin.port)
                tls = self._tls if origin.tls else None
                connection = await opened(origin, addresses, tls, self._free, self._lost)
            if connection.is_lost:
                raise ConnectionResetError
        except BaseException as error:
            self._addresses.forget(origin.host, origin.port)
            self._leave(origin)
            if isinstance(error, OSError | RuntimeError):  # uvloop raises both
                raise _in_words(error, upstream) from error
            raise
        self._connections.add(connection)
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _free(self, connection: Connection) -> None:
        """Hand a connection to who waits for it, or keep it."""
        if self._is_closed:
            connection.drop()
        elif not self._granted(connection.origin, connection):
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(connection.origin, []).append(connection)
            if self._sweeper is None:
                self._sweep()

    def _lost(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._leave(connection.origin)

    def _leave(self, origin: Origin) -> None:
        """Hand a place on, or give it up."""
        if not self._granted(origin, None):
            self._places[origin] -= 1
            self._places += Counter()  # forgets the origins that have none

    def _granted(self, origin: Origin, connection: Connection | None) -> bool:
        """Give a place, and its connection if it is open, to who has waited longest and may have it."""
        for waiting, turn in self._waiting:
            if turn.done() or (waiting != origin and self._places[waiting] >= self._max_per_origin):
                continue
            if waiting == origin or connection is None:
                self._waiting.remove((waiting, turn))
                self._places[origin] -= 1
                self._places[waiting] += 1
                turn.set_result(connection)
            else:
                connection.drop()  # its place follows
            return True
        return False

    def _sweep(self) -> None:
        """Close what has not been used for long, now and then while there is anything."""
        loop = asyncio.get_running_loop()
        for origin, connections in tuple(self._idle.items()):
            for connection in connections:
                if loop.time() - connection.idle_since >= _KEEPALIVE:
                    connection.drop()
            self._idle[origin] = [each for each in connections if not each.is_lost]
            if not self._idle[origin]:
                del self._idle[origin]
        self._sweeper = loop.call_later(_KEEPALIVE / 3, self._sweep) if self._idle else None


def _in_words(error: Exception, upstream: str) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return UpstreamTimeout(f"{upstream} could not be reached in time")
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.partition(",")[0]  # the rest names the host
        return UpstreamUnavailable(f"{upstream} showed a certificate that is not trusted: {reason}", retryable=False)
    return UpstreamUnavailable(f"{upstream} could not be reached, or the connection was lost")
