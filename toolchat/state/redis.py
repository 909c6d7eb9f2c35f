"""The state store in Redis or Valkey, shared by several processes: one Lua script checks, reads and writes."""

import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import to_json
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.utils import str_if_bytes

from toolchat.http.failures import cause_of
from toolchat.state.base import Committed, StoredRecord, Write, decoded_key
from toolchat.state.watched import Places, WatchedStateStore

_CONNECTIONS = 64
_CLUSTER = "it is a Redis Cluster, which is not supported: name a single server"
_SENTINEL = "it runs no scripts, as a Sentinel: name the server itself"
_MEANINGS = dict.fromkeys(("CROSSSLOT", "MOVED", "CLUSTERDOWN"), _CLUSTER) | {
    "NOPERM": "NOPERM: the user lacks a permission that the documentation names",
}
"""What an operator is told for the code of a reply that says too little."""

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


class RedisStateStore(WatchedStateStore):
    """A state store in Redis 6 or Valkey; it connects when it is started or first used.

    Args:
        url: ``redis://user:password@host:6379/0``, ``rediss://`` for TLS, ``unix://`` for a socket.
        prefix: the prefix of all keys.
        deadline: seconds for one operation.

    Raises:
        ValueError: the URL is invalid.
    """

    kind = "redis"

    def __init__(self, url: str, *, prefix: str = "toolchat:", deadline: float = 0.5) -> None:
        self._pool = _pool(url)
        super().__init__(_server(self._pool), deadline=deadline, connections=_CONNECTIONS)
        self.namespace = prefix
        self.client: Redis = Redis(connection_pool=self._pool)
        # Scripts are sent once and then called by their digests.
        self._commit, self._listed = self.client.register_script(_COMMIT), self.client.register_script(_LISTED)

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
        return [(decoded_key(key), value, int(at) / 1e6) for key, value, at in entries]

    async def records(self) -> AsyncIterator[StoredRecord]:
        """See :meth:`StateStore.records`; those that are written meanwhile may be missing."""
        lists: dict[str, list[str]] = {}
        times: dict[str, float] = {}
        async for key in self._keys("list:"):
            zrange = partial(self.client.zrange, self._name(key), 0, -1, withscores=True)
            for each, at in await self.run("list", zrange):
                name = decoded_key(each)
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
                yield decoded_key(name).removeprefix(self._name(""))
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
        return next(map(str_if_bytes, found.values()), None) if found else None

    async def disconnect(self) -> None:
        await self._pool.disconnect(inuse_connections=False)

    def concerns_one_key(self, error: Exception) -> bool:
        """Whether the value has a foreign type."""
        return "WRONGTYPE" in (self.reason(error), *str(error).split())

    def reason(self, error: Exception) -> str:
        """The code of the server's reply, such as ``READONLY``, or why the connection failed."""
        if "can't run this command" in str(error):  # as Redis words a missing permission within a script
            return _MEANINGS["NOPERM"]
        if "unknown command" in str(error):
            return _SENTINEL
        if code := getattr(error, "status_code", None):  # since 7.0
            return _MEANINGS.get(str(code), str(code))
        refusal = re.match(r"[A-Z]{2,30}\b", str(error)) if isinstance(error, ResponseError) else None
        if refusal:
            return _MEANINGS.get(refusal.group(), refusal.group())
        if isinstance(error, TimeoutError):
            return "no answer in time"
        return cause_of(error) or type(error.__context__ or error).__name__

    def _name(self, key: str) -> str:
        return f"{self.namespace}{key}"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _pool(url: str) -> ConnectionPool:
    """Create the maker of connections, without time-outs of their own: they bound parts of an operation."""
    bounds: dict[str, Any] = {
        "socket_timeout": None,
        "socket_connect_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": 0,
        "decode_responses": False,
        "encoding_errors": "surrogatepass",  # not every key is valid text: a client may have sent half of a character
        **_without_announcements(),
    }
    try:
        parts = urlsplit(url)
        if parts.scheme != "unix" and "@" in parts.path + parts.query:
            raise ValueError  # a password with a bare / or ? ends the address: its beginning would pass for a port
        url = url.replace("valkey", "redis", 1) if url.startswith("valkey") else url
        given = ConnectionPool.from_url(url)  # where options of the URL win over arguments
        pool = ConnectionPool(given.connection_class, **{**given.connection_kwargs, **bounds})
        pool.make_connection()  # type: ignore[no-untyped-call]
    except (RedisError, TypeError, ValueError):
        raise ValueError("the URL of Redis cannot be used") from None
    return pool


def _without_announcements() -> dict[str, Any]:
    """Switch off what the library sends on each new connection, by the options that its version knows."""
    known = signature(AbstractConnection.__init__).parameters
    names = ["driver_info"] if "driver_info" in known else ["lib_name", "lib_version"]
    options: dict[str, Any] = dict.fromkeys(names)
    if "maint_notifications_config" in known:
        from redis.maint_notifications import MaintNotificationsConfig

        options["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    return options


def _server(pool: ConnectionPool) -> str:
    """The host and port, or the path of a socket, and the database, for the log: without user and password."""
    connection = pool.connection_kwargs
    host = connection.get("host", "localhost")
    address = connection.get("path") or f"{f'[{host}]' if ':' in host else host}:{connection.get('port', 6379)}"
    database = connection.get("db")
    security = " by TLS" if issubclass(pool.connection_class, SSLConnection) else ""
    return f"{address}{security}" + (f", database {database}" if database else "")
