"""State that several processes share, in Redis or Valkey.

The part of a key behind its first colon is its hash tag, so that in a cluster the values and the lock of one
conversation are on one node, as a script needs them.
"""

from typing import Final

from app.state_store.base import Lock, LockLost
from app.state_store.redis_connection import RedisConnection

__all__ = ["RedisStateStore"]

_FENCE_TTL: Final = 86_400_000
"""Milliseconds for which the last token of a lock is remembered."""

_PUT: Final = """
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
"""
_DELETE: Final = """
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return -1 end
return redis.call('UNLINK', unpack(KEYS, 2))
"""
# The server's time makes tokens grow even when the last one was forgotten.
_LOCK: Final = """
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local clock = redis.call('TIME')
local token = math.max(clock[1] * 1000000 + clock[2], tonumber(redis.call('GET', KEYS[1]) or 0) + 1)
local text = string.format('%.0f', token)
redis.call('SET', KEYS[1], text, 'PX', ARGV[2])
redis.call('SET', KEYS[2], text, 'PX', ARGV[1])
return token
"""
_RENEW: Final = """
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
"""
# The fence goes up, so that a renewal that arrives late does not take the lock again.
_UNLOCK: Final = """
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', ARGV[1] + 1), 'PX', ARGV[2])
return 1
"""


class RedisStateStore(RedisConnection):
    """Keeps bytes in Redis 6 or Valkey; nothing is connected before it is started or used.

    Args:
        url: ``redis://host:6379/0``, ``rediss://`` for TLS, ``unix://`` for a socket.
        prefix: what the names of all keys begin with.
        deadline: seconds that one operation may take.

    Raises:
        ValueError: the URL cannot be used.
    """

    def __init__(self, url: str, *, prefix: str = "toolchat:", deadline: float = 0.5) -> None:
        super().__init__(url, prefix=prefix, deadline=deadline)
        self._put, self._delete, self._lock, self._renew, self._unlock = (
            self._client.register_script(script) for script in (_PUT, _DELETE, _LOCK, _RENEW, _UNLOCK)
        )

    async def get(self, key: str) -> bytes | None:
        """Look a value up."""
        value = await self._run(lambda: self._client.get(self._name(key)))
        return value if isinstance(value, bytes) else None

    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None) -> None:
        """Keep a value."""
        name, time_to_live = self._name(key), _milliseconds(ttl)
        if lock is None:
            await self._run(lambda: self._client.set(name, value, px=time_to_live))
            return
        if not await self._run(lambda: self._put([self._fence(lock.key), name], (lock.token, value, time_to_live))):
            raise LockLost(lock.token)

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        """Forget values."""
        names = [self._name(key) for key in keys]
        if not names:
            return False
        if lock is None:
            return await self._run(lambda: self._client.unlink(*names)) > 0
        forgotten = await self._run(lambda: self._delete([self._fence(lock.key), *names], [lock.token]))
        if forgotten < 0:
            raise LockLost(lock.token)
        return bool(forgotten)

    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """Take a lock that is free or ran out."""
        arguments = [_milliseconds(ttl), _FENCE_TTL]
        token = await self._run(lambda: self._lock(self._lock_names(key), arguments))
        return Lock(key, token) if token else None

    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """Hold a lock for longer, even one that ran out or was flushed."""
        arguments = [lock.token, _milliseconds(ttl), _FENCE_TTL]
        return bool(await self._run(lambda: self._renew(self._lock_names(lock.key), arguments)))

    async def unlock(self, lock: Lock) -> None:
        """Release a lock; nothing can be written under it any more."""
        await self._run(lambda: self._unlock(self._lock_names(lock.key), [lock.token, _FENCE_TTL]))

    def _name(self, key: str, suffix: str = "") -> str:
        group, colon, name = key.partition(":") if ":" in key else ("", "", key)
        return f"{self._prefix}{group}{colon}{{{name}}}{suffix}"

    def _fence(self, key: str) -> str:
        return self._name(key, ":fence")

    def _lock_names(self, key: str) -> list[str]:
        return [self._fence(key), self._name(key, ":lock")]


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
