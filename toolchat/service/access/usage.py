"""What is used of quotas: the limits, the usage under one name, and the decision about one more question."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import toolchat.instruments as instruments
from toolchat.messages import immutable

DAY = 86_400
MINUTE = 60
Kind = Literal["concurrent", "day", "minute"]
# The unit of a quota is requests unless it is named; the draft has no word for tokens.
_UNITS = {"minute": f";w={MINUTE}", "concurrent": ';qu="concurrent-requests"', "day": f';qu="tokens";w={DAY}'}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one principal, or of all principals in total; ``None`` means no limit."""

    name: str
    """The name that usage is counted under."""
    requests_per_minute: int | None = None
    concurrent: int | None = None
    tokens_per_day: int | None = None
    interval: float = field(init=False)
    """Seconds after which one more question of ``requests_per_minute`` is allowed; 0 without that limit."""
    policy: str = field(init=False)
    """``RateLimit-Policy`` (draft-ietf-httpapi-ratelimit-headers, sections 3 and 4); empty without any limit."""

    def __post_init__(self) -> None:
        items = [f'"{kind}";q={bound}{_UNITS[kind]}' for kind, bound in self.bounds.items()]
        object.__setattr__(self, "policy", ", ".join(items))
        object.__setattr__(self, "interval", MINUTE / self.requests_per_minute if self.requests_per_minute else 0.0)

    @property
    def bounds(self) -> dict[Kind, int]:
        """The limits that are set, by kind."""
        bounds: dict[Kind, int | None] = {
            "concurrent": self.concurrent,
            "day": self.tokens_per_day,
            "minute": self.requests_per_minute,
        }
        return {kind: bound for kind, bound in bounds.items() if bound is not None}


@immutable
class QuotaUsage:
    """The state of one limit after a question was accepted or refused."""

    kind: Kind
    limit: int
    remaining: int
    wait: float
    """Seconds until the quota grows again; for a refused question, until the next one is accepted."""


Decision: TypeAlias = tuple[Limits, Sequence[QuotaUsage], Kind | None]
"""The limits that refuse a question, with their usage and the kind that refuses it; of an accepted one the first."""


def today() -> int:
    """The number of the current day, in UTC since 1970."""
    return int(time.time()) // DAY


@dataclass(slots=True)
class NameUsage:
    """What has been used under one name.

    Questions per minute are limited by the generic cell rate algorithm (GCRA, ITU-T I.371). It needs no list of time
    stamps, and has no window whose edge allows a double burst: all questions of a minute may come at once.
    """

    even: float = 0.0
    """The time at which all questions would have come at an even pace."""
    running: dict[str, float] = field(default_factory=dict)
    """The running questions, with the time at which each counts as ended even if its process died."""
    day: int = 0
    tokens: int = 0
    """The tokens of that day, which is counted in UTC since 1970."""

    def start_day(self, today: int) -> None:
        """Forget the tokens of an earlier day."""
        if self.day != today:
            self.day, self.tokens = today, 0

    def refusing(self, limits: Limits, now: float) -> Kind | None:
        """The limit that refuses one more question, if any does."""
        if (most := limits.concurrent) is not None:
            self._forget_ended(now)
            if len(self.running) >= most:
                return "concurrent"
        if (most := limits.tokens_per_day) is not None and self.tokens >= most:
            return "day"
        # The whole limit fits into the minute; rounding errors of the sum must not exclude the last question.
        latest = now + MINUTE - limits.interval * (1 - 1e-6)
        return "minute" if limits.interval and self.even > latest else None

    def left(self, limits: Limits, now: float) -> list[QuotaUsage]:
        """The state of each limit if one more question was counted."""
        usage: list[QuotaUsage] = []
        if (most := limits.concurrent) is not None:
            usage.append(QuotaUsage("concurrent", most, most - len(self.running) - 1, 1))
        if (most := limits.tokens_per_day) is not None:
            usage.append(QuotaUsage("day", most, most - self.tokens, DAY - time.time() % DAY))
        if (most := limits.requests_per_minute) is not None:
            room = (now + MINUTE - self.even_after(1, limits, now)) / limits.interval + 1e-6
            wait = (-room if room < 0 else 0.0 if room >= 1 else 1 - room) * limits.interval
            usage.append(QuotaUsage("minute", most, int(room), wait))
        return usage

    def even_after(self, questions: int, limits: Limits, now: float) -> float:
        """``even`` after some more questions."""
        # A clock that was set back must not refuse questions for as long.
        return max(min(self.even, now + MINUTE), now) + questions * limits.interval

    def _forget_ended(self, now: float) -> None:
        # The oldest is the first: looking at all of them would cost each question more, the more are running.
        while (first := next(iter(self.running), None)) is not None and self.running[first] <= now:
            del self.running[first]

    def count(self, limits: Limits, question: str, now: float, longest: float) -> None:
        """Count a question that no limit has refused."""
        if limits.concurrent is not None:
            self.running[question] = now + longest
        self.even = self.even_after(1, limits, now)

    def settle(self, limits: Limits, question: str, tokens: int) -> None:
        """End a counted question and charge its tokens."""
        self.running.pop(question, None)
        if limits.tokens_per_day:
            self.tokens += tokens


def reserve(
    used: Sequence[NameUsage], limits: Sequence[Limits], question: str, *, now: float, longest: float
) -> Decision:
    """Count a question under every name, or under none if any limit refuses it."""
    # Look first and count afterwards: a question that one limit refuses must not be charged to the others.
    for usage, each in zip(used, limits, strict=True):
        if refusing := usage.refusing(each, now):
            return each, usage.left(each, now), refusing
    return count(used, limits, question, now=now, longest=longest)


def count(
    used: Sequence[NameUsage], limits: Sequence[Limits], question: str, *, now: float, longest: float
) -> Decision:
    """Count a question that no limit refuses under every name."""
    left = used[0].left(limits[0], now)
    for usage, each in zip(used, limits, strict=True):
        usage.count(each, question, now, longest)
    return limits[0], left, None


@contextmanager
def observed_wait() -> Generator[None, None, None]:
    """Record the duration of the block, which waits for a shared store."""
    began = time.perf_counter()
    try:
        yield
    finally:
        instruments.observer.record_wait("place", time.perf_counter() - began)
