"""The one outbound HTTP session of the process, and the errors of the outside world in our words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from app.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable

if TYPE_CHECKING:
    from types import TracebackType

    import aiohttp
    import httpx

__all__ = ["Exchange", "OutboundHttp", "Reply", "as_upstream_error", "read_body"]

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Longest body that is read from any upstream; WeatherAPI's largest answer is about 0.3 MB."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An upstream's whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """A request that is sent by ``async with``, which gives its response; what aiohttp raises is put into our words."""

    __slots__ = ("_exchange", "_upstream")

    def __init__(self, exchange: AbstractAsyncContextManager[aiohttp.ClientResponse], upstream: str) -> None:
        self._exchange = exchange
        self._upstream = upstream

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            return await self._exchange.__aenter__()
        except (OSError, _client_error()) as error:
            raise as_upstream_error(error, self._upstream) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exchange.__aexit__(kind, error, trace)
        if isinstance(error, (OSError, _client_error())):
            raise as_upstream_error(error, self._upstream) from error


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
                response_class=_guarded_response(),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=2**20,
            )
        return self._session

    @property
    def httpx(self) -> httpx.AsyncClient:
        """An httpx client over the same pool and under the same rules, which most authors of tools know.

        It costs more per call than :meth:`fetch`. Requests raise ``UpstreamUnavailable``, ``UpstreamTimeout`` and
        ``UpstreamInvalid`` instead of httpx's errors, naming the upstream by the extension ``upstream`` or its host.
        """
        if self._httpx is None:
            from http.cookiejar import DefaultCookiePolicy

            import httpx

            from app.pooled_httpx import PooledTransport

            self._httpx = httpx.AsyncClient(
                transport=PooledTransport(lambda: self.session, MAX_BODY_BYTES, as_upstream_error),
                timeout=httpx.Timeout(20, connect=self._connect_timeout),
                trust_env=False,
            )
            self._httpx.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return self._httpx

    def request(self, method: str, url: str, *, upstream: str, **options: Any) -> Exchange:
        """Send one request and hand out the response as it begins to arrive.

        ``options`` are aiohttp's (``headers``, ``params``, ``data``). ``upstream`` is the name that errors show.

        Raises:
            UpstreamUnavailable: no connection, or it was lost.
            UpstreamTimeout: connecting took too long.
            UpstreamInvalid: what came is not HTTP.
        """
        return Exchange(self.session.request(method, url, allow_redirects=False, **options), upstream)

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
    pieces: list[bytes] = []
    size = 0
    while piece := await content.readany():
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise UpstreamInvalid(f"{upstream} sent more than {max_bytes} bytes")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


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


@cache
def _guarded_response() -> type[aiohttp.ClientResponse]:
    """The class of every response of the session, which holds it to the same rules whoever sent the request.

    A class costs nothing per request; aiohttp's own middleware costs 20 µs. aiohttp discourages deriving from its
    classes and offers no other place before the body is read.
    """
    import aiohttp

    class GuardedResponse(aiohttp.ClientResponse):
        async def start(self, connection: Any) -> aiohttp.ClientResponse:
            await super().start(connection)
            if 300 <= self.status < 400:
                raise UpstreamInvalid("the upstream answered with a redirect, which is never followed")
            return self

        async def read(self) -> bytes:
            if self._body is None:
                try:
                    self._body = await _collected(self.content, "the upstream", MAX_BODY_BYTES)
                except BaseException:
                    self.close()
                    raise
            return await super().read()

    return GuardedResponse


@cache
def _client_error() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError
