"""The connection to Redis: its address, the library's client, and what its errors mean."""

import re
from inspect import signature
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError, ResponseError

from toolchat.http.failures import cause_of
from toolchat.state.watched import WatchedStateStore

_CONNECTIONS = 64
_CLUSTER = "it is a Redis Cluster, which is not supported: name a single server"
_SENTINEL = "it runs no scripts, as a Sentinel: name the server itself"
_MEANINGS = dict.fromkeys(("CROSSSLOT", "MOVED", "CLUSTERDOWN"), _CLUSTER) | {
    "NOPERM": "NOPERM: the user lacks a permission that the documentation names",
}
"""What an operator is told for the code of a reply that says too little."""


class RedisConnection(WatchedStateStore):
    """The library's client, and what its errors mean.

    Args:
        url: ``redis://``, ``rediss://``, ``valkey://``, ``valkeys://`` or ``unix://``.
        deadline: seconds for one operation.
    """

    kind = "redis"

    def __init__(self, url: str, *, prefix: str, deadline: float) -> None:
        self._pool = _pool(url)
        super().__init__(_server(self._pool), deadline=deadline, connections=_CONNECTIONS)
        self.prefix = self.namespace = prefix
        self.client: Redis = Redis(connection_pool=self._pool)

    def register(self, script: str) -> AsyncScript:
        """A Lua script, which is sent once and then called by its digest."""
        return self.client.register_script(script)

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
        _check_password(url)
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


def _check_password(url: str) -> None:
    """Reject a password with a bare ``/`` or ``?``, which ends the address: its beginning would pass for a port."""
    parts = urlsplit(url)
    if parts.scheme != "unix" and "@" in parts.path + parts.query:
        raise ValueError


def _server(pool: ConnectionPool) -> str:
    """The host and port, or the path of a socket, and the database, for the log: without user and password."""
    connection = pool.connection_kwargs
    host = connection.get("host", "localhost")
    address = connection.get("path") or f"{f'[{host}]' if ':' in host else host}:{connection.get('port', 6379)}"
    database = connection.get("db")
    security = " by TLS" if issubclass(pool.connection_class, SSLConnection) else ""
    return f"{address}{security}" + (f", database {database}" if database else "")
