"""Outbound HTTP: one aiohttp client for all upstreams, with limits, proxies and errors that name the upstream."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from toolchat.errors import UpstreamTimeout, UpstreamUnavailable
from toolchat.http.breakers import Breakers
from toolchat.http.environment import Proxies, tls_context
from toolchat.http.failures import upstream_error
from toolchat.http.pool import (
    FAILURES,
    MAX_BODY_BYTES,
    Limits,
    Pool,
    read_body,
    release,
)
from toolchat.messages import immutable

if TYPE_CHECKING:
    from types import TracebackType

    import httpx

Params = Mapping[str, str | int | float]
Data = bytes | list[bytes] | tuple[bytes, ...] | Mapping[str, str]

_WARNED_BYTES = 1024 * 1024


@immutable
class Reply:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Response:
    """A response: ``async with`` sends its request and awaits its head, then reads it, and closes it at the end.

    Reading raises ``UpstreamUnavailable`` if the connection is lost, and ``UpstreamInvalid`` if the body is truncated,
    too long, or cannot be decompressed. The messages contain the upstream's name.
    """

    __slots__ = ("_pool", "_response", "_send", "_slot", "_url", "content_type", "headers", "status", "upstream")

    def __init__(
        self, pool: Pool, upstream: str, url: URL, send: Callable[[], Awaitable[aiohttp.ClientResponse]]
    ) -> None:
        self._pool, self.upstream, self._url, self._send = pool, upstream, url, send

    async def __aenter__(self) -> Response:
        self._slot = await self._pool.take_slot(self.upstream, self._url)
        try:
            self._response = await self._send()
        except BaseException:
            release(self._slot)
            raise
        self.status: int = self._response.status
        self.headers: Mapping[str, str] = self._response.headers
        self.content_type: str = self._response.content_type
        """The media type without parameters."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._response.closed:  # as it is when it is complete
            self._response.close()  # and with it the connection
        release(self._slot)

    @property
    def proxy(self) -> str:
        """The way, such as "through proxy.example:3128", if the response may be that of a proxy; empty if not."""
        url, proxies = self._url, self._pool.proxies
        return proxies.route(url) if url.scheme == "http" and proxies.find(url) else ""

    @property
    def at_end(self) -> bool:
        """Whether the whole body has been read."""
        return self._response.content.at_eof()

    async def readany(self) -> bytes:
        """Read what has arrived of the body; empty at its end."""
        try:
            return await self._response.content.readany()
        except FAILURES as error:
            raise upstream_error(error, self.upstream, self._url, self._pool.proxies) from None

    async def read(self, max_bytes: int = MAX_BODY_BYTES) -> bytes:
        """Read the complete body."""
        return await read_body(self.readany, self.upstream, max_bytes)


