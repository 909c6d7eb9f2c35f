"""Clients that send or read slowly, or not at all: disconnect them, and buffer little for them."""

import asyncio
import socket
from collections.abc import Collection
from typing import Any, Protocol

_BUFFER_BYTES = 16 * 1024
_LONGEST_INTERVAL = 1.0


class _Watched(Protocol):
    def end_if_slow(self, now: float) -> None:
        """Close the connection if a time limit has passed."""
        ...


class SlowClientWatch:
    """Checks the time limits of all connections of a server periodically, by one timer.

    A limit takes effect up to two intervals late: progress is seen at the next check, and so is the end of the limit.

    Args:
        read_timeout: seconds from connecting, or from the first byte of a request, to the end of its headers.
        write_timeout: seconds in which the client must read some of its pending data.
    """

    def __init__(self, read_timeout: float, write_timeout: float) -> None:
        self.read_timeout = read_timeout
        self.write_timeout = write_timeout
        self._interval = min(_LONGEST_INTERVAL, read_timeout / 4, write_timeout / 4)
        self._is_running = False

    def start(self, connections: Collection[_Watched] | Collection[Any]) -> None:
        """Check these connections until there are none."""
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().call_later(self._interval, self._check, connections)

    def _check(self, connections: Collection[_Watched]) -> None:
        now = asyncio.get_running_loop().time()
        for each in tuple(connections):
            each.end_if_slow(now)
        self._is_running = False
        if connections:
            self.start(connections)


def limit_send_buffer(transport: asyncio.Transport) -> None:
    """Limit the data that the kernel buffers for a client; its default is megabytes.

    A full buffer pauses the response, and so the model that generates it, soon after the client stops reading.
    """
    transport.set_write_buffer_limits(_BUFFER_BYTES)
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # Linux and macOS
    if option is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, _BUFFER_BYTES)
