"""The bodies of requests: read whole, within bounds of size and time, before anything parses them."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope

from app.observability.observer import record_reader_left
from toolchat.errors import BodyTimeout, BodyTooLarge, Overloaded

__all__ = [
    "CONNECTION",
    "MAX_BODY_BYTES",
    "PIECE_BYTES",
    "Bodies",
    "Body",
    "Connection",
    "UnreadAnswers",
    "body_of",
    "connection_of",
]


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


PIECE_BYTES = 64 * 1024
"""Most that is handed to the server at once; it takes the next only when the client has read of those before."""
LONG_BYTES = 256 * 1024
"""Answers up to this length may wait for every client."""
MOST_BYTES = 16 * 1024 * 1024
"""What longer ones may take together."""


class UnreadAnswers:
    """Long answers that are being sent; one at a time may be longer than the bound."""

    def __init__(self) -> None:
        self._size = 0
        self._sent: dict[int, tuple[int, Callable[[], None]]] = {}
        self._number = 0

    @contextmanager
    def counted(self, size: int, abort: Callable[[], None]) -> Generator[None, None, None]:
        """Count an answer while it is sent; those that have been sent for the longest time give way to it.

        Args:
            size: its bytes.
            abort: ends the connection when it has to give way itself.
        """
        if size <= LONG_BYTES:
            yield
            return
        self._number += 1
        number = self._number
        self._sent[number] = size, abort
        self._size += size
        while self._size > MOST_BYTES and len(self._sent) > 1:
            self._end(next(iter(self._sent)))()
            record_reader_left()
        try:
            yield
        finally:
            self._end(number)

    def _end(self, number: int) -> Callable[[], None]:
        size, abort = self._sent.pop(number, (0, _nothing))
        self._size -= size
        return abort


def _nothing() -> None:
    """What is left to do for an answer that has given way."""


CONNECTION = "toolchat.connection"
"""The extension of the ASGI scope by which the server gives the request's :class:`Connection`."""


class Connection(Protocol):
    """The client's connection."""

    def on_disconnect(self, callback: Callable[[], None]) -> Callable[[], object]:
        """Call back when the client is gone; gives what takes that back."""
        ...

    @property
    def is_receiving(self) -> bool:
        """Whether the request is still on its way."""
        ...

    def end_after_answer(self) -> None:
        """Read little more of a request that is being answered already, and end with the answer."""
        ...

    def allow_half_close(self) -> None:
        """Send the rest of an answer, which is complete, even if the client says that it sends no more."""
        ...

    def abort(self) -> None:
        """Drop the client, and what waits to be sent."""
        ...

    def abort_after(self, seconds: float) -> None:
        """Do so unless the client has taken the whole answer by then, but for what the server may keep of any."""
        ...


def connection_of(scope: Scope) -> Connection | None:
    """The connection of a request; none with other servers."""
    connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
    return connection
