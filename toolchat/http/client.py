"""The outbound HTTP client: one connection pool for all upstreams, with errors that name the upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolchat.errors import UpstreamInvalid, UpstreamTimeout
from toolchat.http.breakers import Breakers
from toolchat.http.pool import Pool
from toolchat.http.requests import Data, Params, Request, build_request
from toolchat.http.response_parser import Response
from toolchat.messages import immutable

if TYPE_CHECKING:
    from types import TracebackType

    import httpx


@immutable
class Reply:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """A request and its response: ``async with`` sends the request, and closes the response at the end."""

    __slots__ = ("_pool", "_request", "_response", "_upstream")

    def __init__(self, pool: Pool, request: Request, upstream: str) -> None:
        self._pool = pool
        self._request = request
        self._upstream = upstream

    async def __aenter__(self) -> Response:
        self._response = await self._pool.exchange(self._request, self._upstream)
        return self._response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()


class OutboundHttp:
    """An HTTP client with one connection pool for all upstreams.

    It follows no redirects, ignores proxies of the environment and ``.netrc``, and stores no cookies.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 5,
        max_connections: int = 500,
        max_per_host: int | None = None,
        max_wait: float = 60,
        keepalive: float = 30,
        breakers: Breakers | None = None,
    ) -> None:
        """Set the limits of the pool; see :class:`Pool`."""
        self.breakers = breakers or Breakers()
        """One for each upstream; :meth:`fetch` uses them, :meth:`request` leaves that to its caller."""
        self._connect_timeout = connect_timeout
        self._pool = Pool(connect_timeout, max_connections, max_per_host, max_wait, keepalive)
        self._httpx: httpx.AsyncClient | None = None

    @property
    def connections(self) -> int:
        """The number of open connections, in use or idle."""
        return self._pool.connections

    @property
    def httpx(self) -> httpx.AsyncClient:
        """An httpx client over the same pool, with the same rules.

        It costs more per call than :meth:`fetch`. Requests raise ``UpstreamUnavailable``, ``UpstreamTimeout`` and
        ``UpstreamInvalid`` instead of httpx's errors; the upstream's name is the extension ``upstream``, or the host.
        """
        if self._httpx is None:
            from toolchat.http.httpx_adapter import open_client

            self._httpx = open_client(self._pool, self._connect_timeout)
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
    ) -> Exchange:
        """Send a request and return the response as soon as its head arrives.

        Args:
            method: the HTTP method, in capitals.
            url: the absolute URL, without secrets.
            upstream: the name in errors.
            headers: additional headers.
            params: added to the URL's query.
            data: the body, whole or in pieces; a mapping is sent as a form.

        Raises:
            UpstreamUnavailable: no connection, or it was lost.
            UpstreamTimeout: connecting took too long.
            UpstreamInvalid: the response is not HTTP, or the request cannot be sent.
        """
        try:
            return Exchange(self._pool, build_request(method, url, headers, params, data), upstream)
        except ValueError as error:
            raise UpstreamInvalid(f"the request to {upstream} cannot be sent: {error}") from error

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

    async def aclose(self) -> None:
        """Close the pool, and with it the requests in flight."""
        await self._pool.aclose()
