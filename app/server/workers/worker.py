"""What a worker process knows about itself and the other workers."""

import asyncio
import ctypes
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from fastapi import FastAPI

from app.api.status_routes import figures
from app.server.workers.metrics_aggregation import AggregatedMetrics

__all__ = ["HEARTBEAT", "Worker"]

HEARTBEAT = getattr(signal, "SIGRTMIN", 0)
"""The heartbeat signal to the parent, first sent once the worker listens. Real-time signals queue; others merge."""
_HEARTBEATS_PER_TIMEOUT = 6
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process, forked by the supervisor."""

    number: int
    """Index of its slot, which its replacement inherits."""
    listener: socket.socket
    metrics_socket: socket.socket
    """Where other workers request its metrics."""
    others: Mapping[int, bytes]
    """Addresses of the others' metrics sockets, by worker number."""
    replaced: int
    """How many workers its slot had before."""
    parent: int
    timeout: float
    """Seconds without a heartbeat after which the parent replaces it."""

    def exit_with_parent(self) -> None:
        """Make the kernel send SIGTERM to this process when the parent dies, for whatever reason.

        Raises:
            SystemExit: the parent is dead already.
        """
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self.parent:
            raise SystemExit(1)

    async def join(self, app: FastAPI) -> None:
        """Start to serve the metrics of all workers, and report to the parent that this one listens."""
        figures_of_all = AggregatedMetrics(self, partial(figures, app.state.service))
        await figures_of_all.start()
        app.state.figures_of_all = figures_of_all.text
        self._send_heartbeat()

    def stop_listening(self) -> None:
        """Refuse further connections; closing the socket would not, because the parent holds it as well."""
        self.listener.shutdown(socket.SHUT_RDWR)

    def _send_heartbeat(self) -> None:
        """Send a heartbeat now and, as long as the event loop runs, repeatedly."""
        if os.getppid() == self.parent:
            os.kill(self.parent, HEARTBEAT)
        asyncio.get_running_loop().call_later(self.timeout / _HEARTBEATS_PER_TIMEOUT, self._send_heartbeat)
