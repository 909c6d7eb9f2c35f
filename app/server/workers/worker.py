"""One of several processes that answer, as it knows itself."""

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

__all__ = ["ALIVE", "Worker"]

ALIVE = getattr(signal, "SIGRTMIN", 0)
"""What a worker sends its parent, first when it listens; several of it wait in a row, other signals become one."""
_SIGNS = 6
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that the parent has forked."""

    number: int
    """Its place among the workers; the one that replaces it has the same."""
    listener: socket.socket
    exchange: socket.socket
    """Where the others ask it for its figures."""
    others: Mapping[int, bytes]
    """Where it asks the others, by their numbers."""
    replaced: int
    """How often there was another in its place before."""
    parent: int
    timeout: float
    """Seconds without a sign of life after which the parent replaces it."""

    def end_with_parent(self) -> None:
        """Have the system send SIGTERM when the parent dies, however that happens.

        Raises:
            SystemExit: it has died already.
        """
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self.parent:
            raise SystemExit(1)

    async def join(self, app: FastAPI) -> None:
        """Tell the others its figures and whoever asks those of all, and the parent that it listens."""
        figures_of_all = AggregatedMetrics(self, partial(figures, app.state.service))
        await figures_of_all.start()
        app.state.figures_of_all = figures_of_all.text
        self._show_life()

    def stop_listening(self) -> None:
        """Refuse connections from now on; to close the socket alone would not, since the parent has it as well."""
        self.listener.shutdown(socket.SHUT_RDWR)

    def _show_life(self) -> None:
        """Tell the parent now, and from now on as long as the running event loop runs."""
        if os.getppid() == self.parent:
            os.kill(self.parent, ALIVE)
        asyncio.get_running_loop().call_later(self.timeout / _SIGNS, self._show_life)
