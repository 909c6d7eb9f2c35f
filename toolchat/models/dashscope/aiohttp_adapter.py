"""Our connections in the form of the aiohttp session that DashScope's SDK asks for.

The SDK takes an object for an aiohttp session when its class is called ``ClientSession`` and stands in a module with
``aiohttp`` in its name (``HttpRequest.__init__`` in ``dashscope/api_entities/http_request.py``, 2.0.2). Anything else
it puts aside, and asks over a session of its own, through whatever proxy the environment names. So these names are the
SDK's, and a test counts our connections. What stands here is all that the SDK does with a session and its answers.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from json import loads
from typing import Any, Self

from toolchat.errors import UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.http.responses import Response

__all__ = ["Answer", "ClientSession"]

_MAX_LINE_BYTES = 2 * 1024 * 1024
"""Longest line of a stream that is read; a whole answer in one event is far shorter."""

_FLOOD_BYTES = 64 * 1024
"""A piece of a stream after which others have their turn: what arrived may unpack to a thousand times as much."""


class ClientSession:
    """Sends what the SDK has written; all errors are ours, which the SDK neither understands nor sends again for."""

    def __init__(self, http: OutboundHttp) -> None:
        self._http = http

    async def request(
        self,
        method: str,
        url: str,
        *,
        data: bytes,
        headers: Mapping[str, str],
        timeout: object,  # noqa: ARG002 - the SDK's; ours cancel whatever takes too long
    ) -> "Answer":
        """Send one request; see :meth:`OutboundHttp.request`."""
        exchange = self._http.request(method, url, upstream="DashScope", headers=headers, data=data)
        return Answer(await exchange.__aenter__())


class Answer:
    """What came, as the SDK reads it."""

    __slots__ = ("_response", "content_type", "headers", "status")

    def __init__(self, response: Response) -> None:
        self._response = response
        self.status, self.headers, self.content_type = response.status, response.headers, response.content_type

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.close()

    async def json(self) -> Any:
        """The body as JSON, whatever its type says it is."""
        return loads(await self._response.read())

    async def text(self) -> str:
        """The body of an error that is no JSON."""
        return (await self._response.read()).decode("utf-8", "replace")

    @property
    async def content(self) -> AsyncGenerator[bytes, None]:
        """The lines of a stream, without their ends."""
        rest = b""
        while piece := await self._response.readany():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line
            if len(rest) > _MAX_LINE_BYTES:
                raise UpstreamInvalid(f"DashScope sent a line of more than {_MAX_LINE_BYTES} bytes")
            if len(piece) > _FLOOD_BYTES:
                await asyncio.sleep(0)
        yield rest
