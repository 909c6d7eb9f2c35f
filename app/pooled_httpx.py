"""httpx over the process's one pool, under the same rules as everything that goes out."""

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from app.errors import UpstreamError, UpstreamInvalid
from app.observation.series import OTHER
from app.observation.telling import upstream_answered

__all__ = ["PooledTransport"]


class PooledTransport(httpx.AsyncBaseTransport):
    """Hands httpx's requests to the pool; bounds what comes back, and puts what fails into our words.

    Errors name the upstream as the request's extension ``upstream`` does, else by its host. Redirects are refused by
    the pool's own response class.
    """

    def __init__(
        self,
        session: Callable[[], aiohttp.ClientSession],
        max_bytes: int,
        in_our_words: Callable[[BaseException, str], UpstreamError],
    ) -> None:
        """Take the pool, the longest body, and what puts an error of aiohttp into our words, given the upstream."""
        self._transport = AiohttpTransport(client=session)
        self._max_bytes = max_bytes
        self._in_our_words = in_our_words

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid: as :meth:`OutboundHttp.request`.
        """
        upstream = str(request.extensions.get("upstream", request.url.host))
        with self._told(upstream):
            response = await self._transport.handle_async_request(request)
            upstream_answered(str(request.extensions.get("upstream", OTHER)), str(response.status_code))
        response.stream = _BoundedStream(response.stream, upstream, self._max_bytes, self._told)
        return response

    @contextmanager
    def _told(self, upstream: str) -> Generator[None, None, None]:
        try:
            yield
        except (httpx.HTTPError, aiohttp.ClientError, OSError) as error:
            # What httpx makes of aiohttp's errors confuses a refused connection with a slow one; the cause does not.
            raise self._in_our_words(error.__cause__ or error, upstream) from error


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(
        self, stream: object, upstream: str, max_bytes: int, told: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("the transport gives streams that are read asynchronously")
        self._stream = stream
        self._upstream = upstream
        self._max_bytes = max_bytes
        self._told = told

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        with self._told(self._upstream):
            async for piece in self._stream:
                size += len(piece)
                if size > self._max_bytes:
                    raise UpstreamInvalid(f"{self._upstream} sent more than {self._max_bytes} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
