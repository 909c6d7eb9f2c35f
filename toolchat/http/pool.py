"""The connection pool: idle connections, limits in total and per host, and a fair wait for a free slot."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from functools import cached_property
from operator import attrgetter
from weakref import WeakValueDictionary

import toolchat.instruments as instruments
from toolchat.errors import UpstreamError, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.connections import BUSY, Connection, Lookup, connect, exhaustion_error, resolve
from toolchat.http.requests import REPEATABLE, Origin, Request
from toolchat.http.response_parser import Response


class _Host:
    """One upstream host; the pool forgets it when no connection and no request refers to it."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.users = 0
        self.idle: list[Connection] = []
        self.lookup: Lookup | None = None
        """The lookup of its addresses, shared by all requests that connect at the same time."""

    def take(self) -> Connection | None:
        """Take the idle connection that was used last; ``None`` if there is none."""
        while self.idle:
            if not (connection := self.idle.pop()).is_lost:
                return connection
        return None

    def keep(self, connection: Connection) -> None:
        """Add an idle connection."""
        connection.idle_since = asyncio.get_running_loop().time()
        self.idle.append(connection)


class Pool:
    """A pool of connections to all upstreams.

    It belongs to the event loop that uses it: in another loop, for example after a fork, it starts empty.

    Args:
        connect_timeout: seconds for the lookup, the connection and the TLS handshake.
        max_per_host: limit for one host; ``None``: only the total limit applies.
        max_wait: seconds that a request waits for a slot while the limit is reached.
        keepalive: seconds after which an idle connection is closed.
    """

    def __init__(
        self, connect_timeout: float, max_connections: int, max_per_host: int | None, max_wait: float, keepalive: float
    ) -> None:
        self._connect_timeout, self._max_wait, self._keepalive = connect_timeout, max_wait, keepalive
        self._max_connections, self._max_per_host = max_connections, max_per_host or max_connections
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def exchange(self, request: Request, upstream: str) -> Response:
        """Send a request and wait for the head of the response, which the caller must close."""
        observer = instruments.observer
        with observer.observe_upstream_request(upstream, request) as observed:
            if lines := observed.header_lines:
                request = request.with_lines(lines)
            try:
                response = await self._exchange(request, upstream)
            except UpstreamError as error:
                observer.record_upstream_response(upstream, error.code)
                raise
            observer.record_upstream_response(upstream, str(response.status))
            observed.record_status(response.status)
            return response

    @property
    def connections(self) -> int:
        """The number of open connections, in use or idle."""
        return len(self._connections) if self._loop else 0

    async def _exchange(self, request: Request, upstream: str) -> Response:
        if self._is_closed:
            raise UpstreamUnavailable("the service is shutting down")
        host = self._host(request.origin)
        if self._has_slot(host):
            self._acquire(host)
        else:
            await self._wait_for_slot(host, upstream)
        try:
            response = await self._send(host, request, upstream)
        except BaseException:
            self._release(host)
            raise
        response.when_closed = lambda: self._release(host)
        return response

    async def aclose(self) -> None:
        """Close all connections, also those in use, and wait until their sockets are closed."""
        self._is_closed = True
        if self._loop is None:
            return
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._connections:
            connection.drop()
        while self._connections:  # noqa: ASYNC110 - the loop closes each socket in one of its next steps
            await asyncio.sleep(0)

    def _host(self, origin: Origin) -> _Host:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._hosts = WeakValueDictionary[Origin, _Host]()
            self._users = 0
            self._waiting: deque[tuple[_Host, asyncio.Future[None]]] = deque()
            self._connections = set[Connection]()
            self._opening = 0
            self._sweeper: asyncio.TimerHandle | None = None
        host = self._hosts.get(origin)
        if host is None:
            self._hosts[origin] = host = _Host(origin)
        return host

    def _has_slot(self, host: _Host) -> bool:
        return self._users < self._max_connections and host.users < self._max_per_host

    def _acquire(self, host: _Host) -> None:
        self._users += 1
        host.users += 1

    def _release(self, host: _Host) -> None:
        """Release a slot, and pass it to the request that has waited longest and whose host is below its limit."""
        self._users -= 1
        host.users -= 1
        for entry in self._waiting:
            waiting, turn = entry
            if not turn.done() and self._has_slot(waiting):
                self._waiting.remove(entry)
                self._acquire(waiting)
                turn.set_result(None)
                return

    async def _wait_for_slot(self, host: _Host, upstream: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((host, turn))
        try:
            async with asyncio.timeout(self._max_wait):
                await turn
        except BaseException as error:
            if turn.cancelled():
                self._waiting.remove((host, turn))
            else:
                self._release(host)  # the slot was granted in the same moment, so it has to be passed on
            if isinstance(error, TimeoutError):
                raise UpstreamTimeout(f"no connection to {upstream} came free in time") from None
            raise

    async def _send(self, host: _Host, request: Request, upstream: str, *, fresh: bool = False) -> Response:
        connection = (None if fresh else host.take()) or await self._open(host, upstream)
        was_used = connection.is_used
        response = connection.send(request, upstream)
        try:
            await response.head()
        except BaseException as error:
            response.close()
            # The upstream may close an idle connection just as it is used again. Then no byte comes back, and an
            # idempotent request is sent once more, over a new connection.
            is_stale = was_used and not response.has_begun and isinstance(error, UpstreamUnavailable)
            if not is_stale or request.method not in REPEATABLE:
                raise
            return await self._send(host, request, upstream, fresh=True)
        return response

    async def _open(self, host: _Host, upstream: str) -> Connection:
        connection = Connection(host.keep, self._connections.discard)
        if len(self._connections) + self._opening >= self._max_connections:
            self._drop_oldest()
        self._opening += 1
        try:
            async with asyncio.timeout(self._connect_timeout):
                host.lookup = host.lookup or resolve(host.origin)
                addresses = await asyncio.shield(host.lookup)
                await connect(connection, host.origin, addresses, self._tls if host.origin.tls else None)
            if connection.is_lost or self._is_closed:
                connection.drop()
                raise ConnectionResetError
        except (OSError, RuntimeError) as error:  # uvloop raises both
            host.lookup = None
            raise exhaustion_error(error) or _to_upstream_error(error, upstream) from error
        finally:
            self._opening -= 1
        self._connections.add(connection)
        instruments.observer.record_connection_opened()
        if self._sweeper is None:
            self._sweep()
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _drop_oldest(self) -> None:
        """Close the connection that has been idle longest, to stay within the limit: idle ones count, too."""
        idle = [each for each in self._connections if each.idle_since < BUSY and not each.is_lost]
        if idle:
            min(idle, key=attrgetter("idle_since")).drop()

    def _sweep(self) -> None:
        """Close expired idle connections and forget addresses, which may have changed; repeats itself by a timer."""
        loop = asyncio.get_running_loop()
        for connection in tuple(self._connections):
            if loop.time() - connection.idle_since >= self._keepalive:
                connection.drop()
        for host in tuple(self._hosts.values()):
            host.lookup = None
        self._sweeper = loop.call_later(self._keepalive / 3, self._sweep) if self._connections else None


def _to_upstream_error(error: Exception, upstream: str) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return UpstreamTimeout(f"{upstream} could not be reached in time")
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.partition(",")[0]  # the rest names the host
        return UpstreamUnavailable(f"{upstream} showed a certificate that is not trusted: {reason}", retryable=False)
    return UpstreamUnavailable(f"{upstream} could not be reached, or the connection was lost")
