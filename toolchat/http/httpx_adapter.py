"""An httpx client over the connections of :class:`OutboundHttp`, with its rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING

import httpx

from toolchat.errors import UpstreamInvalid, UpstreamTimeout
from toolchat.http.pool import MAX_BODY_BYTES

if TYPE_CHECKING:
    from toolchat.http.client import OutboundHttp, Response

_FRAMING = {"accept-encoding", "connection", "content-length", "transfer-encoding"}


def open_client(http: OutboundHttp) -> httpx.AsyncClient:
    """Open a client that refuses redirects, stores no cookies, and bounds bodies."""
    client = httpx.AsyncClient(transport=_Transport(http), timeout=20, trust_env=False)
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return client


class _Transport(httpx.AsyncBaseTransport):
    def __init__(self, http: OutboundHttp) -> None:
        self._http = http

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the limits for connecting and reading together hold for the head."""
        upstream = str(request.extensions.get("upstream", request.url.host))
        limits = request.extensions.get("timeout", {})
        headers = {name: value for name, value in request.headers.items() if name not in _FRAMING}
        data = await request.aread()
        response = self._http.request(request.method, str(request.url), upstream=upstream, headers=headers, data=data)
        read = limits.get("read")
        async with _limited(upstream, None if read is None else read + (limits.get("connect") or 0)):
            await response.__aenter__()
        # The body is already decoded, so httpx must not decode it again.
        fields = [(name, value) for name, value in response.headers.items() if name.lower() != "content-encoding"]
        return httpx.Response(response.status, headers=fields, stream=_Body(response, read))


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: Response, limit: float | None) -> None:
        self._response, self._limit = response, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BODY_BYTES
        while True:
            async with _limited(self._response.upstream, self._limit):
                piece = await self._response.readany()
            if not piece:
                return
            left -= len(piece)
            if left < 0:
                raise UpstreamInvalid(f"{self._response.upstream} sent more than {MAX_BODY_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._response.__aexit__(None, None, None)


@asynccontextmanager
async def _limited(upstream: str, seconds: float | None) -> AsyncGenerator[None, None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UpstreamTimeout(f"{upstream} could not be reached in time") from None
