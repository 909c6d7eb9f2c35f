"""Metrics of all workers, as one text from whichever worker is scraped."""

import asyncio
import os
import re
import socket
import struct
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Protocol

from app.observability import metrics

if TYPE_CHECKING:
    from app.server.workers.worker import Worker

__all__ = ["AggregatedMetrics"]

_SECONDS = 1.0
"""Time limit for another worker's metrics; Prometheus itself waits ten seconds."""
_PLAIN, _OPEN_METRICS = b"p", b"o"
_CREDENTIALS = struct.Struct("3i")
_END = "# EOF\n"
"""Ends a text in the OpenMetrics format."""


class Figures(Protocol):
    """Returns the metrics of one process, in Prometheus' text format or in OpenMetrics."""

    def __call__(self, *, open_metrics: bool) -> Awaitable[str]: ...


class AggregatedMetrics:
    """Serves this worker's metrics to the others, and collects the metrics of all.

    Args:
        worker: this worker.
        own: returns its metrics as text.
    """

    def __init__(self, worker: "Worker", own: Figures) -> None:
        self._worker = worker
        self._own = own

    async def start(self) -> None:
        """Start to serve this worker's metrics to the others."""
        metrics.WORKER_REPLACEMENTS.inc(self._worker.replaced)
        self._server = await asyncio.start_unix_server(self._answer, sock=self._worker.metrics_socket)

    async def text(self, *, open_metrics: bool) -> str:
        """Return the metrics of all workers; one that does not answer in time is left out and counted."""
        others = self._worker.others
        texts = await asyncio.gather(
            *(_scrape(each, _OPEN_METRICS if open_metrics else _PLAIN) for each in others.values())
        )
        scraped = {number: text for number, text in zip(others, texts, strict=True) if text}
        metrics.WORKERS_UNHEARD.inc(len(others) - len(scraped))
        return merged({self._worker.number: await self._own(open_metrics=open_metrics)} | scraped)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _is_ours(writer.get_extra_info("socket")):
            requested = await reader.read(len(_PLAIN))
            writer.write((await self._own(open_metrics=requested == _OPEN_METRICS)).encode())
        writer.close()


def _is_ours(connection: socket.socket) -> bool:
    """Return whether the peer is a process of the same user: an abstract socket has no file permissions."""
    _, user, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size),
    )
    return bool(user == os.getuid())


async def _scrape(address: bytes, text_format: bytes) -> str:
    """Return the metrics of another worker, or an empty text if it does not answer."""
    try:
        async with asyncio.timeout(_SECONDS):
            # uvloop does not support abstract addresses, but accepts a connected socket.
            reader, writer = await asyncio.open_unix_connection(sock=_connected(address))
            try:
                writer.write(text_format)
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""


def _connected(address: bytes) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setblocking(False)
        connection.connect(address)  # never blocks: a full queue is an error
    except OSError:
        connection.close()
        raise
    return connection


def merged(texts: Mapping[int, str]) -> str:
    """Merge the metrics of several processes into one text, with the label ``worker`` on every sample.

    Sums instead of labels would decrease when a worker dies, unless its last counts were stored forever.

    Args:
        texts: the metrics of each worker in Prometheus' text format, by its number.
    """
    families: dict[str, list[str]] = {}
    end = _END if any(each.endswith(_END) for each in texts.values()) else ""
    for number in sorted(texts):
        for family in re.split(r"^(?=# HELP )", texts[number].removesuffix(_END), flags=re.MULTILINE)[1:]:
            head, samples = _split(family)
            families.setdefault(head, []).append(_labelled(samples, number))
    return "".join(head + "".join(samples) for head, samples in families.items()) + end


def _split(family: str) -> tuple[str, str]:
    """Split a metric family into its comment lines and its samples."""
    lines = family.splitlines(keepends=True)
    first = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:first]), "".join(lines[first:])


def _labelled(samples: str, number: int) -> str:
    labelled = re.sub(r"^(\w+)\{", rf'\1{{worker="{number}",', samples, flags=re.MULTILINE)
    return re.sub(r"^(\w+) ", rf'\1{{worker="{number}"}} ', labelled, flags=re.MULTILINE)
