"""The state store in Redis or Valkey, shared by several processes: one Lua script checks, reads and writes."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pydantic_core import to_json
from redis.exceptions import ResponseError

from toolchat.state.base import Committed, StoredRecord, Write
from toolchat.state.redis_connection import RedisConnection
from toolchat.state.watched import Places

# KEYS: all names. ARGV[1]: the commit as JSON, with numbers that are places in KEYS and ARGV:
# checks: [[key, [the values that it may have; 0: none]]]; longest: milliseconds; reads: [key];
# writes: [{k: key, v: value (0: delete), px: milliseconds, log: key of the log, line, place, lists: [key], n: name}];
# prefix: that of all keys. A write looks at two names anywhere in its lists, and removes those whose value has expired:
# values of a list expire at different times, and so no more than about half of it is ever void.
# Returns whether it was done, the number of deleted keys, the time, and the values of the checked and the read keys.
# A value of a foreign type is returned as an error's text: its key can be locked and deleted.
_COMMIT: Final = """
local commit = cjson.decode(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function value_of(key)
  local value = redis.pcall('GET', KEYS[key])
  if type(value) ~= 'table' then return value end
  if not string.find(value.err, 'WRONGTYPE') then error(value.err) end
  return value.err
end
local reply = {1, 0, string.format('%.0f', now)}
for _, check in ipairs(commit.checks) do
  local value, holds = value_of(check[1]), 0
  if value and commit.longest > 0 then
    local left = redis.call('PTTL', KEYS[check[1]])
    if left < 0 or left > commit.longest then value = false end
  end
  for _, allowed in ipairs(check[2]) do
    if (allowed == 0 and not value) or (allowed > 0 and value == ARGV[allowed]) then holds = 1 end
  end
  reply[1] = reply[1] * holds
  table.insert(reply, value)
end
for _, key in ipairs(commit.reads) do table.insert(reply, value_of(key)) end
if reply[1] == 0 then return reply end
for _, write in ipairs(commit.writes) do
  if write.v == 0 then
    reply[2] = reply[2] + redis.call('UNLINK', KEYS[write.k])
    redis.call('UNLINK', KEYS[write.log])
  else
    redis.call('SET', KEYS[write.k], ARGV[write.v], 'PX', write.px)
    if write.line > 0 then
      if write.place == 0 then redis.call('DEL', KEYS[write.log])
      elseif redis.call('LLEN', KEYS[write.log]) > write.place then
        redis.call('LTRIM', KEYS[write.log], 0, write.place - 1)
      end
      redis.call('RPUSH', KEYS[write.log], ARGV[write.line])
    end
    redis.call('PEXPIRE', KEYS[write.log], write.px)
    for _, list in ipairs(write.lists) do
      redis.call('ZADD', KEYS[list], now, ARGV[write.n])
      local place = clock[2] % redis.call('ZCARD', KEYS[list])
      for _, name in ipairs(redis.call('ZRANGE', KEYS[list], place, place + 1)) do
        if redis.call('PTTL', commit.prefix .. name) == -2 then redis.call('ZREM', KEYS[list], name) end
      end
      redis.call('PEXPIRE', KEYS[list], math.max(write.px, redis.call('PTTL', KEYS[list])))
    end
  end
end
return reply
"""
# KEYS[1]: the list. ARGV: the highest time, the number, and the prefix of the keys of values.
# Returns for each its name, its value and its time; what has expired or was deleted goes from the list.
_LISTED: Final = """
local reply = {}
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], '-inf', 'WITHSCORES')
for n = 1, #found, 2 do
  local value = redis.call('GET', ARGV[3] .. found[n])
  if not value then redis.call('ZREM', KEYS[1], found[n])
  else
    for _, each in ipairs({found[n], value, found[n + 1]}) do table.insert(reply, each) end
    if #reply >= 3 * tonumber(ARGV[2]) then break end
  end
