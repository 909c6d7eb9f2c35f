"""Keeps requests apart, as an upstream with a limit per second asks for."""

import asyncio
import time
from collections import deque

from app.tool_calling.errors import ToolExecutionError

__all__ = ["Pacer"]

_LEAST_DELAY = 0.001
"""Event loops count timers in milliseconds; a shorter delay would only spin."""


class Pacer:
    """Gives out turns in the order of asking, never two closer together than the rate allows.

    A turn that was given to a call which is cancelled goes to the next in line.

    Args:
        rate: turns per second; may be less than one, or infinite.
        max_wait: seconds that a call may wait for its turn.
    """

    def __init__(self, rate: float, max_wait: float) -> None:
        self._interval = 1 / rate
        self._max_wait = max_wait
        self._free_at = 0.0
        self._line: deque[asyncio.Future[float]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, *, ahead: bool = False) -> None:
        """Wait for a turn.

        Args:
            ahead: stand first in line, as a call may that has had a turn and must try again.

        Raises:
            ToolExecutionError: the wait would be too long (kind ``busy``); refused at once where that is foreseen.
        """
        wait = self._free_at - time.monotonic() + (0 if ahead else len(self._line)) * self._interval
        if wait > self._max_wait:
            raise _busy(wait)
        if wait <= 0 and not self._line:
            self._take()
            return
        place: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        (self._line.appendleft if ahead else self._line.append)(place)
        self._set_timer()
        await self._granted(place)

    def hold(self, seconds: float) -> None:
        """Give no turn to anybody for some seconds."""
        self._free_at = max(self._free_at, time.monotonic() + seconds)

    async def _granted(self, place: asyncio.Future[float]) -> None:
        limit = self._max_wait + self._interval
        try:
            async with asyncio.timeout(limit):
                await place
        except TimeoutError:
            self._give_back(place)
            raise _busy(limit) from None
        except asyncio.CancelledError:
            self._give_back(place)
            raise

    def _take(self) -> float:
        self._free_at = time.monotonic() + self._interval
        return self._free_at

    def _give_back(self, place: asyncio.Future[float]) -> None:
        if place in self._line:
            self._line.remove(place)
        elif not place.cancelled() and self._free_at == place.result():
            self._free_at -= self._interval
        self._set_timer()

    def _grant(self) -> None:
        while self._line and self._line[0].done():
            self._line.popleft()
        if self._line and time.monotonic() >= self._free_at:
            self._line.popleft().set_result(self._take())
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._line:
            delay = max(self._free_at - time.monotonic(), _LEAST_DELAY)
            self._timer = asyncio.get_running_loop().call_later(delay, self._grant)


def _busy(wait: float) -> ToolExecutionError:
    return ToolExecutionError(
        f"too many translations are waiting; this one was not sent, its turn would be {wait:.1f} s away",
        kind="busy",
        hint="put several texts into one call, one per line, or try again later",
    )
