"""A server on 127.0.0.1 that plays the upstream of a tool, byte for byte."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

_T = TypeVar("_T")


def limited(client: type[_T], **limits: float) -> type[_T]:
    """A class of clients with other limits."""
    return type(client.__name__, (client,), limits)


@dataclass
class Arrival:
    """A request as it came."""

    head: str
    headers: dict[str, str]
    """In lower case."""
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def target(self) -> str:
        return self.head.split(" ")[1]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass
class Player:
    """The server, and the requests that it got."""

    answer: Callable[[Arrival], bytes]
    """What is sent for a request; nothing is silence, and half of an answer ends the connection."""
    url: str = ""
    arrivals: list[Arrival] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = b""
            while not answer or is_whole(answer):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                headers = dict(line.lower().split(": ", 1) for line in head.strip().split("\r\n")[1:])
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.arrivals.append(Arrival(head, headers, body))
                answer = self.answer(self.arrivals[-1])
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def is_whole(answer: bytes) -> bool:
    head, _, body = answer.lower().partition(b"\r\n\r\n")
    return b"content-length: %d" % len(body) in head


@asynccontextmanager
async def playing(answer: Callable[[Arrival], bytes], path: str) -> AsyncGenerator[Player, None]:
    """Play an upstream at an address of its own."""
    player = Player(answer)
    async with await asyncio.start_server(player.serve, "127.0.0.1", 0) as server:
        player.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
        yield player
        server.close()
