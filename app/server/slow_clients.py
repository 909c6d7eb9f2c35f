"""Clients that read slowly or not at all: disconnect them, and buffer little for them."""

import asyncio
import socket

__all__ = ["SlowClientWatch", "limit_send_buffer"]

_BUFFER_BYTES = 16 * 1024


class SlowClientWatch:
    """Aborts the connection of a client that has read nothing of its pending data for some seconds."""

    def __init__(self, transport: asyncio.Transport, timeout: float) -> None:
        self._transport = transport
        self._timeout = timeout
        self._unread = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer again, if any data is pending."""
        self.stop()
        self._unread = self._transport.get_write_buffer_size()
        if self._unread:
            self._timer = asyncio.get_running_loop().call_later(self._timeout, self._check)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() >= self._unread:
            self._transport.abort()
        else:
            self.start()


def limit_send_buffer(transport: asyncio.Transport) -> None:
    """Limit the data that the kernel buffers for a client; its default is megabytes.

    A full buffer pauses the response, and so the model that generates it, soon after the client stops reading.
    """
    transport.set_write_buffer_limits(_BUFFER_BYTES)
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # Linux and macOS
    if option is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, _BUFFER_BYTES)
