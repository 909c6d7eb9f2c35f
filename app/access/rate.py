"""Rate limits in memory: the generic cell rate algorithm (GCRA, ITU-T I.371)."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field

from toolchat.messages import immutable

__all__ = ["Decision", "Rate", "RateLimiter", "decide"]


@immutable
class Rate:
    """A limit of events per period; all of them may occur in one burst."""

    limit: int
    seconds: float
    interval: float = field(init=False)
    """Seconds after which one more event is allowed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", self.seconds / self.limit)


@immutable
class Decision:
    """The decision about one more event."""

    allowed: bool
    remaining: int
    """Events that are allowed immediately after this one."""
    wait: float
    """Seconds until one more is allowed; 0 if one is allowed now."""
    even: float
    """The theoretical arrival time of the next event (GCRA), if this one is counted."""


def decide(before: float, rate: Rate, now: float) -> Decision:
    """Decide about one more event.

    Args:
        before: the theoretical arrival time that the last event led to; 0 before the first one.
        rate: the limit.
        now: the time, in seconds.
    """
    interval = rate.interval
    even = (before if before > now else now) + interval
    # The whole limit fits into the period; rounding errors of the sum must not exclude the last event.
    room = (now + rate.seconds - even) / interval + 1e-6
    if room < 0:
        return Decision(False, 0, -room * interval, even)
    return Decision(True, int(room), 0.0 if room >= 1 else (1 - room) * interval, even)


class RateLimiter:
    """Limits the rate of events by name.

    It stores one number for each name: the time at which all of its events would have occurred at an even pace. That
    needs no list of time stamps, and has no window whose edge allows a double burst. Refused events are not counted, so
    that a retry costs nothing.

    Args:
        max_names: the number of names; beyond it, the least recently used one is removed and starts anew.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, *, max_names: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._even: OrderedDict[str, float] = OrderedDict()
        self._max_names = max_names
        self._clock = clock

    def __len__(self) -> int:
        return len(self._even)

    def look(self, name: str, rate: Rate) -> Decision:
        """Decide about one more event without counting it."""
        return decide(self._even.get(name, 0.0), rate, self._clock())

    def hit(self, name: str, rate: Rate) -> Decision:
        """Decide about one more event, and count it if it is allowed."""
        decision = self.look(name, rate)
        if decision.allowed:
            self.count(name, decision)
        return decision

    def count(self, name: str, decision: Decision) -> None:
        """Count an event that was just allowed."""
        self._even[name] = decision.even
        self._even.move_to_end(name)
        if len(self._even) > self._max_names:
            self._even.popitem(last=False)
