"""The connections behind :class:`OutboundHttp`: their limits, their age, and what they send."""

import asyncio
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import aiohttp
from aiohttp.connector import AddrInfoType
from yarl import URL

import toolchat.instruments as instruments
from toolchat.errors import UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.environment import Proxies, is_public
from toolchat.http.failures import NotPublic, upstream_error

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The default limit of a body; WeatherAPI's largest response has about 0.3 MB."""

_HEADERS = {"Accept-Encoding": "gzip, deflate", "User-Agent": "toolchat"}
_MAX_HEADER_BYTES = 64 * 1024
_BUFFER_BYTES = 64 * 1024
"""Reading from a socket pauses at twice as many bytes that nobody has read."""
_SDK_BUFFER_BYTES = 1024 * 1024
"""The same for libraries, which read lines: none may be longer than twice this."""
FAILURES = (aiohttp.ClientError, OSError)
_STALE_SECONDS = 1.0
"""A kept connection that is lost later was lost with the work for the request."""
_is_kept = ContextVar[bool | None]("is_kept", default=False)
"""Whether the task's last connection had been used before; ``None``: and was stale, so the next one has to be new."""


class Limits(NamedTuple):
    """The limits of a pool; see :class:`OutboundHttp`."""

    connect_timeout: float
    max_connections: int
    max_per_host: int | None
    max_wait: float
    keepalive: float
    max_age: float
    public_only: bool = False


Slot = list[asyncio.Semaphore]


def release(slot: Slot) -> None:
    """Give a slot back."""
    for gate in slot:
        gate.release()


class Pool:
    """The connections of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits, proxies: Proxies, tls: ssl.SSLContext) -> None:
        self.loop, self._limits, self.proxies = loop, limits, proxies
        self.connector = _Connector(limits, tls)
        self._session = self._open(read_bufsize=_BUFFER_BYTES)
        self._total = asyncio.Semaphore(limits.max_connections)
        self._hosts = WeakValueDictionary[str, asyncio.Semaphore]()

    async def take_slot(self, upstream: str, url: URL) -> Slot:
        """Wait for the turn of a request: first among those to its host, so that a busy host blocks no other."""
        gates, taken = [self._total], list[asyncio.Semaphore]()
        if self._limits.max_per_host:
            gates.insert(0, self._hosts.setdefault(url.authority, asyncio.Semaphore(self._limits.max_per_host)))
        try:
            for gate in gates:
                if gate.locked():
                    async with asyncio.timeout(self._limits.max_wait):
                        await gate.acquire()
                else:
                    await gate.acquire()  # at once
                taken.append(gate)
        except BaseException as error:
            release(taken)
            if isinstance(error, TimeoutError):
                raise UpstreamTimeout(f"no connection to {upstream} came free in time") from None
            raise
        return taken

    def send(
        self, upstream: str, method: str, url: URL, headers: Mapping[str, str], data: Any, tls: ssl.SSLContext | None
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Send a request, and wait for the head of the response."""
        proxy = self.proxies.find(url)
        if proxy and proxy.request_headers:
            headers = {**headers, **proxy.request_headers}

        def send(traced: Mapping[str, str]) -> Awaitable[aiohttp.ClientResponse]:
            return self._session.request(
                method,
                url,
                headers={**headers, **traced} if traced else headers,
                data=data,
                proxy=proxy and proxy.url,
                proxy_headers=proxy and proxy.connect_headers,
                ssl=tls or True,
                allow_redirects=False,
            )

        return self._observed(upstream, method, url, send)

    def open_session(
        self, upstream: str, url: URL, *middlewares: aiohttp.ClientMiddlewareType
    ) -> aiohttp.ClientSession:
        """Open a session for requests to one server, whose failures are raised as :meth:`send` raises them."""

        async def pass_on(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            def send(traced: Mapping[str, str]) -> Awaitable[aiohttp.ClientResponse]:
                request.headers.update(traced)
                if proxy:
                    request.headers.update(proxy.request_headers)
                    request.update_proxy(proxy.url, None, proxy.connect_headers)
                return handler(request)

            response = await self._observed(upstream, request.method, request.url, send)
            if response.content_type != "text/event-stream":
                await _bound(response, upstream)
            return response

        proxy, every = self.proxies.find(url), (*middlewares, pass_on)
        return self._open(connector_owner=False, middlewares=every, read_bufsize=_SDK_BUFFER_BYTES)

    def _open(self, **options: Any) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            timeout=self.connector.timeout,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
            **options,
        )

    async def _observed(
        self,
        upstream: str,
        method: str,
        url: URL,
        send: Callable[[Mapping[str, str]], Awaitable[aiohttp.ClientResponse]],
    ) -> aiohttp.ClientResponse:
        observer, began = instruments.observer, self.loop.time()
        with observer.observe_upstream_request(upstream, method, url) as observed:
            try:
                response = await send(observed.headers)
                if not 200 <= response.status < 300:
                    _check_status(response, upstream)
            except (*FAILURES, ValueError, UpstreamInvalid) as error:
                failure = upstream_error(error, upstream, url, self.proxies)
                was_at_once = self.loop.time() - began < _STALE_SECONDS
                if _is_kept.get() and was_at_once and isinstance(failure, UpstreamUnavailable):
                    failure.is_stale = True
                    _is_kept.set(None)
                observer.record_upstream_response(upstream, failure.code)
                raise failure from None
            observer.record_upstream_response(upstream, str(response.status))
            observed.record_status(response.status)
            return response

    async def aclose(self) -> None:
        """Close all connections, also those in use."""
        await self._session.close()


