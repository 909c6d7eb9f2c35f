"""The state store in Redis or Valkey, shared by several processes: Lua scripts for locks, fences and fenced writes.

A lock has two keys. ``<key>:lock`` expires after the lock's time. ``<key>:fence`` remembers the last token for a day,
so that a holder whose lock expired cannot overwrite what a later holder wrote.

The part of a key behind its first colon is its hash tag: in a cluster, the values and the lock of one conversation are
on one node, as scripts require.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from redis.exceptions import ResponseError

from toolchat.errors import StoreUnavailable
from toolchat.state.base import Lock, LockLost, StoredRecord
from toolchat.state.redis_connection import RedisConnection, Script

_FENCE_TTL: Final = 86_400_000
"""Milliseconds for which a fence, the last token of a lock, is remembered."""

_RETRY_SECONDS: Final = 15.0
"""Seconds for which an operation is retried; by then the lock that it concerns has expired."""
_RETRY_PAUSE: Final = 0.1
_NAME: Final = re.compile(r"([^{:]*:|)\{(.*)\}", re.DOTALL)

# An overwritten fence, which is no sensible number, counts as none: it must not block the key for ever.
_FENCE: Final = """
local function token_of(key)
  local token = tonumber(redis.call('GET', key) or 0) or 0
  return token < 9e15 and token or 0
