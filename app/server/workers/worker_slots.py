"""What stays when a worker is replaced: its number, its sockets, and how often that has happened."""

import math
import socket
import time
from typing import Any

from app.server.workers.sockets import beside, exchange

__all__ = ["Place"]

_STEADY = 10.0
"""Seconds after which a worker that ends is not taken for one that cannot work at all."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class Place:
    """A worker's place.

    Args:
        number: among the others.
        listener: a socket on which it alone accepts.
    """

    def __init__(self, number: int, listener: socket.socket) -> None:
        self.number = number
        self.listener = listener
        self.exchange = exchange()
        self.pid = 0
        """Of the worker in it; 0 while there is none."""
        self.due = math.inf
        """When the next one is to be started."""
        self.heard = 0.0
        """When it last showed life, or was started."""
        self.listens = False
        self.replaced = 0
        self._failures = 0
        self._began = 0.0

    def take(self, pid: int) -> None:
        """Note that a worker was started."""
        self.pid = pid
        self._began = self.heard = time.monotonic()

    def leave(self, *, in_order: bool) -> float:
        """Note that the worker has ended, or could not be started; gives the seconds until the next one is to be.

        One that ended in order, since somebody asked it to and not the parent, has made its socket useless.

        The first that ends is replaced at once, further ones after pauses that double. What waits in the socket's
        queue then waits for the next worker, unless that takes a while: new connections are better off with the others.
        """
        steady = bool(self.pid) and time.monotonic() - self._began >= _STEADY
        self._failures = 0 if steady else self._failures + 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._failures - 2)) if self._failures > 1 else 0.0
        self.pid, self.listens, self.due = 0, False, time.monotonic() + pause
        self.replaced += 1
        if pause or in_order:
            self.listener.close()
        return pause

    def listen(self, address: Any, family: socket.AddressFamily) -> None:
        """Listen again, if that was given up. Raises as :func:`beside`."""
        if self.listener.fileno() < 0:
            self.listener = beside(address, family)

    def close(self) -> None:
        """Let go of the sockets."""
        self.listener.close()
        self.exchange.close()
