"""Clients that keep asking for what cannot be answered: guessing keys and ids is made slow."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from app.access.rate import Rate, RateLimiter
from toolchat.errors import TooManyFaults

__all__ = ["FaultyClients"]

_TOLERATED = Rate(10, 60)
"""Faults that an address may make at once, and how long until it may make as many again."""
_STATUSES = frozenset({401, 404, 422})
"""What a guess is answered with."""
_LONGEST_PAUSE = 1.0
_MOST_HELD = 64


class FaultyClients:
    """Holds the answers to an address back that has made too many faults; the faults themselves are told as ever.

    Args:
        max_addresses: addresses that are remembered.
        clock: seconds that never go back.
    """

    def __init__(self, *, max_addresses: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = RateLimiter(max_names=max_addresses, clock=clock)
        self._held: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._rates) + len(self._held)

    def check(self, address: str) -> None:
        """Let a request pass.

        Raises:
            TooManyFaults: so many answers to this address are being held back that no further request is looked at.
        """
        if self._held and self._held[address] >= _MOST_HELD:
            raise TooManyFaults("this address has made too many faults; its answers come slowly", retry_after=1)

    async def hold(self, address: str, status: int) -> None:
        """Count an answer that is a fault, and wait before it is sent where there were too many."""
        if status not in _STATUSES:
            return
        decision = self._rates.hit(address, _TOLERATED)
        if decision.allowed:
            return
        self._held[address] += 1
        try:
            await asyncio.sleep(min(decision.wait, _LONGEST_PAUSE))
        finally:
            self._held[address] -= 1
            if not self._held[address]:
                del self._held[address]