end
return reply
"""


class RedisStateStore(RedisConnection):
    """A state store in Redis 6 or Valkey; it connects when it is started or first used.

    Args:
        url: ``redis://user:password@host:6379/0``, ``rediss://`` for TLS, ``unix://`` for a socket.
        prefix: the prefix of all keys.
        deadline: seconds for one operation.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str, *, prefix: str = "toolchat:", deadline: float = 0.5) -> None:
        super().__init__(url, prefix=prefix, deadline=deadline)
        self._commit, self._listed = self.register(_COMMIT), self.register(_LISTED)

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self.run("get", partial(self.client.get, self._name(key)))
        return value

    async def commit(
        self,
        writes: Sequence[Write],
        *,
        checks: Mapping[str, Sequence[bytes | None]] | None = None,
        reads: Sequence[str] = (),
        longest: float | None = None,
        name: str = "commit",
    ) -> Committed:
        """See :meth:`StateStore.commit`."""
        keys, arguments, checks = Places(), Places(b""), checks or {}
        arguments.values[0] = to_json(
            {
                "checks": [
                    [keys.add(self._name(key)), [0 if each is None else arguments.add(each) for each in allowed]]
                    for key, allowed in checks.items()
                ],
                "reads": [keys.add(self._name(key)) for key in reads],
                "longest": _milliseconds(longest or 0),
                "prefix": self._name(""),
                "writes": [self._written(each, keys, arguments) for each in writes],
            }
        )

        async def commit() -> Committed:
            is_done, deleted, now, *found = await self._commit(keys.values, arguments.values)
            values = dict(zip((*checks, *reads), found, strict=True))
            return Committed(bool(is_done), values, deleted, int(now) / 1e6)

        outcome: Committed = await self.run(name, commit)
        return outcome

    def _written(self, write: Write, keys: Places, arguments: Places) -> dict[str, Any]:
        name, is_deleted = self._name(write.key), write.value is None or write.ttl <= 0
        return {
            "k": keys.add(name),
            "v": 0 if is_deleted else arguments.add(write.value),
            "px": max(1, _milliseconds(write.ttl)),
            "log": keys.add(self._name(f"log:{write.key}")),
            "line": 0 if write.line is None else arguments.add(write.line),
            "place": write.place,
            "lists": [keys.add(self._name(f"list:{each}")) for each in write.lists],
            "n": arguments.add(write.key) if write.lists else 0,
        }

    async def read_log(self, key: str, start: int = 0, limit: int | None = None) -> list[bytes]:
        name, last = self._name(f"log:{key}"), -1 if limit is None else start + limit - 1
        lines: list[bytes] = await self.run("read log", partial(self.client.lrange, name, start, last))
        return lines

    async def listed(self, name: str, *, limit: int, before: float | None = None) -> list[tuple[str, bytes, float]]:
        latest = "+inf" if before is None else f"({round(before * 1e6)}"
        arguments = latest, limit, self._name("")
        found = await self.run("list", partial(self._listed, [self._name(f"list:{name}")], arguments))
        entries = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [(key.decode(errors="surrogatepass"), value, int(at) / 1e6) for key, value, at in entries]

    async def records(self) -> AsyncIterator[StoredRecord]:
        """See :meth:`StateStore.records`; those that are written meanwhile may be missing."""
        lists: dict[str, list[str]] = {}
        times: dict[str, float] = {}
        async for key in self._keys("list:"):
            zrange = partial(self.client.zrange, self._name(key), 0, -1, withscores=True)
            for each, at in await self.run("list", zrange):
                name = each.decode(errors="surrogatepass")
                lists.setdefault(name, []).append(key.removeprefix("list:"))
                times[name] = max(at, times.get(name, 0))
        async for key in self._keys(""):
            is_other = key.startswith(("list:", "log:", "lock:", "quota:")) or key in lists
            if not is_other and (record := await self._record(key)):
                yield record
        for key in sorted(times, key=times.__getitem__):  # an import of lists puts their keys in this order
            if record := await self._record(key, lists[key]):
                yield record

    async def _record(self, key: str, lists: Sequence[str] = ()) -> StoredRecord | None:
        if (value := await self.get(key)) is None:
            return None
        left = await self.run("pttl", partial(self.client.pttl, self._name(key)))
        return StoredRecord(
            key, value, time.time() + left / 1000, lists=tuple(lists), log=tuple(await self.read_log(key))
        )

    async def _keys(self, beginning: str) -> AsyncIterator[str]:
        cursor = 0
        while True:
            pattern = f"{self._name(beginning)}*"
            cursor, names = await self.run("scan", partial(self.client.scan, cursor, pattern, 1000))
            for name in names:
                yield name.decode(errors="surrogatepass").removeprefix(self._name(""))
            if not cursor:
                return

    async def durability_warning(self) -> str:
        append_only, snapshots = await self._configured("appendonly"), await self._configured("save")
        if append_only in ("yes", None):
            return ""
        if not snapshots:
            return "it writes nothing to disk, so a restart loses everything: set appendonly yes"
        return "it writes only snapshots, so a crash loses all changes since the last one: set appendonly yes"

    async def _configured(self, name: str) -> str | None:
        """One value of the server's configuration; ``None`` if it refuses to tell it, as managed servers mostly do."""
        found = await self.run("config", partial(self.client.config_get, name), ResponseError)
        return next(map(_text, found.values()), None) if found else None

    def _name(self, key: str) -> str:
        return f"{self.prefix}{key}"


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
