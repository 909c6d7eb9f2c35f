"""Quotas: limits on questions per minute, concurrent questions and tokens per day, per principal and in total."""

import itertools
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from pydantic_core import from_json, to_json

from toolchat.errors import QuotaExceeded, StoreUnavailable
from toolchat.service.access.principals import Principal
from toolchat.service.access.sqlite_quotas import SqliteQuotas
from toolchat.service.access.usage import (
    MINUTE,
    Decision,
    Kind,
    Limits,
    NameUsage,
    QuotaUsage,
    observed_wait,
    reserve,
    today,
)
from toolchat.state.base import StateStore
from toolchat.state.sqlite import SqliteStateStore

_MAX_NAMES = 10_000
"""Names whose usage a process counts; beyond them, the one that was not used for longest starts anew."""
_MEANING = {"minute": "questions per minute", "concurrent": "questions at once", "day": "tokens per day (UTC)"}


class QuotaStore(Protocol):
    """Counts usage."""

    async def reserve(self, limits: Sequence[Limits], question: int) -> Decision:
        """Count a question under every name, or under none if any limit refuses it."""
        ...

    async def settle(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        """End a counted question and charge its tokens."""
        ...


class LocalQuotas:
    """Counts usage in this process.

    Args:
        clock: a monotonic clock, in seconds.
        today: returns the number of the current day, in UTC.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, today: Callable[[], int] = today) -> None:
        self._usage = lru_cache(_MAX_NAMES)(lambda _name: NameUsage())
        self._clock = clock
        self._today = today

    async def reserve(self, limits: Sequence[Limits], question: int) -> Decision:
        return reserve(self._used(limits), limits, str(question), now=self._clock(), longest=math.inf)

    async def settle(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        name = str(question)
        for used, each in zip(self._used(limits), limits, strict=True):
            used.settle(each, name, tokens)

    def _used(self, limits: Sequence[Limits]) -> list[NameUsage]:
        today, found = self._today(), []
        for each in limits:
            used = self._usage(each.name)
            used.start_day(today)
            found.append(used)
        return found


@dataclass(slots=True)
class QuotaReservation:
    """An accepted question: the limits that it counts under, and its usage so far."""

    limits: Sequence[Limits] = ()
    usage: Sequence[QuotaUsage] = ()
    """The state of the principal's own limits, or of the total limits if the principal has none."""
    tokens: int = 0
    """Tokens to charge; set when the question has been answered."""
    question: int = 0
    store: QuotaStore | None = None
    """The store that counted it; ``None`` if no limit applies."""

    @property
    def headers(self) -> dict[str, str]:
        """``RateLimit-Policy`` and ``RateLimit``; empty if no limit applies."""
        return rate_limit_headers(self.limits[0], self.usage) if self.usage else {}


class Quotas:
    """Accepts or refuses questions, and charges their usage to the principal and to the total."""

    def __init__(self, store: QuotaStore, total: Limits) -> None:
        self._store = store
        self._total = total
        self._limits = lru_cache(1000)(self._limits_of)  # of its name and limits: hashing a whole principal costs more
        self._numbers = itertools.count(1)
        self._local = store if isinstance(store, LocalQuotas) else LocalQuotas()
        self.alone = False
        """Whether the last question was counted in this process because the shared store was unavailable."""

    async def reserve(self, principal: Principal) -> QuotaReservation:
        """Accept a question of a principal."""
        bounds = principal.requests_per_minute, principal.concurrent, principal.tokens_per_day
        limits = self._limits(principal.name, *bounds)
        if not limits:
            return QuotaReservation()
        reservation = QuotaReservation(limits, question=next(self._numbers))
        try:
            decisive, reservation.usage, refused = await self._store.reserve(limits, reservation.question)
            self.alone, reservation.store = False, self._store
        except StoreUnavailable:
            # Availability comes first: while Redis is down each process applies the whole limit by itself.
            decisive, reservation.usage, refused = await self._local.reserve(limits, reservation.question)
            self.alone, reservation.store = True, self._local
        if refused:
            raise _exceeded(decisive, reservation.usage, refused)
        return reservation

    def _limits_of(self, name: str, *bounds: int | None) -> Sequence[Limits]:
        """The limits that apply to a principal: its own, and the total."""
        return [each for each in (Limits(f"key:{name}", *bounds), self._total) if each.policy]

    async def aclose(self) -> None:
        """Write what is counted and not written yet."""
        if isinstance(self._store, SqliteQuotas):
            await self._store.aclose()

    async def settle(self, reservation: QuotaReservation) -> None:
        """End an accepted question; if the store is unavailable, its tokens are not charged."""
        if reservation.store is None:
            return
        try:
            await reservation.store.settle(reservation.limits, reservation.question, reservation.tokens)
        except StoreUnavailable:
            self.alone = True


def _exceeded(limits: Limits, usage: Sequence[QuotaUsage], kind: Kind) -> QuotaExceeded:
    refused = next(each for each in usage if each.kind == kind)
    detail = f"{refused.limit} {_MEANING[kind]} are used up"
    headers = rate_limit_headers(limits, usage)
    return QuotaExceeded(detail, kind, retry_after=refused.wait, headers=headers, usage=usage)


def rate_limit_headers(limits: Limits, usage: Sequence[QuotaUsage]) -> dict[str, str]:
    """The headers ``RateLimit-Policy`` and ``RateLimit``."""
    items = [f'"{each.kind}";r={max(each.remaining, 0)};t={math.ceil(each.wait)}' for each in usage]
    return {"RateLimit-Policy": limits.policy, "RateLimit": ", ".join(items)}


# The generic cell rate algorithm (GCRA), as in usage.py: one number per name, the time at which all of its questions
# would have been sent at an even pace. It needs one key instead of a list of time stamps, and it cannot be gamed at the
# edge of a window. One script checks and counts: between two commands another replica could take the last question.
# Redis' own clock is used, so that replicas whose clocks differ agree.
#
# KEYS: for each name three: its pace (GCRA), its running questions (a sorted set, scored by the time at which a
# question counts as ended even if its process died), and the prefix of its tokens per day.
# ARGV[1]: JSON with question, longest (ms) and limits, one object of minute, concurrent and day for each name.
# Returns JSON: for each name an object with, for each limit that is set, the remaining number (negative: refused) and
# the milliseconds to wait. A refused question changes nothing.
_RESERVE: Final = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local today = math.floor(clock[1] / 86400)
local request = cjson.decode(ARGV[1])
local usage, paces, refused = {}, {}, false
for n, limits in ipairs(request.limits) do
  local pace, running, tokens = KEYS[n * 3 - 2], KEYS[n * 3 - 1], KEYS[n * 3] .. today
  local found = {}
  if limits.concurrent then
    redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
    found.concurrent = {limits.concurrent - redis.call('ZCARD', running) - 1, 1000}
  end
  if limits.day then
    local left = limits.day - tonumber(redis.call('GET', tokens) or 0)
    if left == 0 then left = -1 end
    found.day = {left, (86400 - clock[1] % 86400) * 1000}
  end
  if limits.minute then
    local interval = 60000 / limits.minute
    local even = math.max(tonumber(redis.call('GET', pace) or 0), now) + interval
    local room = (now + 60000 - even) / interval + 0.000001
    local wait = 0
    if room < 0 then wait = -room * interval elseif room < 1 then wait = (1 - room) * interval end
    found.minute = {math.floor(room), math.ceil(wait)}
    paces[pace] = even
  end
  for _, each in pairs(found) do refused = refused or each[1] < 0 end
  usage[n] = found
end
if not refused then
  for pace, even in pairs(paces) do
    redis.call('SET', pace, string.format('%.3f', even), 'PX', math.ceil(even - now) + 1000)
  end
  for n, limits in ipairs(request.limits) do
    if limits.concurrent then
      redis.call('ZADD', KEYS[n * 3 - 1], now + request.longest, request.question)
      redis.call('PEXPIRE', KEYS[n * 3 - 1], request.longest)
    end
  end
end
return cjson.encode(usage)
"""
# KEYS: for each name its running questions and the prefix of its tokens per day.
# ARGV: the question, and its tokens. Counters outlive their day by one day, so that clocks may differ.
_SETTLE: Final = """
local today = math.floor(redis.call('TIME')[1] / 86400)
for n = 1, #KEYS, 2 do
  redis.call('ZREM', KEYS[n], ARGV[1])
  if tonumber(ARGV[2]) > 0 then
    redis.call('INCRBY', KEYS[n + 1] .. today, ARGV[2])
    redis.call('EXPIRE', KEYS[n + 1] .. today, 172800)
  end
end
return 1
"""


class RedisQuotas:
    """Counts usage in Redis, for all replicas; every operation raises ``StoreUnavailable``.

    All keys have one hash tag: a script needs its keys on one node of a cluster.

    Args:
        longest: seconds after which a question counts as ended even if its process died.
    """

    def __init__(self, store: StateStore, *, longest: float) -> None:
        self._reserve, self._settle = store.script("quota enter", _RESERVE), store.script("quota leave", _SETTLE)
        self._longest = round(longest * 1000)
        self._process = secrets.token_hex(8)

    async def reserve(self, limits: Sequence[Limits], question: int) -> Decision:
        keys = [f"quota:{{q}}:{each.name}:{part}" for each in limits for part in ("pace", "running", "tokens:")]
        request = {
            "question": self._name(question),
            "longest": self._longest,
            "limits": [each.bounds for each in limits],
        }
        with observed_wait():
            found = from_json(await self._reserve(keys, [to_json(request)]))
        usage = [_usage_of(each, quotas) for each, quotas in zip(limits, found, strict=True)]
        for each, quotas in zip(limits, usage, strict=True):
            if refusing := [quota.kind for quota in quotas if quota.remaining < 0]:
                return each, quotas, refusing[0]
        return limits[0], usage[0], None

    async def settle(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        keys = [f"quota:{{q}}:{each.name}:{part}" for each in limits for part in ("running", "tokens:")]
        await self._settle(keys, [self._name(question), tokens])

    def _name(self, question: int) -> str:
        """The question's name among those of all replicas."""
        return f"{self._process}:{question}"


def _usage_of(limits: Limits, found: Mapping[Kind, tuple[int, float]]) -> list[QuotaUsage]:
    usage = []
    for kind, bound in limits.bounds.items():
        remaining, wait = found[kind]
        usage.append(QuotaUsage(kind, bound, remaining, wait / 1000))
    return usage


def open_quotas(store: StateStore, total: Limits, longest: float) -> Quotas:
    """Count usage in the state store if processes share it, else in this process."""
    if store.kind == "redis":
        return Quotas(RedisQuotas(store, longest=longest + MINUTE), total)
    if store.kind == "sqlite" and isinstance(store, SqliteStateStore):
        return Quotas(SqliteQuotas(store, longest=longest + MINUTE), total)
    return Quotas(LocalQuotas(), total)
