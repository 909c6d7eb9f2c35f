"""An adapter that gives our connections the interface of aiohttp's session, which DashScope's SDK expects.

The SDK accepts an object as an aiohttp session if its class is called ``ClientSession`` and its module has ``aiohttp``
in its name (``HttpRequest.__init__`` in ``dashscope/api_entities/http_request.py``, 2.0.2). It silently ignores any
other object, and opens a session of its own through the proxy of the environment. So the names here are the SDK's, and
a test counts our connections. The adapter has only the members that the SDK uses.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from json import loads
from typing import Any, Self

from pydantic_core import from_json

from toolchat.errors import UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.http.response_parser import Response

_MAX_LINE_BYTES = 2 * 1024 * 1024
"""The size limit of a line; a complete answer in one event is far shorter."""

_FLOOD_BYTES = 64 * 1024
"""The size of a piece after which other tasks run: received data may decompress to a thousand times its size."""


class ClientSession:
    """Sends the SDK's requests; raises our own errors, which the SDK neither handles nor retries."""

    def __init__(self, http: OutboundHttp) -> None:
        self._http = http

    async def request(
        self,
        method: str,
        url: str,
        *,
        data: bytes,
        headers: Mapping[str, str],
        timeout: object,  # noqa: ARG002 - the SDK's; our timeouts cancel the call
    ) -> "Answer":
        """Send one request; see :meth:`OutboundHttp.request`."""
        exchange = self._http.request(method, url, upstream="DashScope", headers=headers, data=data)
        answer = Answer(await exchange.__aenter__())
        if answer.status < 400 and answer.content_type == "text/html":
            await answer.__aexit__()
            # Not retryable: a wrong address answers every request with the same page.
            raise UpstreamInvalid("DashScope answered with a page; check DASHSCOPE_BASE_URL")
        return answer


class Answer:
    """The response, with the members that the SDK reads."""

    __slots__ = ("_response", "content_type", "headers", "status")

    def __init__(self, response: Response) -> None:
        self._response = response
        self.status, self.headers, self.content_type = response.status, response.headers, response.content_type

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.close()

    async def json(self) -> Any:
        """The body as JSON, whatever its content type."""
        body = await self._response.read()
        try:
            return from_json(body)
        except ValueError:  # lone surrogates, which json accepts, or what is not JSON: json's errors are the SDK's
            return loads(body)

    async def text(self) -> str:
        """The body of an error that is not JSON."""
        return (await self._response.read()).decode("utf-8", "replace")

    @property
    async def content(self) -> AsyncGenerator[bytes, None]:
        """The lines of a stream, without line ends."""
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
