"""The connection to Redis: every operation has a deadline, and fails fast while the server is unavailable."""

import asyncio
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from inspect import signature
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError, ResponseError

import toolchat.instruments as instruments
from toolchat.errors import StoreUnavailable
from toolchat.http.failures import cause_of
from toolchat.state.base import StateStore

_CONNECTIONS = 64
_PROBE_SECONDS = 2.0
_PROBE_SECONDS_UNAVAILABLE = 1.0
_WARNING_SECONDS = 60.0
_STEPS = 10

_CLUSTER = "it is a Redis Cluster, which is not supported: name a single server"
_SENTINEL = "it runs no scripts, as a Sentinel: name the server itself"
_MEANINGS = dict.fromkeys(("CROSSSLOT", "MOVED", "CLUSTERDOWN"), _CLUSTER) | {
    "NOPERM": "NOPERM: the user lacks a permission that the documentation names",
}
"""What an operator is told for the code of a reply that says too little."""

_log = logging.getLogger(__name__)
_probing: ContextVar[bool] = ContextVar("probing", default=False)
"""Whether the operation is the probe's, which runs although the server is unavailable."""


class RedisConnection(StateStore):
    """What all operations share: the library's client, deadlines, and a probe of the server.

    An operation fails if the server exceeds its deadline or refuses it. From then on all operations fail at once,
    until the probe succeeds: it tries immediately, then every second.

    Args:
        url: ``redis://``, ``rediss://``, ``valkey://``, ``valkeys://`` or ``unix://``.
        deadline: seconds for one operation.
    """

    kind = "redis"

    def __init__(self, url: str, *, prefix: str, deadline: float) -> None:
        super().__init__()
        self.available = True
        self.failures = 0
        self.prefix = prefix
        self._pool = _pool(url)
        self.client: Redis = Redis(connection_pool=self._pool)
        self._server = _server(self._pool)
        self._deadline = deadline
        self._permits = asyncio.Semaphore(_CONNECTIONS)
        self._became_unavailable = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self._warned_at = -_WARNING_SECONDS
        self._warned = False

    async def start(self) -> None:
        """Probe the server, and keep probing it in the background."""
        await self._probe()
        self._watcher = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Refuse further operations, wait for the running ones, and disconnect."""
        await super().aclose()
        self.available = False
        if self._watcher:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
        with suppress(Exception):
            async with asyncio.timeout(self._deadline):
                for _ in range(_CONNECTIONS):
                    await self._permits.acquire()
        await self._disconnect()

    def register(self, script: str) -> AsyncScript:
        """A Lua script, which is sent once and then called by its digest."""
        return self.client.register_script(script)

    async def run(
        self, name: str, operation: Callable[[], Awaitable[Any]], expected: type[ResponseError] | None = None
    ) -> Any:
        """Run an operation and return its reply; ``None`` if the server refuses it as expected."""
        if self.available or _probing.get():
            began = math.inf
            try:
                with _Deadline(self._deadline):
                    async with self._permits:
                        began = time.monotonic()
                        reply = await operation()
                    instruments.observer.record_store_operation(self.kind, name, time.monotonic() - began)
                    return reply
            except Exception as error:  # noqa: BLE001 - a peer that is not Redis causes any error
                if expected and isinstance(error, expected):
                    return None
                # A time-out that was mostly spent waiting for a connection says nothing about the server.
                if not isinstance(error, TimeoutError) or time.monotonic() - began > 0.8 * self._deadline:
                    self._failed(error)
        raise self._unavailable("the state store cannot be reached")

    async def probe(self) -> None:
        """Do what is needed of the server; raises ``StoreUnavailable`` unless all of it succeeds."""
        raise NotImplementedError

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_SECONDS if self.available else _PROBE_SECONDS_UNAVAILABLE):
                    await self._became_unavailable.wait()
            self._became_unavailable.clear()
            if not self.available:
                await self._disconnect()
            await self._probe()

    async def _probe(self) -> None:
        failures, token = self.failures, _probing.set(True)
        try:
            await self.probe()
        except StoreUnavailable:
            self.failures = failures  # nobody asked for it
        else:
            self._succeeded()
        finally:
            _probing.reset(token)

    async def _disconnect(self) -> None:
        """Close the idle connections: after an outage they may be dead without an error so far."""
        with suppress(Exception):
            async with asyncio.timeout(self._deadline):
                await self._pool.disconnect(inuse_connections=False)

    def _failed(self, error: Exception) -> None:
        reason = _reason(error)
        self.cause = f"{reason}: {self._server}"
        if self.available and not _concerns_one_key(reason, error):
            self.available = False
            self._became_unavailable.set()
        if time.monotonic() - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = time.monotonic()
            self._warned = True
            _log.warning("the state store cannot be used", extra={"server": self._server, "reason": reason})

    def _succeeded(self) -> None:
        self.available, self.cause = True, ""
        if self._warned:
            self._warned = False
            _log.info("the state store can be used again")


class _Deadline:
    """Raises ``TimeoutError`` like ``asyncio.timeout``, but counts only the time in which this process is responsive.

    A process that is short of CPU reads a reply late, though the server sent it in time: it must not take the server
    for dead. So the time is counted in steps of a timer, each as one step however late the timer fires.
    """

    __slots__ = ("_cancelling", "_left", "_loop", "_step", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._left, self._step = _STEPS, seconds / _STEPS

    def __enter__(self) -> None:
        self._loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a task that it can cancel")
        self._task, self._cancelling = task, task.cancelling()
        self._start_step()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        # As asyncio.timeout does: take our own cancellation back, unless one from outside came as well.
        if not self._left and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from None

    def _start_step(self) -> None:
        self._timer = self._loop.call_later(self._step, self._end_step)

    def _end_step(self) -> None:
        self._left -= 1
        if self._left:
            self._start_step()
        else:
            self._task.cancel()


def _concerns_one_key(reason: str, error: Exception) -> bool:
    """Whether an error concerns the stored value only, which has a foreign type: the server works."""
    return "WRONGTYPE" in (reason, *str(error).split())


def _reason(error: Exception) -> str:
    """Why the server cannot be used: the code of its reply, such as ``READONLY``; never text with a password."""
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
