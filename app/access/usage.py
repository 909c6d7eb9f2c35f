"""What is used of quotas: the limits, the usage under one name, and the decision about one more question."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.access.rate import Decision, Rate, decide
from toolchat.messages import immutable

__all__ = ["DAY", "MINUTE", "Kind", "Limits", "NameUsage", "QuotaUsage", "refusing", "reserve", "today"]

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
    rate: Rate | None = field(init=False)
    """``requests_per_minute`` as a rate."""
    policy: str = field(init=False)
    """``RateLimit-Policy`` (draft-ietf-httpapi-ratelimit-headers, sections 3 and 4); empty without any limit."""

    def __post_init__(self) -> None:
        items = [f'"{kind}";q={bound}{_UNITS[kind]}' for kind, bound in self.bounds.items()]
        object.__setattr__(self, "policy", ", ".join(items))
        per_minute = self.requests_per_minute
        object.__setattr__(self, "rate", None if per_minute is None else Rate(per_minute, MINUTE))

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
    refused: bool = False

    @property
    def item(self) -> str:
        """The item of the header ``RateLimit``."""
        remaining = self.remaining if self.remaining > 0 else 0
        return f'"{self.kind}";r={remaining};t={math.ceil(self.wait)}'


def today() -> int:
    """The number of the current day, in UTC since 1970."""
    return int(time.time()) // DAY


def _until_tomorrow() -> float:
    return DAY - time.time() % DAY


@dataclass(slots=True)
class NameUsage:
    """What has been used under one name."""

    even: float = 0.0
    """The theoretical arrival time of the next question (GCRA)."""
    running: dict[str, float] = field(default_factory=dict)
    """The running questions, with the time at which each counts as ended even if its process died."""
    day: int = 0
    tokens: int = 0
    """The tokens of that day, which is counted in UTC since 1970."""

    def start_day(self, today: int) -> None:
        """Forget the tokens of an earlier day."""
        if self.day != today:
            self.day, self.tokens = today, 0

    def left(self, limits: Limits, now: float) -> tuple[list[QuotaUsage], Decision | None]:
        """The state of each limit if one more question was counted, and the decision about its pace."""
        usage: list[QuotaUsage] = []
        decision: Decision | None = None
        if (most := limits.concurrent) is not None:
            self._forget_ended(now)
            left = most - len(self.running) - 1
            usage.append(QuotaUsage("concurrent", most, left, 1, left < 0))
        if (most := limits.tokens_per_day) is not None:
            left = most - self.tokens
            usage.append(QuotaUsage("day", most, left, _until_tomorrow(), left <= 0))
        if limits.rate is not None:
            # A clock that was set back must not refuse questions for as long.
            decision = decide(min(self.even, now + MINUTE), limits.rate, now)
            refused = not decision.allowed
            usage.append(QuotaUsage("minute", limits.rate.limit, decision.remaining, decision.wait, refused))
        return usage, decision

    def _forget_ended(self, now: float) -> None:
        # The oldest is the first: looking at all of them would cost each question more, the more are running.
        while (first := next(iter(self.running), None)) is not None and self.running[first] <= now:
            del self.running[first]

    def count(self, limits: Limits, question: str, until: float, decision: Decision | None) -> None:
        """Count a question that no limit has refused."""
        if limits.concurrent is not None:
            self.running[question] = until
        if decision is not None:
            self.even = decision.even

    def settle(self, limits: Limits, question: str, tokens: int) -> None:
        """End a counted question and charge its tokens."""
        self.running.pop(question, None)
        if limits.tokens_per_day:
            self.tokens += tokens


def reserve(
    used: Sequence[NameUsage], limits: Sequence[Limits], question: str, *, now: float, longest: float
) -> list[list[QuotaUsage]]:
    """Count a question under every name, or under none if any limit refuses it."""
    # Look first and count afterwards: a question that one limit refuses must not be charged to the others.
    left = [usage.left(each, now) for usage, each in zip(used, limits, strict=True)]
    if not any(refusing(usage) for usage, _ in left):
        for usage, each, (_, decision) in zip(used, limits, left, strict=True):
            usage.count(each, question, now + longest, decision)
    return [usage for usage, _ in left]


def refusing(usage: Sequence[QuotaUsage]) -> QuotaUsage | None:
    """The limit that refuses a question, if any does."""
    for each in usage:
        if each.refused:
            return each
    return None
