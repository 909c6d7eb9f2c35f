"""What is used of quotas: the limits, the usage under one name, and the decision about one more question."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolchat.messages import immutable

DAY = 86_400
MINUTE = 60
_CLOCK_STEP = 1.0
"""Seconds by which a clock may step back, as between processors of one machine, and no question is forgotten."""
Kind = Literal["concurrent", "day", "minute"]
# The unit of a quota is requests unless it is named; the draft has no word for tokens.
_UNITS = {"minute": f";w={MINUTE}", "concurrent": ';qu="concurrent-requests"', "day": f';qu="tokens";w={DAY}'}


@dataclass(frozen=True, slots=True)
class QuotaLimits:
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


QuotaDecision: TypeAlias = tuple[QuotaLimits, Sequence[QuotaUsage], Kind | None]
"""The limits that refuse a question, with their usage and the kind that refuses it; of an accepted one the first."""


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

    def refresh(self, now: float, lease: float) -> None:
        """Forget what is over, and what is further away than anything can be, since the clock was set back.

        ``lease``: seconds after which a question counts as ended even if its process died.
        """
        if self.day != (today := int(now // DAY)):
            self.day, self.tokens = today, 0
        if not now <= self.even <= now + 2 * MINUTE:
            self.even = now
        if self.running:
            latest = now + lease + _CLOCK_STEP
            self.running = {name: until for name, until in self.running.items() if now < until <= latest}

    def refusing(self, limits: QuotaLimits, now: float) -> Kind | None:
        """The limit that refuses one more question, if any does."""
        if (most := limits.concurrent) is not None and len(self.running) >= most:
            return "concurrent"
        if (most := limits.tokens_per_day) is not None and self.tokens >= most:
            return "day"
        # The whole limit fits into the minute; rounding errors of the sum must not exclude the last question.
        latest = now + MINUTE - limits.interval * (1 - 1e-6)
        return "minute" if limits.interval and self.even > latest else None

    def left(self, limits: QuotaLimits, now: float) -> list[QuotaUsage]:
        """The state of each limit if one more question was counted."""
        usage: list[QuotaUsage] = []
        if (most := limits.concurrent) is not None:
            usage.append(QuotaUsage("concurrent", most, most - len(self.running) - 1, 1))
        if (most := limits.tokens_per_day) is not None:
            usage.append(QuotaUsage("day", most, most - self.tokens, DAY - now % DAY))
        if (most := limits.requests_per_minute) is not None:
            room = (now + MINUTE - self.even - limits.interval) / limits.interval + 1e-6
            wait = (-room if room < 0 else 0.0 if room >= 1 else 1 - room) * limits.interval
            usage.append(QuotaUsage("minute", most, int(room), wait))
        return usage

    def count(self, limits: QuotaLimits, question: str, now: float, lease: float) -> None:
        """Count a question that no limit has refused."""
        if limits.concurrent is not None:
            self.running[question] = now + lease
        self.even += limits.interval

    def renew(self, question: str, until: float) -> None:
        """Count a question as running until then, if it is running."""
        if question in self.running:
            self.running[question] = until

    def settle(self, limits: QuotaLimits, question: str, tokens: int) -> None:
        """End a counted question and charge its tokens."""
        self.running.pop(question, None)
        if limits.tokens_per_day:
            self.tokens += tokens


def reserve(
    used: Sequence[NameUsage], limits: Sequence[QuotaLimits], question: str, *, now: float, lease: float
) -> QuotaDecision:
    """Count a question under every name, or under none if any limit refuses it; the usage is refreshed."""
    # Look first and count afterwards: a question that one limit refuses must not be charged to the others.
    for usage, each in zip(used, limits, strict=True):
        if refusing := usage.refusing(each, now):
            return each, usage.left(each, now), refusing
    left = used[0].left(limits[0], now)
    for usage, each in zip(used, limits, strict=True):
        usage.count(each, question, now, lease)
    return limits[0], left, None
