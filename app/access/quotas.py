"""Quotas: how many questions a minute and at once, and how many tokens a day, a principal and all together may use."""

import itertools
import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, Protocol

from app.access.rate import Decision, Rate, RateLimiter
from toolchat import instruments
from toolchat.callers import Principal
from toolchat.errors import QuotaExceeded, StoreUnavailable
from toolchat.messages import immutable
from toolchat.state.base import StateStore

__all__ = ["Kind", "Limits", "LocalQuotas", "QuotaReservation", "QuotaStore", "Quotas", "RedisQuotas", "Standing"]


_DAY = 86_400
_MINUTE = 60
Kind = Literal["concurrent", "day", "minute"]
_MEANING = {"minute": "questions per minute", "concurrent": "questions at once", "day": "tokens per day (UTC)"}
# The unit of a quota is requests unless it is named; the draft has no word for tokens.
_UNITS = {"minute": f";w={_MINUTE}", "concurrent": ';qu="concurrent-requests"', "day": f';qu="tokens";w={_DAY}'}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one name may use; ``None`` where there is no limit."""

    name: str
    """Whose limits these are."""
    requests_per_minute: int | None = None
    concurrent: int | None = None
    tokens_per_day: int | None = None
    rate: Rate | None = field(init=False)
    """How often it may ask."""
    policy: str = field(init=False)
    """``RateLimit-Policy`` (draft-ietf-httpapi-ratelimit-headers, sections 3 and 4); empty where there is no limit."""

    def __post_init__(self) -> None:
        bounds = {"concurrent": self.concurrent, "day": self.tokens_per_day, "minute": self.requests_per_minute}
        items = [f'"{kind}";q={bound}{_UNITS[kind]}' for kind, bound in bounds.items() if bound is not None]
        object.__setattr__(self, "policy", ", ".join(items))
        per_minute = self.requests_per_minute
        object.__setattr__(self, "rate", None if per_minute is None else Rate(per_minute, _MINUTE))

    def shared_by(self, replicas: int) -> "Limits":
        """The share of one of several replicas, at least one of each."""
        limits = (self.requests_per_minute, self.concurrent, self.tokens_per_day)
        return Limits(self.name, *(None if each is None else max(1, each // replicas) for each in limits))


@immutable
class Standing:
    """Where somebody stands with one limit after a question was let in or refused."""

    kind: Kind
    limit: int
    remaining: int
    wait: float
    """Seconds until there is more; where it was refused, until one more is allowed."""
    refused: bool = False

    @property
    def state(self) -> str:
        """The item of ``RateLimit``."""
        remaining = self.remaining if self.remaining > 0 else 0
        return f'"{self.kind}";r={remaining};t={math.ceil(self.wait)}'


class QuotaStore(Protocol):
    """Keeps what has been used."""

    async def enter(self, limits: Sequence[Limits], question: int) -> Sequence[Sequence[Standing]]:
        """Count a question under every name, or under none where one limit refuses it; where the limits of each stand.

        A limit that there is not is left out; the others come in the order of :data:`Kind`. The question's number is
        its own among those of this process.
        """
        ...

    async def leave(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        """Note that a question was answered, and what it has used."""
        ...


class LocalQuotas:
    """Keeps in this process what has been used.

    Args:
        clock: seconds that never go back.
        today: the number of the day, in UTC.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], int] = lambda: int(time.time()) // _DAY,
    ) -> None:
        self._rates = RateLimiter(clock=clock)
        self._running: dict[str, int] = {}
        self._today = today
        self._day = today()
        self._tokens: Counter[str] = Counter()

    async def enter(self, limits: Sequence[Limits], question: int) -> Sequence[Sequence[Standing]]:  # noqa: ARG002
        """See :meth:`QuotaStore.enter`."""
        self._begin_day()
        decisions = [None if each.rate is None else self._rates.look(each.name, each.rate) for each in limits]
        standings = list(map(self._standings, limits, decisions))
        if not any(map(_refused, standings)):
            for each, decision in zip(limits, decisions, strict=True):
                if each.concurrent is not None:
                    self._running[each.name] = self._running.get(each.name, 0) + 1
                if decision is not None:
                    self._rates.count(each.name, decision)
        return standings

    async def leave(self, limits: Sequence[Limits], question: int, tokens: int) -> None:  # noqa: ARG002
        """See :meth:`QuotaStore.leave`."""
        self._begin_day()
        for each in limits:
            if each.concurrent is not None:
                self._running[each.name] -= 1
                if self._running[each.name] <= 0:
                    del self._running[each.name]
            if each.tokens_per_day:
                self._tokens[each.name] += tokens

    def _standings(self, limits: Limits, decision: Decision | None) -> list[Standing]:
        found = []
        if (most := limits.concurrent) is not None:
            left = most - self._running.get(limits.name, 0) - 1
            found.append(Standing("concurrent", most, left, 1, left < 0))
        if (most := limits.tokens_per_day) is not None:
            left = most - self._tokens[limits.name]
            found.append(Standing("day", most, left, _until_tomorrow(), left <= 0))
        if decision is not None and limits.rate is not None:
            refused = not decision.allowed
            found.append(Standing("minute", limits.rate.limit, decision.remaining, decision.wait, refused))
        return found

    def _begin_day(self) -> None:
        if self._day != self._today():
            self._day = self._today()
            self._tokens.clear()


