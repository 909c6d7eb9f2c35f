"""Quotas that several processes share, in Redis or Valkey: one script, one round trip."""

import secrets
from collections.abc import Sequence
from typing import Final

from app.access.quotas import Kind, Limits, Standing
from app.state_store.base import StateStore

__all__ = ["RedisQuotas"]

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
