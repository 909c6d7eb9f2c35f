"""How often somebody may do something: the generic cell rate algorithm (GCRA, ITU-T I.371), in memory."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field

from toolchat.messages import immutable

__all__ = ["Decision", "Rate", "RateLimiter"]


@immutable
class Rate:
    """So many within so many seconds, all of them at once if need be."""

    limit: int
    seconds: float
    interval: float = field(init=False)
    """Seconds after which one more is allowed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", self.seconds / self.limit)


@immutable
class Decision:
    """What a limiter says to one more."""

    allowed: bool
    remaining: int
    """How many more are allowed at once after this one."""
    wait: float
    """Seconds until one more is allowed; 0 where one is allowed now."""
    even: float
    """When all would have been done at an even pace, this one included."""


class RateLimiter:
    """Lets each name do something at a rate.

    One number is kept for each name: the time at which all that it has done would have been done at an even pace.
    Whoever is refused is counted as if it had not come, so that trying again costs nothing.

    Args:
        max_names: numbers that are kept; the name that came least recently is forgotten, and begins anew.
        clock: seconds that never go back.
    """

    def __init__(self, *, max_names: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._even: OrderedDict[str, float] = OrderedDict()
        self._max_names = max_names
        self._clock = clock

    def __len__(self) -> int:
        return len(self._even)

    def look(self, name: str, rate: Rate) -> Decision:
        """Whether one more is allowed; nothing is counted."""
        now, interval = self._clock(), rate.interval
        before = self._even.get(name, now)
        even = (before if before > now else now) + interval
        # A limit's worth of intervals fits into the time; the rounding of their sum must not take the last one away.
        room = (now + rate.seconds - even) / interval + 1e-6
        if room < 0:
            return Decision(False, 0, -room * interval, even)
        return Decision(True, int(room), 0.0 if room >= 1 else (1 - room) * interval, even)

    def hit(self, name: str, rate: Rate) -> Decision:
        """Ask for one more, and count it if it is allowed."""
        decision = self.look(name, rate)
        if decision.allowed:
            self.count(name, decision)
        return decision

    def count(self, name: str, decision: Decision) -> None:
        """Count one that was allowed just now."""
        self._even[name] = decision.even
        self._even.move_to_end(name)
        if len(self._even) > self._max_names:
            self._even.popitem(last=False)