end
"""
_PUT: Final = Script(f"""{_FENCE}
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
return 1
""")
# The fence has passed, so the lock is held by the caller or free, and may be deleted. The fence is raised by one: a
# renewal that arrives late must not take the lock again.
_PUT_AND_UNLOCK: Final = Script(f"""{_FENCE}
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], string.format('%.0f', ARGV[1] + 1), 'PX', {_FENCE_TTL})
return 1
""")
_DELETE: Final = Script(f"""{_FENCE}
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return -1 end
return redis.call('UNLINK', unpack(KEYS, 2))
""")
# Tokens contain the server's time, so that they grow even if the last one was forgotten or flushed. A value of a
# foreign type cannot be read; the lock is still granted, so that the key can be deleted. Token and value come as one
# string, since redis-py reads a list one element after the other.
_LOCK: Final = Script(f"""{_FENCE}
local clock = redis.call('TIME')
local token = math.max(clock[1] * 1000000 + clock[2], token_of(KEYS[1]) + 1)
local text = string.format('%.0f', token)
if not redis.call('SET', KEYS[2], text .. ' ' .. ARGV[2], 'NX', 'PX', ARGV[1]) then return false end
redis.call('SET', KEYS[1], text, 'PX', {_FENCE_TTL})
local value = redis.pcall('GET', KEYS[3])
if type(value) == 'table' then value = value.err end
return value and text .. ' ' .. value or text
""")
# The mark identifies one attempt: a lock that was granted after its caller gave up is deleted, and no other.
_TAKE_BACK: Final = Script("""
local held = redis.call('GET', KEYS[1])
if held and string.match(held, ' (.*)') == ARGV[1] then redis.call('DEL', KEYS[1]) end
""")
# Renews an expired lock, too, if no other holder has taken it: both keys are written anew.
_RENEW: Final = Script(f"""{_FENCE}
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', {_FENCE_TTL})
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
""")
# The fence is raised by one, so that a renewal that arrives late does not take the lock again.
_UNLOCK: Final = Script(f"""{_FENCE}
if string.match(redis.call('GET', KEYS[2]) or '', '^%d+') == ARGV[1] then redis.call('DEL', KEYS[2]) end
if token_of(KEYS[1]) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', ARGV[1] + 1), 'PX', {_FENCE_TTL})
return 1
""")


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
        self._retries: set[asyncio.Task[None]] = set()

    async def get(self, key: str) -> bytes | None:
        value = await self._run("GET", self._name(key))
        return value if isinstance(value, bytes) else None

    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None, unlock: bool = False) -> None:
        name, time_to_live = self._name(key), _milliseconds(ttl)
        if lock is None:
            await self._run("SET", name, value, "PX", time_to_live)
            return
        operation, script = ("put and unlock", _PUT_AND_UNLOCK) if unlock else ("put", _PUT)
        arguments = lock.token, value, time_to_live
        if not await self._call(operation, script, [*self._lock_names(lock.key), name], arguments):
            raise LockLost(lock.token)

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        names = [self._name(key) for key in keys]
        if not names:
            return False
        if lock is None:
            return bool(await self._run("UNLINK", *names))
        forgotten = await self._call("delete", _DELETE, [self._lock_names(lock.key)[0], *names], [lock.token])
        if forgotten < 0:
            raise LockLost(lock.token)
        return bool(forgotten)

    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """See :meth:`StateStore.try_lock`.

        A server that stalls may grant the lock after the caller has given up. It is then taken back.
        """
        fence, name, mark, may_arrive = *self._lock_names(key), os.urandom(8).hex(), self.available
        keys = [fence, name, self._name(key)]
        try:
            taken = await self._call("lock", _LOCK, keys, (_milliseconds(ttl), mark))
        except (StoreUnavailable, asyncio.CancelledError):
            # The command may have arrived although no reply came: then the server holds a lock without a holder.
            if may_arrive:
                self._retry_later("take back", _TAKE_BACK, [name], [mark])
            raise
        if not taken:
            return None
        token, has_value, value = taken.partition(b" ")
        return Lock(key, int(token), value if has_value else None)

    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """See :meth:`StateStore.renew`; an expired or flushed lock is renewed, unless another holder has taken it."""
        arguments = [lock.token, _milliseconds(ttl)]
        return bool(await self._call("renew", _RENEW, self._lock_names(lock.key), arguments))

    async def unlock(self, lock: Lock) -> None:
        """See :meth:`StateStore.unlock`; retried later if the server is unavailable."""
        try:
            await self._call("unlock", _UNLOCK, self._lock_names(lock.key), [lock.token])
        except StoreUnavailable:
            self._retry_later("unlock", _UNLOCK, self._lock_names(lock.key), [lock.token])
            raise

    async def records(self) -> AsyncIterator[StoredRecord]:
        """See :meth:`StateStore.records`; those that are written meanwhile may be missing."""
        cursor = b""
        while cursor != b"0":
            scan = "SCAN", cursor or b"0", "MATCH", f"{self._prefix}*", "COUNT", 1000, "TYPE", "string"
            cursor, names = await self._run(*scan)
            for name in names:
                # Locks, fences and the counts of quotas have something behind the tag.
                parts = _NAME.fullmatch(name.removeprefix(self._prefix.encode()).decode(errors="surrogatepass"))
                if parts and (value := await self._run("GET", name)) is not None:
                    left = await self._run("PTTL", name)
                    yield StoredRecord(f"{parts[1]}{parts[2]}", value, time.time() + left / 1000)

    async def durability_warning(self) -> str:
        append_only, snapshots = await self._configured("appendonly"), await self._configured("save")
        if append_only in (b"yes", None):
            return ""
        if not snapshots:
            return "it writes nothing to disk, so a restart loses everything: set appendonly yes"
        return "it writes only snapshots, so a crash loses all changes since the last one: set appendonly yes"

    async def _configured(self, name: str) -> bytes | None:
        """One value of the server's configuration; ``None`` if it refuses to tell it, as managed servers mostly do."""
        try:
            reply = await self._run("CONFIG", "GET", name, expected=ResponseError)
        except ResponseError:
            return None
        values = list(reply.values()) if isinstance(reply, dict) else reply[1:]  # RESP3 or RESP2
        return values[0] if values else None

    async def aclose(self) -> None:
        """Cancel the retries and disconnect."""
        for task in self._retries:
            task.cancel()
        await super().aclose()

    def _retry_later(self, name: str, script: Script, keys: Sequence[str], arguments: Sequence[str | int]) -> None:
        """Retry a failed script in the background, until the lock that it concerns has expired by itself."""
        task = asyncio.create_task(self._retry(name, script, keys, arguments))
        self._retries.add(task)  # protects it from garbage collection
        task.add_done_callback(self._retries.discard)

    async def _retry(self, name: str, script: Script, keys: Sequence[str], arguments: Sequence[str | int]) -> None:
        until = time.monotonic() + _RETRY_SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(_RETRY_PAUSE)
            if self.available:
                with suppress(StoreUnavailable):
                    # Twice: the first call may overtake the command that it follows, on another connection.
                    await self._call(name, script, keys, arguments)
                    await self._call(name, script, keys, arguments)
                    return

    def _name(self, key: str) -> str:
        tagged = key.replace(":", ":{", 1) if ":" in key else f"{{{key}"
        return f"{self._prefix}{tagged}}}"

    def _lock_names(self, key: str) -> list[str]:
        """The fence and the lock of a key."""
        name = self._name(key)
        return [f"{name}:fence", f"{name}:lock"]


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