def _until_tomorrow() -> float:
    return _DAY - time.time() % _DAY


@dataclass(slots=True)
class QuotaReservation:
    """A question that was let in: what its answer's headers say, and what it has used once it is answered."""

    limits: Sequence[Limits] = ()
    headers: dict[str, str] = field(default_factory=dict)
    """Where its own principal stands, or all together where that has no limit."""
    tokens: int = 0
    """Set by whoever answers the question."""
    question: int = 0
    store: QuotaStore | None = None
    """Where it was counted; ``None`` where nothing limits it."""

    @property
    def counts_tokens(self) -> bool:
        """Whether anybody wants to know how many tokens it has used."""
        return any(each.tokens_per_day is not None for each in self.limits)


class Quotas:
    """Lets questions in and counts what they use, by each principal and by all together.

    Args:
        store: keeps what has been used.
        together: the limits of all.
        replicas: how many processes share the limits, as last seen; while the store is away each goes on with its
            share, counted by itself.
    """

    def __init__(self, store: QuotaStore, together: Limits, replicas: Callable[[], int] = lambda: 1) -> None:
        self._store = store
        self._together = together
        self._replicas = replicas
        self._limits = lru_cache(1000)(self._limits_of)
        self._numbers = itertools.count(1)
        self._local = store if isinstance(store, LocalQuotas) else LocalQuotas()
        self.refused: Counter[Kind] = Counter()
        """Questions that were refused, by the limit that did."""
        self.alone = False
        """Whether the last question was counted by this process alone although the limits are shared."""

    async def enter(self, principal: Principal) -> QuotaReservation:
        """Let a question in.

        Raises:
            QuotaExceeded: a limit refuses it; nothing was counted.
        """
        limits = self._limits(principal)
        if not limits:
            return QuotaReservation()
        spending = QuotaReservation(limits, question=next(self._numbers))
        began = time.perf_counter()
        standings = await self._count(spending)
        instruments.observer.record_wait("place", time.perf_counter() - began)
        for each, found in zip(spending.limits, standings, strict=True):
            if (refused := _refused(found)) is not None:
                self.refused[refused.kind] += 1
                detail = f"{refused.limit} {_MEANING[refused.kind]} are used up"
                raise QuotaExceeded(detail, refused.kind, retry_after=refused.wait, headers=_headers(each, found))
        spending.headers = _headers(spending.limits[0], standings[0])
        return spending

    def _limits_of(self, principal: Principal) -> Sequence[Limits]:
        """What limits a principal: its own limits, and those of all together."""
        bounds = principal.requests_per_minute, principal.concurrent, principal.tokens_per_day
        return [each for each in (Limits(f"key:{principal.name}", *bounds), self._together) if each.policy]

    async def _count(self, spending: QuotaReservation) -> Sequence[Sequence[Standing]]:
        try:
            standings = await self._store.enter(spending.limits, spending.question)
        except StoreUnavailable:
            self.alone = True
            spending.store = self._local
            spending.limits = [each.shared_by(self._replicas()) for each in spending.limits]
            return await self._local.enter(spending.limits, spending.question)
        self.alone = False
        spending.store = self._store
        return standings

    async def leave(self, spending: QuotaReservation) -> None:
        """Note that a question was answered; what cannot be noted now is not charged."""
        if spending.store is None:
            return
        try:
            await spending.store.leave(spending.limits, spending.question, spending.tokens)
        except StoreUnavailable:
            self.alone = True


def _refused(standings: Sequence[Standing]) -> Standing | None:
    """The limit that refuses a question, if one does."""
    for each in standings:
        if each.refused:
            return each
    return None


def _headers(limits: Limits, standings: Sequence[Standing]) -> dict[str, str]:
    return {"RateLimit-Policy": limits.policy, "RateLimit": ", ".join([each.state for each in standings])}


_REPLICA_SECONDS: Final = 60
"""Seconds after its last question for which a process counts as one of the replicas."""

