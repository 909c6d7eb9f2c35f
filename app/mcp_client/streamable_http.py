"""A server that is asked over HTTP: what comes back is bounded, and a refusal is remembered."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from app.mcp_client.file import ServerEntry
from app.mcp_client.stdio import MAX_MESSAGE_BYTES

__all__ = ["http_transport"]

_FAREWELL = 1.0
"""Seconds that the end of a session may take to be told."""
_CONNECT = 10.0


@asynccontextmanager
async def http_transport(
    entry: ServerEntry, forwarded: Mapping[str, str], statuses: list[int]
) -> AsyncGenerator[Any, None]:
    """Give the two streams that the SDK speaks by.

    Args:
        entry: where the server is.
        forwarded: the headers of whoever asks, beside those of the file.
        statuses: is told the last status by which the server refused something, which the SDK keeps to itself.
    """
    transport = _BoundedTransport(_context() if str(entry.url).startswith("https:") else False, statuses)
    replaced = {name.lower() for name in forwarded}
    own = {name: value for name, value in entry.headers.items() if name.lower() not in replaced}
    headers = {**own, **forwarded, "accept-encoding": "identity"}
    # A call may take as long as it likes: whoever makes it has a limit, and so has the answer.
    timeout = httpx2.Timeout(None, connect=_CONNECT)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, trust_env=False) as client,
        streamable_http_client(str(entry.url), http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _BoundedTransport(httpx2.AsyncBaseTransport):
    def __init__(self, verify: ssl.SSLContext | bool, statuses: list[int]) -> None:
        self._transport = httpx2.AsyncHTTPTransport(verify=verify)
        self._statuses = statuses

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            with anyio.fail_after(_FAREWELL):
                return await self._transport.handle_async_request(request)
        response = await self._transport.handle_async_request(request)
        if response.status_code in (401, 403) or response.status_code >= 500:
            self._statuses[:] = [response.status_code]
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not is_stream or response.headers.get("content-encoding", "identity") != "identity":
            # What was packed although nobody asked for it could become a thousand times as long.
            limit = MAX_MESSAGE_BYTES if "content-encoding" not in response.headers else 0
            response.stream = _BoundedStream(response.stream, limit)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class _TooLongError(httpx2.StreamError):
    """Of this kind the SDK answers the one request, and the others go on."""

    def __init__(self) -> None:
        super().__init__("the answer is too long")


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                raise _TooLongError
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@cache
def _context() -> ssl.SSLContext:
    """Reading the certificates costs more than a call; a call with headers of its own has a connection of its own."""
    return ssl.create_default_context()
