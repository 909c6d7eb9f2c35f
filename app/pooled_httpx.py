"""httpx over the process's one pool, under the same rules as everything that goes out."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from app.errors import UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable

__all__ = ["PooledTransport"]


class PooledTransport(httpx.AsyncBaseTransport):
    """Hands httpx's requests to the pool; bounds what comes back, and puts what fails into our words.

    Errors name the upstream as the request's extension ``upstream`` does, else by its host. Redirects are refused by
    the pool's own response class.
    """

    def __init__(self, session: Callable[[], aiohttp.ClientSession], max_bytes: int) -> None:
        self._transport = AiohttpTransport(client=session)
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid: as :meth:`OutboundHttp.request`.
        """
        upstream = str(request.extensions.get("upstream", request.url.host))
        async with _in_our_words(upstream):
            response = await self._transport.handle_async_request(request)
        response.stream = _BoundedStream(response.stream, upstream, self._max_bytes)
        return response


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: object, upstream: str, max_bytes: int) -> None:
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("the transport gives streams that are read asynchronously")
        self._stream = stream
        self._upstream = upstream
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async with _in_our_words(self._upstream):
            async for piece in self._stream:
                size += len(piece)
                if size > self._max_bytes:
                    raise UpstreamInvalid(f"{self._upstream} sent more than {self._max_bytes} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _in_our_words(upstream: str) -> AsyncGenerator[None, None]:
    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise UpstreamTimeout(f"{upstream} did not answer in time") from error
    except (httpx.NetworkError, OSError) as error:
        raise UpstreamUnavailable(f"{upstream} could not be reached, or the connection was lost") from error
    except (httpx.HTTPError, aiohttp.ClientError) as error:
        raise UpstreamInvalid(f"{upstream} sent something that is not a complete HTTP answer") from error
