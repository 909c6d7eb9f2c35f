"""The one outbound HTTP session of the process, and the errors of the outside world in our words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable

if TYPE_CHECKING:
    import aiohttp
    import httpx

__all__ = ["OutboundHttp", "Reply"]

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Longest body that is read from any upstream; WeatherAPI's largest answer is about 0.3 MB."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An upstream's whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OutboundHttp:
    """One pooled aiohttp session that every upstream shares.

    It is opened at the first use, so that a service which calls nobody does not even import aiohttp. Redirects
    are never followed, environment proxies and ``.netrc`` are not read, cookies are not kept.
    """

    def __init__(self, *, connect_timeout: float = 5, max_connections: int = 500) -> None:
        self._connect_timeout = connect_timeout
        self._max_connections = max_connections
        self._session: aiohttp.ClientSession | None = None
        self._httpx: httpx.AsyncClient | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The pooled session; belongs to this object and must not be closed by its users."""
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._max_connections, ttl_dns_cache=300, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
                middlewares=(_guard,),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=2**20,
            )
        return self._session

    @property
    def httpx(self) -> httpx.AsyncClient:
        """An httpx client over the same pool, for tools that prefer its interface."""
        if self._httpx is None:
            import httpx
            from httpx_aiohttp import AiohttpTransport

            self._httpx = httpx.AsyncClient(
                transport=AiohttpTransport(client=lambda: self.session),
                timeout=httpx.Timeout(20, connect=self._connect_timeout),
            )
        return self._httpx

    @asynccontextmanager
    async def request(
        self, method: str, url: str, *, upstream: str, **options: Any
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """Send one request and hand out the response as it begins to arrive.

        ``options`` are aiohttp's (``headers``, ``params``, ``data``). ``upstream`` is the name that errors show.

        Raises:
            UpstreamUnavailable: no connection, or it was lost.
            UpstreamTimeout: connecting took too long.
            UpstreamInvalid: what came is not HTTP.
        """
        try:
            async with self.session.request(method, url, allow_redirects=False, **options) as response:
                yield response
        except UpstreamError:
            raise
        except (OSError, _client_error()) as error:
            raise as_upstream_error(error, upstream) from error

    async def fetch(self, method: str, url: str, *, upstream: str, timeout: float, **options: Any) -> Reply:
        """Send one request and read the whole answer.

        Args:
            method: the HTTP method.
            url: the absolute URL, without secrets.
            upstream: the name that errors show.
            timeout: seconds for the whole exchange.
            **options: aiohttp's ``headers``, ``params``, ``data``.

        Raises:
            UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid: as :meth:`request`; too long a body is invalid.
        """
        try:
            async with asyncio.timeout(timeout), self.request(method, url, upstream=upstream, **options) as response:
                return Reply(response.status, response.headers, await response.read())
        except TimeoutError:
            raise UpstreamTimeout(f"{upstream} did not answer within {timeout:g} s") from None

    async def aclose(self) -> None:
        """Close the pool; cancel what is in flight first."""
        if self._session is not None:
            await self._session.close()


async def read_body(response: aiohttp.ClientResponse, upstream: str, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Read a body up to a limit.

    Raises:
        UpstreamInvalid: it is longer.
    """
    return await _collected(response.content, upstream, max_bytes)


async def _collected(content: aiohttp.StreamReader, upstream: str, max_bytes: int) -> bytes:
    body = bytearray()
    async for piece in content.iter_any():
        body += piece
        if len(body) > max_bytes:
            raise UpstreamInvalid(f"{upstream} sent more than {max_bytes} bytes")
    return bytes(body)


def as_upstream_error(error: BaseException, upstream: str) -> UpstreamError:
    """Put a failure of aiohttp into our words; the text of the original never reaches a client."""
    import aiohttp

    if isinstance(error, UpstreamError):
        return error
    if isinstance(error, TimeoutError):
        return UpstreamTimeout(f"{upstream} could not be reached in time")
    if isinstance(error, OSError | aiohttp.ClientConnectionError) and not isinstance(error, aiohttp.InvalidURL):
        return UpstreamUnavailable(f"{upstream} could not be reached, or the connection was lost")
    if isinstance(error, aiohttp.ClientPayloadError):
        return UpstreamInvalid(f"{upstream} was cut off in the middle of its answer", retryable=True)
    return UpstreamInvalid(f"{upstream} sent something that is not a complete HTTP answer")


async def _guard(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Hold every response of the session to the same rules, whoever sent the request."""
    response = await send(request)
    if 300 <= response.status < 400:
        response.close()
        raise UpstreamInvalid("the upstream answered with a redirect, which is never followed")
    response.content = _BoundedReader(response.content)  # type: ignore[assignment]
    return response


class _BoundedReader:
    """A response's body that is read to its end only while it is short enough, after decompression."""

    def __init__(self, reader: aiohttp.StreamReader) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def __aiter__(self) -> Any:
        return aiter(self._reader)

    async def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes, or all that is left."""
        if size >= 0:
            return await self._reader.read(size)
        return await _collected(self._reader, "the upstream", MAX_BODY_BYTES)


def _client_error() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError
