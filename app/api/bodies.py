"""The bodies of requests: read whole, within bounds of size and time, before anything parses them."""

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from app.errors import BodyTimeout, BodyTooLarge, Overloaded

__all__ = ["MAX_BODY_BYTES", "Bodies", "Body", "body_of"]

MAX_BODY_BYTES = 64 * 1024
"""Longest body, except where a protocol needs more."""
MAX_LARGE_BODIES = 128 * 1024 * 1024
"""Bytes that all bodies beyond the usual bound may take together while their requests are answered."""


class Body:
    """What the application receives of a request: its whole body, and after that nothing for ever."""

    __slots__ = ("content", "counted", "given")

    def __init__(self, content: bytes = b"", counted: int = 0) -> None:
        self.content = content
        self.counted = counted
        """How many of its bytes count among those of large bodies."""
        self.given = False

    async def __call__(self) -> Message:
        """See ASGI's ``receive``."""
        if self.given:
            await asyncio.get_running_loop().create_future()
        self.given = True
        return {"type": "http.request", "body": self.content, "more_body": False}


async def body_of(request: Request) -> bytes:
    """The body of a request that has come through the door, in one piece; ``Request.body`` costs much more."""
    content: bytes = (await request.receive())["body"]
    return content


class Bodies:
    """Reads bodies; the large ones share a bound, so that many of them do not take all memory."""

    def __init__(self, seconds: float) -> None:
        """Read each in so many seconds."""
        self._seconds = seconds
        self._large = 0

    async def read(self, receive: Receive, longest: int = MAX_BODY_BYTES, *, announced: int = 0) -> Body:
        """Read a body whole; it counts until it is released. One that is announced as too long is not waited for.

        Raises:
            BodyTooLarge: it is longer than ``longest`` bytes.
            BodyTimeout: it did not arrive in time.
            Overloaded: there are too many large ones.
            ClientDisconnect: the client has left, or what it sent of it cannot be read.
        """
        content, body = bytearray(), Body()
        self._refuse_longer(announced, longest)
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    content += message.get("body", b"")
                    if len(content) > MAX_BODY_BYTES:
                        self._count(body, len(content), longest)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            self.release(body)
            raise BodyTimeout(f"the body did not arrive within {self._seconds:g} s") from None
        except BaseException:
            self.release(body)
            raise
        body.content = bytes(content)
        return body

    def release(self, body: Body) -> None:
        """Make room: its request has been answered."""
        self._large -= body.counted
        body.counted = 0

    def _count(self, body: Body, size: int, longest: int) -> None:
        self._refuse_longer(size, longest)
        if self._large + size - body.counted > MAX_LARGE_BODIES:
            raise Overloaded("too many large requests are being answered already", retry_after=1)
        self._large += size - body.counted
        body.counted = size

    @staticmethod
    def _refuse_longer(size: int, longest: int) -> None:
        if size > longest:
            raise BodyTooLarge(f"the body is longer than {longest} bytes")
