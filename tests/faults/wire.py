"""Raw HTTP: faults consist of bytes that no client library would send."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

__all__ = ["Reply", "ask", "exchange", "opened", "percentile", "question", "read_reply", "reset"]

PATIENCE = 30.0
"""Seconds that a test waits for an answer."""


@dataclass(frozen=True)
class Reply:
    """One answer as it came."""

    status: int
    """0 when the connection ended without any."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    seconds: float
    """From the first byte of the request to the last one of the answer."""
    whole: bool
    """Whether the body came to its end."""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The ``code`` of a problem document; empty where it is none."""
        try:
            value = self.json()
        except ValueError:
            return ""
        return str(value.get("code", "")) if isinstance(value, dict) else ""

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The server-sent events with their data."""
        found = []
        for block in self.text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and line[0] != ":")
            if "event" in fields:
                found.append((fields["event"], json.loads(fields.get("data", "null"))))
        return found

    @property
    def last(self) -> str:
        """The name of the last event."""
        return self.events[-1][0] if self.events else ""

    @property
    def outcome(self) -> str:
        """The status and the code of an error; of a stream that began, its last event and the code in it."""
        if self.events:
            name, data = self.events[-1]
            return f"{self.status} {name} {data.get('code', '')}".strip()
        return f"{self.status} {self.code}".strip()


def question(
    path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b"", keep: bool = False
) -> bytes:
    """The bytes of an ordinary request."""
    fields = {"Host": "127.0.0.1", "Connection": "keep-alive" if keep else "close", **(headers or {})}
    if body:
        fields.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of all lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@asynccontextmanager
async def opened(
    port: int, source: str = "127.0.0.1"
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    """A connection to a local port, closed in the end; another source address is another client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20, local_addr=(source, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by a TCP reset, as if the client's machine had crashed."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def ask(port: int, path: str, *, json_body: object = None, session: str = "", **options: Any) -> Reply:
    """Ask over a connection of its own.

    Args:
        port: where the service listens.
        path: with its query; what is not ASCII is encoded.
        json_body: makes it a POST of this document.
        session: a ``sessionId`` to add to the query.
        options: of :func:`question` and :func:`exchange`.
    """
    if session:
        path += f"{'&' if '?' in path else '?'}sessionId={session}"
    if json_body is not None:
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        options |= {"method": options.pop("method", "POST"), "headers": headers, "body": json.dumps(json_body).encode()}
    to = {name: options.pop(name) for name in ("within", "source") if name in options}
    return await exchange(port, question(quote(path, safe="/?&=%+:,;@!$'()*~.-_"), **options), **to)


async def exchange(port: int, sent: bytes, *, within: float = PATIENCE, source: str = "127.0.0.1") -> Reply:
    """Send bytes over a connection of its own, from an address of this machine, and read one answer.

    Raises:
        TimeoutError: there was none in time.
    """
    began = time.monotonic()
    async with asyncio.timeout(within), opened(port, source) as (reader, writer):
        with suppress(ConnectionError):
            writer.write(sent)
            await writer.drain()
        return await read_reply(reader, began)


async def read_reply(reader: asyncio.StreamReader, began: float | None = None) -> Reply:
    """Read one answer, by its length or its chunks; one that breaks off is not whole."""
    began = time.monotonic() if began is None else began
    status, headers, body, whole = 0, dict[str, str](), bytearray(), False
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        status = int(first.split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        await _read_body(reader, headers, body)
        whole = True
    except (OSError, asyncio.IncompleteReadError):
        pass
    return Reply(status, headers, bytes(body), time.monotonic() - began, whole)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str], body: bytearray) -> None:
    if "chunked" not in headers.get("transfer-encoding", ""):
        while len(body) < int(headers.get("content-length", 0)):
            if not (piece := await reader.read(2**16)):
                raise ConnectionResetError
            body += piece
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
