"""An OpenAI-compatible provider on 127.0.0.1 whose behaviour the running test sets."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.faults.server import Server
from tests.faults.wire import reset
from tests.players.openai_player import Answer, chunk, delta, event, finish, message, whole

__all__ = ["Behaviour", "Call", "Upstream", "calling", "frozen", "playing", "saying", "speaking", "text_of"]


class Call:
    """One request that the provider was sent."""

    def __init__(self, path: str, body: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.path = path
        self.body = body
        self.writer = writer
        self._reader = reader

    @property
    def streams(self) -> bool:
        """Whether it asked for events."""
        return isinstance(self.body, dict) and bool(self.body.get("stream"))

    async def send(self, content: bytes) -> None:
        """Send bytes as they are.

        Raises:
            ConnectionError: the service has left.
        """
        if self._reader.at_eof() or self.writer.transport.is_closing():
            raise ConnectionResetError
        self.writer.write(content)
        await self.writer.drain()

    async def begin(self, media_type: str = "text/event-stream", status: int = 200, **headers: str) -> None:
        """Send the head of an answer in chunks."""
        fields = {"Content-Type": media_type, "Transfer-Encoding": "chunked"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        await self.send(f"HTTP/1.1 {status} Played\r\n{lines}\r\n".encode())

    async def piece(self, content: bytes) -> None:
        """Send one chunk; an empty one ends the answer."""
        await self.send(b"%x\r\n%b\r\n" % (len(content), content))

    async def left(self) -> None:
        """Wait until the service has left."""
        while await self._reader.read(2**16):
            pass
        raise ConnectionResetError


Behaviour = Callable[[Call], Awaitable[None]]


def text_of(body: Any) -> str:
    """The newest user message of a request."""
    texts = [one.get("content") for one in body["messages"] if one["role"] == "user"]
    return str(texts[-1]) if texts else ""


def saying(text: str = "Hello.") -> Behaviour:
    """Answer with a text at once, whole or as a stream, as it was asked for."""
    return speaking(lambda _: text)


def speaking(text: Callable[[Any], str], *, pieces: int = 2, pause: float = 0, first: float = 0) -> Behaviour:
    """Answer with a text that comes from the request, in so many pieces with so many seconds between them."""

    async def answer(call: Call) -> None:
        said = text(call.body)
        await asyncio.sleep(first)
        if not call.streams:
            content = json.dumps(message(content=said)).encode()
            await call.begin("application/json")
            await call.piece(content)
            return await call.piece(b"")
        await call.begin()
        size = max(1, -(-len(said) // pieces))
        for at in range(0, len(said), size):
            await call.piece(event(delta(content=said[at : at + size])))
            await asyncio.sleep(pause)
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        await call.piece(event(finish("stop")) + event(chunk(usage=usage)) + b"data: [DONE]\n\n")
        return await call.piece(b"")

    return answer


def playing(answer: Answer) -> Behaviour:
    """Give an answer of the players of the tests, byte for byte."""

    async def play(call: Call) -> None:
        framed = answer.ending != "close"
        framing = "Transfer-Encoding: chunked" if framed else "Connection: close"
        lines = [framing, *(f"{name}: {value}" for name, value in answer.headers.items())]
        await call.send("\r\n".join([f"HTTP/1.1 {answer.status} Played", *lines, "", ""]).encode())
        for piece in answer.pieces:
            await (call.piece(piece) if framed and piece else call.send(piece))
        if answer.ending == "whole":
            await call.piece(b"")
        elif answer.ending == "hang":
            await call.left()
        else:
            await _break_off(call.writer, by_reset=answer.ending == "reset")

    return play


def calling(*names: str, **arguments: Any) -> Behaviour:
    """Call tools with these arguments, then say that it is done."""

    async def answer(call: Call) -> None:
        if any(each["role"] == "tool" for each in call.body["messages"]):
            return await saying("Done.")(call)
        written_out = json.dumps(arguments)
        calls = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": written_out}}
            for n, name in enumerate(names)
        ]
        return await playing(whole(message("tool_calls", content=None, tool_calls=calls)))(call)

    return answer


async def frozen(call: Call) -> None:
    """Take the request and never answer."""
    await call.left()


@dataclass
class _Seen:
    calls: deque[Any] = field(default_factory=lambda: deque(maxlen=10_000))
    aborts: int = 0
    open: int = 0


class Upstream(Server):
    """The provider; an asynchronous context manager. Each test sets what it does."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__(host, port)
        self.reset()

    def reset(self) -> None:
        """Forget what was asked, and answer in a friendly way."""
        self.behave: Behaviour = saying()
        self._seen = _Seen()  # a new one: what one test leaves running must not be counted for the next

    @property
    def calls(self) -> deque[Any]:
        """The bodies of the requests of this test, parsed; the newest 10,000."""
        return self._seen.calls

    @property
    def aborts(self) -> int:
        """Requests that the service left before they were answered."""
        return self._seen.aborts

    @property
    def open(self) -> int:
        """Requests that are being answered."""
        return self._seen.open

    @property
    def url(self) -> str:
        """What ``OPENAI_BASE_URL`` has to be."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what comes over one connection."""
        while call := await _read_call(reader, writer):
            await self._answer(call)

    async def _answer(self, call: Call) -> None:
        seen = self._seen
        seen.calls.append(call.body)
        seen.open += 1
        try:
            await self.behave(call)
        except ConnectionError:
            seen.aborts += 1
            raise
        finally:
            seen.open -= 1


async def _read_call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    fields: Mapping[str, str] = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return Call(first.split(" ")[1], json.loads(body) if body else None, reader, writer)


async def _break_off(writer: asyncio.StreamWriter, *, by_reset: bool) -> None:
    if by_reset:
        reset(writer)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    raise asyncio.IncompleteReadError(b"", None)
