"""A slot for one worker: the number and sockets that survive its replacement."""

import math
import socket
import time
from typing import Any

from app.server.workers.sockets import open_metrics_socket, open_shared_listener

__all__ = ["WorkerSlot"]

_STEADY = 10.0
"""A worker that lives this many seconds counts as healthy: its exit is not one of a series of failures."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class WorkerSlot:
    """The slot of one worker.

    Args:
        number: its index.
        listener: the socket on which only this worker accepts connections.
    """

    def __init__(self, number: int, listener: socket.socket) -> None:
        self.number = number
        self.listener = listener
        self.metrics_socket = open_metrics_socket()
        self.pid = 0
        """Process id of the current worker; 0 if there is none."""
        self.start_at = math.inf
        """Time at which the next worker is due to start."""
        self.last_heartbeat = 0.0
        """Time of the last heartbeat, or of the start."""
        self.listens = False
        self.replaced = 0
        self._failures = 0
        self._began = 0.0

    def record_start(self, pid: int) -> None:
        """Record that a worker was started."""
        self.pid = pid
        self._began = self.last_heartbeat = time.monotonic()

    def record_exit(self, *, in_order: bool) -> float:
        """Record that the worker exited or could not be started; return the seconds until the next start.

        The first failure restarts at once, further ones after pauses that double. Connections in the socket's queue
        then wait for the next worker. Before a pause the socket is closed instead, so that new connections go to
        other workers. It is closed as well if the worker was asked to stop by somebody other than the parent: such a
        worker has shut its socket down.
        """
        steady = bool(self.pid) and time.monotonic() - self._began >= _STEADY
        self._failures = 0 if steady else self._failures + 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._failures - 2)) if self._failures > 1 else 0.0
        self.pid, self.listens, self.start_at = 0, False, time.monotonic() + pause
        self.replaced += 1
        if pause or in_order:
            self.listener.close()
        return pause

    def listen(self, address: Any, family: socket.AddressFamily) -> None:
        """Open the listener again if it was closed; raises like :func:`open_shared_listener`."""
        if self.listener.fileno() < 0:
            self.listener = open_shared_listener(address, family)

    def close(self) -> None:
        """Close the sockets."""
        self.listener.close()
        self.metrics_socket.close()