# KEYS: the replicas, then for each name its pace, its running questions and its tokens of the day.
# ARGV: the question, its longest time in ms, this replica, and for each name the limits: per minute, at once, tokens;
# -1 where there is none. Gives the number of replicas, then for each limit that there is its number (0 to 2), what is
# left (below 0: refused) and the milliseconds to wait. The server's clock counts, so that replicas agree; a call that
# is refused changes nothing.
_ENTER: Final = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local replicas = KEYS[1]
redis.call('ZADD', replicas, now, ARGV[3])
redis.call('ZREMRANGEBYSCORE', replicas, '-inf', now - tonumber(ARGV[4]))
redis.call('PEXPIRE', replicas, ARGV[4])
local told, refused = {redis.call('ZCARD', replicas)}, false
local tell = function(name, kind, left, wait)
  refused = refused or left < 0
  for _, value in ipairs({name, kind, left, math.ceil(wait)}) do told[#told + 1] = value end
end
local names = (#KEYS - 1) / 3
local day = math.floor(clock[1] / 86400)
local paces = {}
for n = 0, names - 1 do
  local pace, running, tokens = KEYS[n * 3 + 2], KEYS[n * 3 + 3], KEYS[n * 3 + 4] .. day
  local minute, at_once, daily = tonumber(ARGV[n * 3 + 5]), tonumber(ARGV[n * 3 + 6]), tonumber(ARGV[n * 3 + 7])
  if at_once >= 0 then
    redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
    tell(n, 0, at_once - redis.call('ZCARD', running) - 1, 1000)
  end
  if daily >= 0 then
    local left = daily - tonumber(redis.call('GET', tokens) or 0)
    if left == 0 then left = -1 end
    tell(n, 1, left, (86400 - clock[1] % 86400) * 1000)
  end
  if minute >= 0 then
    local interval = 60000 / minute
    local even = math.max(tonumber(redis.call('GET', pace) or 0), now) + interval
    local room = (now + 60000 - even) / interval + 0.000001
    local wait = 0
    if room < 0 then wait = -room * interval elseif room < 1 then wait = (1 - room) * interval end
    tell(n, 2, math.floor(room), wait)
    paces[pace] = even
  end
end
if refused then return told end
for pace, even in pairs(paces) do
  redis.call('SET', pace, string.format('%.3f', even), 'PX', math.ceil(even - now) + 1000)
end
for n = 0, names - 1 do
  if tonumber(ARGV[n * 3 + 6]) >= 0 then
    redis.call('ZADD', KEYS[n * 3 + 3], now + tonumber(ARGV[2]), ARGV[1])
    redis.call('PEXPIRE', KEYS[n * 3 + 3], ARGV[2])
  end
end
return told
"""
# KEYS: for each name its running questions and its tokens of the day. ARGV: the question, what it has used.
_LEAVE: Final = """
local day = math.floor(redis.call('TIME')[1] / 86400)
for n = 1, #KEYS, 2 do
  redis.call('ZREM', KEYS[n], ARGV[1])
  if tonumber(ARGV[2]) > 0 then
    redis.call('INCRBY', KEYS[n + 1] .. day, ARGV[2])
    redis.call('EXPIRE', KEYS[n + 1] .. day, 172800)
  end
end
return 1
"""
_KINDS: Final[tuple[Kind, ...]] = ("concurrent", "day", "minute")


class RedisQuotas:
    """See ``QuotaStore``; every operation raises ``StoreUnavailable``.

    All keys have one hash tag, so that in a cluster they are on one node, as a script needs them.

    Args:
        store: the state store, in Redis.
        longest: seconds after which a question that never ended counts as ended: its process has died.
    """

    def __init__(self, store: StateStore, *, longest: float) -> None:
        self._enter, self._leave = store.script("quota enter", _ENTER), store.script("quota leave", _LEAVE)
        self._longest = round(longest * 1000)
        self._me = secrets.token_hex(8)
        self.replicas = 1
        """Processes that have counted a question within the last minute."""

    async def enter(self, limits: Sequence[Limits], question: int) -> Sequence[Sequence[Standing]]:
        """See ``QuotaStore.enter``."""
        keys = [f"quota:{{q}}:{each.name}:{part}" for each in limits for part in ("pace", "running", "tokens:")]
        bounds = [
            -1 if bound is None else bound
            for each in limits
            for bound in (each.requests_per_minute, each.concurrent, each.tokens_per_day)
        ]
        replica = (self._me, _REPLICA_SECONDS * 1000)
        told = await self._enter(
            ["quota:{q}:replicas", *keys], [self._name(question), self._longest, *replica, *bounds]
        )
        self.replicas = int(told[0])
        standings: list[list[Standing]] = [[] for _ in limits]
        for name, number, left, wait in zip(*(told[place::4] for place in range(1, 5)), strict=True):
            kind = _KINDS[number]
            standings[name].append(Standing(kind, _bound(limits[name], kind), left, wait / 1000, left < 0))
        return standings

    async def leave(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        """See ``QuotaStore.leave``."""
        keys = [f"quota:{{q}}:{each.name}:{part}" for each in limits for part in ("running", "tokens:")]
        await self._leave(keys, [self._name(question), tokens])

    def _name(self, question: int) -> str:
        """What the question is called among those of all replicas."""
        return f"{self._me}:{question}"


def _bound(limits: Limits, kind: Kind) -> int:
    bounds = {"concurrent": limits.concurrent, "day": limits.tokens_per_day, "minute": limits.requests_per_minute}
    return bounds[kind] or 0
