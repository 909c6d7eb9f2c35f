"""Clients that do not read what they are sent."""

import asyncio
import socket

__all__ = ["SlowClientWatch", "keep_little_waiting"]

_WAITING_BYTES = 16 * 1024


class SlowClientWatch:
    """Hangs up on a client that has read nothing of what waits for it for some time."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds
        self._unread = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Watch, from now on anew, whether the client reads; nothing is done when nothing waits."""
        self.stop()
        self._unread = self._transport.get_write_buffer_size()
        if self._unread:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)

    def stop(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() >= self._unread:
            self._transport.abort()
        else:
            self.start()


def keep_little_waiting(transport: asyncio.Transport) -> None:
    """Have the kernel take little more than what is on its way, not the megabytes of which a slow client reads none.

    Whoever writes then soon waits, and so does the model whose answer it is.
    """
    transport.set_write_buffer_limits(_WAITING_BYTES)
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # Linux and macOS have it
    if option is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, _WAITING_BYTES)
