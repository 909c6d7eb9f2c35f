"""Limits of request bodies, and of responses that wait for slow clients.

Both bound memory across all requests: a few large bodies are fine, many at once would exhaust the process.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope

from toolchat.errors import BodyTooLarge, Overloaded, RequestTimeout
from toolchat.service.observability import metrics

MAX_BODY_BYTES = 64 * 1024
"""The longest body, unless a protocol or ``QUESTION_MAX_CHARS`` allows more; longer ones count as large."""
MAX_IMAGES_BYTES = 4 * 1024 * 1024
"""The images of a question in a session, as data URLs; the store holds them until a background question has ended."""
MAX_LARGE_BODIES = 128 * 1024 * 1024
"""The limit of all longer bodies together while their requests are answered."""


class Body:
    """ASGI's ``receive`` for a request whose body has been read: the body once, and then nothing."""

    __slots__ = ("content", "counted", "received")

    def __init__(self, content: bytes = b"", counted: int = 0) -> None:
        self.content = content
        self.counted = counted
        """The bytes of it that count towards the limit of large bodies."""
        self.received = False

    async def __call__(self) -> Message:
        if self.received:
            await asyncio.get_running_loop().create_future()  # a disconnect is reported by cancellation
        self.received = True
        return {"type": "http.request", "body": self.content, "more_body": False}


async def body_of(request: Request) -> bytes:
    """The body of a request that the guard has read, in one piece; ``Request.body`` costs much more."""
    content: bytes = (await request.receive())["body"]
    return content


class Bodies:
    """Reads request bodies; all large ones together share a limit."""

    def __init__(self, seconds: float) -> None:
        """Each body must arrive within these seconds."""
        self._seconds = seconds
        self._large = 0

    async def read(
        self, receive: Receive, longest: int = MAX_BODY_BYTES, *, announced: int = 0, arrived: bool = False
    ) -> Body:
        """Read a whole body; a large one counts until it is released."""
        _refuse_longer(announced, longest)
        body = Body()
        try:
            async with asyncio.timeout(None if arrived else self._seconds):
                body.content = await self._content(receive, body, longest)
        except BaseException as error:
            self.release(body)
            if isinstance(error, TimeoutError):
                raise RequestTimeout(f"the body did not arrive within {self._seconds:g} s") from None
            raise
        return body

    async def _content(self, receive: Receive, body: Body, longest: int) -> bytes:
        content = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            content += message.get("body", b"")
            # Counted as it arrives, not as announced: a client may announce much and send nothing.
            if (size := len(content)) > MAX_BODY_BYTES:
                _refuse_longer(size, longest)
                if self._large + size - body.counted > MAX_LARGE_BODIES:
                    raise Overloaded("too many large requests are being answered already", retry_after=1)
                self._large += size - body.counted
                body.counted = size
            if not message.get("more_body", False):
                return bytes(content)

    def release(self, body: Body) -> None:
        """Stop counting a body: its request has been answered."""
        self._large -= body.counted
        body.counted = 0


def _refuse_longer(size: int, longest: int) -> None:
    if size > longest:
        raise BodyTooLarge(f"the body is longer than {longest} bytes")


PIECE_BYTES = 64 * 1024
"""The most that is passed to the server at once; the next piece follows when the client has read the ones before."""
LONG_BYTES = 256 * 1024
"""Responses up to this length may wait for any client."""
MAX_UNREAD_BYTES = 16 * 1024 * 1024
"""The limit of all longer responses together."""


class UnreadAnswers:
    """Limits the long responses that wait for their clients; a single one may exceed the limit."""

    def __init__(self) -> None:
        self._size = 0
        self._sending: dict[int, tuple[int, Callable[[], None]]] = {}
        """By number, the oldest first: size, and what aborts the connection."""
        self._number = 0

    @contextmanager
    def counted(self, size: int, abort: Callable[[], None]) -> Generator[None, None, None]:
        # Above the limit the oldest ones are aborted, not the new one: a client that has not read its response for the
        # longest time is the least likely to read it at all.
        if size <= LONG_BYTES:
            yield
            return
        self._number += 1
        number = self._number
        self._sending[number] = size, abort
        self._size += size
        while self._size > MAX_UNREAD_BYTES and len(self._sending) > 1:
            left, abort_oldest = self._sending.pop(next(iter(self._sending)))
            self._size -= left
            abort_oldest()
            metrics.READERS_LEFT.inc()
        try:
            yield
        finally:
            if self._sending.pop(number, None):  # else it was aborted
                self._size -= size


CONNECTION = "toolchat.connection"
"""The extension of the ASGI scope in which our server passes the request's :class:`Connection`."""


class Connection(Protocol):
    """The client's connection, as our server offers it beside ASGI."""

    def on_disconnect(self, callback: Callable[[], None]) -> Callable[[], object]:
        """Call back if the client disconnects; returns a function that removes the callback."""

    @property
    def is_receiving(self) -> bool:
        """Whether the request's body is still arriving."""

    def end_after_answer(self) -> None:
        """Close the connection after this response, and read little more of its request."""

    def abort(self) -> None:
        """Close the connection at once, and drop unsent bytes."""

    def abort_after(self, seconds: float) -> None:
        """Abort after some seconds, unless the client has received the response (except for the send buffer)."""


def connection_of(scope: Scope) -> Connection | None:
    """The connection of a request; ``None`` with other servers."""
    connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
    return connection
