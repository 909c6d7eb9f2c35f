"""Rate limiter for an upstream with a limit of requests per second, fair across clients."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Mapping

from toolchat import ToolExecutionError, current_client_key, instruments

_LEAST_DELAY = 0.001
"""Event loops count timers in milliseconds; a shorter delay would only spin."""


class Pacer:
    """Spaces requests so that they never exceed the rate.

    Waiting calls are served round-robin across clients, so many calls of one client do not delay the first call of
    another. The calls of one client are served in order. A call that is cancelled while it waits leaves its line.

    Args:
        rate: requests per second; may be less than one, or infinite.
        max_wait: seconds that a call may wait.
    """

    def __init__(self, rate: float, max_wait: float) -> None:
        self._interval = 1 / rate
        self._max_wait = max_wait
        self._free_at = 0.0
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """One for each who waits; the first one's first is next."""
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, *, ahead: bool = False) -> None:
        """Wait until a request may be sent.

        Args:
            ahead: go before the client's other calls, for the retry of a call that has waited already.

        Raises:
            ToolExecutionError: the wait is too long (``busy``); raised at once if that is known beforehand.
        """
        client_key, began = current_client_key(), time.monotonic()
        # Refused at once rather than after max_wait: the model can do something else in that time.
        wait = self._free_at - time.monotonic() + _before(client_key, self._lines, ahead=ahead) * self._interval
        if wait > self._max_wait:
            raise _busy(wait)
        if wait <= 0 and not self._lines:
            self._free_at = time.monotonic() + self._interval
            instruments.observer.record_wait("pace", 0)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._lines.setdefault(client_key, deque())
        line.insert(0 if ahead else len(line), place)
        self._set_timer()
        limit = self._max_wait + self._interval
        try:
            async with asyncio.timeout(limit):
                await place
        except TimeoutError:
            raise _busy(limit) from None
        finally:
            if place in line:
                line.remove(place)
                if not line:
                    del self._lines[client_key]
                self._set_timer()
        instruments.observer.record_wait("pace", time.monotonic() - began)

    def hold(self, seconds: float) -> None:
        """Let no request through for some seconds."""
        self._free_at = max(self._free_at, time.monotonic() + seconds)

    def _grant(self) -> None:
        if self._lines and time.monotonic() >= self._free_at:
            client_key, line = self._lines.popitem(last=False)
            place = line.popleft()
            if line:
                self._lines[client_key] = line
            if not place.done():
                self._free_at = time.monotonic() + self._interval
                place.set_result(None)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._lines:
            delay = max(self._free_at - time.monotonic(), _LEAST_DELAY)
            self._timer = asyncio.get_running_loop().call_later(delay, self._grant)


def _before(client_key: str, lines: Mapping[str, deque[asyncio.Future[None]]], *, ahead: bool) -> int:
    """Return how many requests go before the next one of a client."""
    # Round-robin: before a client's call number n, every other client is served n times at most.
    own = 0 if ahead else len(lines.get(client_key, ()))
    return own + sum(min(len(line), own + 1) for each, line in lines.items() if each != client_key)


def _busy(wait: float) -> ToolExecutionError:
    return ToolExecutionError(
        f"too many translations are waiting; this one was not sent, its turn would be {wait:.1f} s away",
        kind="busy",
        hint="put several texts into one call, one per line, or try again later",
    )
