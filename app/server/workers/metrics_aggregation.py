"""The figures of all workers, told by whichever is asked."""

import asyncio
import os
import re
import socket
import struct
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Protocol

from app.observability import catalogue as series

if TYPE_CHECKING:
    from app.server.workers.worker import Worker

__all__ = ["AggregatedMetrics"]

_SECONDS = 1.0
"""How long a worker is waited for; of Prometheus' ten that leaves enough."""
_PLAIN, _OPEN_METRICS = b"p", b"o"
_CREDENTIALS = struct.Struct("3i")
_END = "# EOF\n"
"""Of OpenMetrics alone."""


class Figures(Protocol):
    """Tells the figures of one process, as the text format of Prometheus or as OpenMetrics has them."""

    def __call__(self, *, open_metrics: bool) -> Awaitable[str]: ...


class AggregatedMetrics:
    """Tells the other workers this one's figures, and whoever asks those of all.

    Args:
        worker: this one.
        own: this one's figures, as text.
    """

    def __init__(self, worker: "Worker", own: Figures) -> None:
        self._worker = worker
        self._own = own

    async def start(self) -> None:
        """Answer the others from now on."""
        series.WORKER_REPLACEMENTS.add(by=self._worker.replaced)
        self._server = await asyncio.start_unix_server(self._answer, sock=self._worker.exchange)

    async def text(self, *, open_metrics: bool) -> str:
        """The figures of all; a worker that does not answer in time is left out, and counted."""
        others = self._worker.others
        told = await asyncio.gather(
            *(_asked(each, _OPEN_METRICS if open_metrics else _PLAIN) for each in others.values())
        )
        heard = {number: text for number, text in zip(others, told, strict=True) if text}
        series.WORKERS_UNHEARD.add(by=len(others) - len(heard))
        return merged({self._worker.number: await self._own(open_metrics=open_metrics)} | heard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _is_ours(writer.get_extra_info("socket")):
            wished = await reader.read(len(_PLAIN))
            writer.write((await self._own(open_metrics=wished == _OPEN_METRICS)).encode())
        writer.close()


def _is_ours(connection: socket.socket) -> bool:
    """Whether it comes from a process of the same user: a socket without a file has no other guard."""
    _, user, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size),
    )
    return bool(user == os.getuid())


async def _asked(address: bytes, wish: bytes) -> str:
    """What another worker tells; nothing where it does not."""
    try:
        async with asyncio.timeout(_SECONDS):
            # uvloop knows no names without a file; that the socket is connected to one is nothing to it.
            reader, writer = await asyncio.open_unix_connection(sock=_connected(address))
            try:
                writer.write(wish)
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""


def _connected(address: bytes) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setblocking(False)
        connection.connect(address)  # at once, or not at all where too many wait
    except OSError:
        connection.close()
        raise
    return connection


def merged(texts: Mapping[int, str]) -> str:
    """Figures of several processes as one text, with the label ``worker`` at every sample.

    A label and not sums: what a worker that died had counted would have to be kept for ever, or sums would go back.

    Args:
        texts: what each tells, in the text format of Prometheus, by its number.
    """
    families: dict[str, list[str]] = {}
    end = _END if any(each.endswith(_END) for each in texts.values()) else ""
    for number in sorted(texts):
        for family in re.split(r"^(?=# HELP )", texts[number].removesuffix(_END), flags=re.MULTILINE)[1:]:
            head, samples = _split(family)
            families.setdefault(head, []).append(_labelled(samples, number))
    return "".join(head + "".join(samples) for head, samples in families.items()) + end


def _split(family: str) -> tuple[str, str]:
    """The lines that say what a family is, and its samples."""
    lines = family.splitlines(keepends=True)
    first = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:first]), "".join(lines[first:])


def _labelled(samples: str, number: int) -> str:
    labelled = re.sub(r"^(\w+)\{", rf'\1{{worker="{number}",', samples, flags=re.MULTILINE)
    return re.sub(r"^(\w+) ", rf'\1{{worker="{number}"}} ', labelled, flags=re.MULTILINE)