class OutboundHttp:
    """An HTTP client with one connection pool for all upstreams.

    It uses the proxies and the authorities of the environment (see :class:`Proxies` and :func:`tls_context`), follows
    no redirects, reads no ``.netrc``, and stores no cookies. In another event loop, for example after a fork, its pool
    starts empty.

    Args:
        connect_timeout: seconds for the lookup, the connection and the TLS handshake.
        max_connections: limit of requests at once.
        max_per_host: the same for one host; ``None``: only the total limit applies.
        max_wait: seconds that a request waits for its turn while a limit is reached.
        keepalive: seconds after which an idle connection is closed.
        max_age: seconds after which a connection is not used again, more or less a fifth: so names that moved and new
            servers behind a name are seen.
        public_only: connect to no address that is not of the public internet, such as a private or a loopback one,
            whatever a name leads to; a proxy has to have such an address, too.

    Raises:
        ConfigurationError: a variable of the environment is not valid.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 5,
        max_connections: int = 500,
        max_per_host: int | None = None,
        max_wait: float = 60,
        keepalive: float = 30,
        max_age: float = 300,
        public_only: bool = False,
        breakers: Breakers | None = None,
    ) -> None:
        self.breakers = breakers or Breakers()
        """One for each upstream; :meth:`fetch` uses them, :meth:`request` leaves that to its caller."""
        self.proxies = Proxies()
        self._tls = tls_context()
        self._limits = Limits(connect_timeout, max_connections, max_per_host, max_wait, keepalive, max_age, public_only)
        self._pools: list[Pool] = []
        """One for each event loop. Collecting that of a parent process would close connections in the parent's loop."""
        self._httpx: httpx.AsyncClient | None = None
        self._is_closed = False

    @property
    def connections(self) -> int:
        """The number of open connections, in use or idle."""
        return self._pools[-1].connector.open_connections if self._pools else 0

    @property
    def httpx(self) -> httpx.AsyncClient:
        """An httpx client over the same pool, with the same rules.

        It costs more per call than :meth:`fetch`. Requests raise ``UpstreamUnavailable``, ``UpstreamTimeout`` and
        ``UpstreamInvalid`` instead of httpx's errors; the upstream's name is the extension ``upstream``, or the host.
        """
        if self._httpx is None:
            from toolchat.http.httpx_adapter import open_client

            self._httpx = open_client(self)
        return self._httpx

    def request(
        self,
        method: str,
        url: str,
        *,
        upstream: str,
        headers: Mapping[str, str] | None = None,
        params: Params | None = None,
        data: Data = b"",
        tls: ssl.SSLContext | None = None,
    ) -> Response:
        """Prepare a request; ``async with`` sends it and returns the response as soon as its head arrives.

        Args:
            method: the HTTP method, in capitals.
            url: the absolute URL, without secrets.
            upstream: the name in errors.
            headers: additional headers.
            params: added to the URL's query.
            data: the body, whole or in pieces; a mapping is sent as a form.
            tls: a context with a client's certificate; see :func:`tls_context`.

        Raises:
            UpstreamUnavailable: no connection, or it was lost.
            UpstreamTimeout: connecting took too long.
            UpstreamInvalid: the response is not HTTP, or the request cannot be sent.
        """
        try:
            target = URL(url).update_query(params) if params else URL(url)
        except ValueError as error:
            raise upstream_error(error, upstream) from None
        if isinstance(data, (list, tuple)):
            data = b"".join(data)
        # aiohttp warns of long bytes, not of files.
        body = io.BytesIO(data) if isinstance(data, bytes) and len(data) > _WARNED_BYTES else data or None
        pool = self._pool()
        return Response(pool, upstream, target, partial(pool.send, upstream, method, target, headers or {}, body, tls))

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        upstream: str,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        params: Params | None = None,
        data: Data = b"",
    ) -> Reply:
        """Send a request and read the complete response.

        ``timeout`` is the time for the whole exchange in seconds; the other arguments are those of :meth:`request`.

        Raises:
            UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid: as :meth:`request`; too long a body is invalid.
        """
        exchange = self.request(method, url, upstream=upstream, headers=headers, params=params, data=data)
        with self.breakers.get(upstream) as breaker:
            try:
                async with asyncio.timeout(timeout), exchange as response:
                    reply = Reply(response.status, response.headers, await response.read())
            except TimeoutError:
                raise UpstreamTimeout(f"{upstream} did not answer within {timeout:g} s") from None
            breaker.record_status(reply.status)
        return reply

    @asynccontextmanager
    async def session(
        self, upstream: str, url: str, *middlewares: aiohttp.ClientMiddlewareType
    ) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Open an aiohttp session for one call of a library to the server at ``url``, with the rules of ``request``."""
        pool, target = self._pool(), URL(url)
        slot = await pool.take_slot(upstream, target)
        try:
            async with pool.open_session(upstream, target, *middlewares) as session:
                yield session
        except aiohttp.ContentTypeError:
            raise  # the library's: it read another media type as JSON
        except FAILURES as error:
            raise upstream_error(error, upstream, target, self.proxies) from None
        finally:
            release(slot)

    async def aclose(self) -> None:
        """Close the pool, and with it the requests in flight."""
        self._is_closed = True
        if self._pools:
            await self._pools[-1].aclose()

    def _pool(self) -> Pool:
        if self._is_closed:
            raise UpstreamUnavailable("the service is shutting down")
        loop = asyncio.get_running_loop()
        if not self._pools or self._pools[-1].loop is not loop:
            self._pools.append(Pool(loop, self._limits, self.proxies, self._tls))
        return self._pools[-1]
