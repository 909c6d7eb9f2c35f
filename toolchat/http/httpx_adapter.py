"""An httpx client over the connection pool, with the rules of :class:`OutboundHttp`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import DefaultCookiePolicy

import httpx

from toolchat.errors import UpstreamInvalid, UpstreamTimeout
from toolchat.http.pool import Pool
from toolchat.http.requests import build_request
from toolchat.http.response_parser import MAX_BODY_BYTES, Response


def open_client(pool: Pool, connect_timeout: float) -> httpx.AsyncClient:
    """Open a client that refuses redirects, stores no cookies, bounds bodies and ignores proxies and ``.netrc``."""
    timeout = httpx.Timeout(20, connect=connect_timeout)
    client = httpx.AsyncClient(transport=_PooledTransport(pool), timeout=timeout, trust_env=False)
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return client


class _PooledTransport(httpx.AsyncBaseTransport):
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the limits for connecting and reading together hold for the head."""
        upstream = str(request.extensions.get("upstream", request.url.host))
        limits = request.extensions.get("timeout", {})
        fields = {name.decode(): value.decode("utf-8", "surrogateescape") for name, value in request.headers.raw}
        try:
            prepared = build_request(request.method, str(request.url), fields, data=await request.aread())
        except ValueError as error:
            raise UpstreamInvalid(f"the request to {upstream} cannot be sent: {error}") from error
        read = limits.get("read")
        async with _limited(upstream, None if read is None else read + (limits.get("connect") or 0)):
            response = await self._pool.exchange(prepared, upstream)
        # The body is already decoded, so httpx must not decode it again.
        headers = {name: value for name, value in response.headers.items() if name != "content-encoding"}
        return httpx.Response(response.status, headers=headers, stream=_Body(response, read))


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: Response, limit: float | None) -> None:
        self._response = response
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        while True:
            async with _limited(self._response.upstream, self._limit):
                piece = await self._response.readany()
            if not piece:
                return
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise UpstreamInvalid(f"{self._response.upstream} sent more than {MAX_BODY_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        self._response.close()


@asynccontextmanager
async def _limited(upstream: str, seconds: float | None) -> AsyncGenerator[None, None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UpstreamTimeout(f"{upstream} could not be reached in time") from None