def _check_status(response: aiohttp.ClientResponse, upstream: str) -> None:
    status = response.status
    if status == 304 or (status >= 400 and status != 407):
        return
    response.close()
    if status == 407:
        raise aiohttp.ClientHttpProxyError(response.request_info, (), status=status)
    wanted = "a redirect" if status >= 300 else f"status {status}"
    raise UpstreamInvalid(f"{upstream} answered with {wanted}, which is never followed")


def _public_socket(address: AddrInfoType) -> socket.socket:
    """A socket for the very address that it then connects to, whatever its name led to before."""
    family, kind, protocol, _, place = address
    if not is_public(str(place[0])):
        raise NotPublic
    return socket.socket(family, kind, protocol)


class _Connector(aiohttp.TCPConnector):
    """Limits the time to connect, and closes a connection that must not be used again: too old, or out of step."""

    def __init__(self, limits: Limits, tls: ssl.SSLContext) -> None:
        connect = _public_socket if limits.public_only else None
        # The slots are the limit.
        super().__init__(limit=0, ssl=tls, keepalive_timeout=limits.keepalive, socket_factory=connect)
        self.timeout = aiohttp.ClientTimeout(connect=limits.connect_timeout)
        self._max_age = limits.max_age
        self._expiry = WeakKeyDictionary[Any, float]()

    @property
    def open_connections(self) -> int:
        return sum(each.is_connected() for each in self._expiry)

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        limit = timeout if timeout.connect else self.timeout  # a library sends its own
        may_be_kept = _is_kept.get() is not None
        _is_kept.set(False)
        while True:
            connection = await super().connect(req, traces, limit)
            protocol, now = connection.protocol, self._loop.time()
            expiry = self._expiry.get(protocol)
            if expiry is None:
                self._expiry[protocol] = now + self._max_age * random.uniform(0.8, 1.2)  # noqa: S311
                instruments.observer.record_connection_opened()
                return connection
            # One that received bytes which no request asked for "should close", too: they are no answer to the next.
            if may_be_kept and now < expiry and protocol is not None and not protocol.should_close:
                _is_kept.set(True)
                return connection
            connection.close()


async def read_body(readany: Callable[[], Awaitable[bytes]], upstream: str, max_bytes: int) -> bytes:
    """Read a complete body, piece by piece."""
    pieces: list[bytes] = []
    size = 0
    while piece := await readany():
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise UpstreamInvalid(f"{upstream} sent more than {max_bytes} bytes")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _bound(response: aiohttp.ClientResponse, upstream: str) -> None:
    """Read a body up to the limit, and put it back for a library that reads it without one."""
    try:
        body = await read_body(response.content.readany, upstream, MAX_BODY_BYTES)
    except BaseException:
        response.close()
        raise
    loop = asyncio.get_running_loop()
    response.content = aiohttp.StreamReader(aiohttp.base_protocol.BaseProtocol(loop), len(body), loop=loop)
    response.content.feed_data(body)
    response.content.feed_eof()
