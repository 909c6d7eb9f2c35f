"""The connection to Redis: every operation bounded, and none tried while it is known to be away."""

import asyncio
import hashlib
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from toolchat import instruments
from toolchat.errors import StoreUnavailable
from toolchat.state.base import StateStore

__all__ = ["RedisConnection"]

_CONNECTIONS = 64
_WHILE_AVAILABLE = 2.0
_WHILE_AWAY = 1.0
_WARNING_EVERY = 60.0

_log = logging.getLogger(__name__)
T = TypeVar("T")


class RedisConnection(StateStore):
    """What all operations share: connections, deadlines, and a watch over the server.

    An operation fails when it takes longer than its deadline, or when the server refuses it. From then on all fail
    without being tried, until the watch has written a value again: it tries at once, then every second.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        prefix: what the names of all keys begin with.
        deadline: seconds that one operation may take.

    Raises:
        ValueError: the URL cannot be used.
    """

    kind = "redis"

    def __init__(self, url: str, *, prefix: str, deadline: float) -> None:
        self.available = True
        self.failures = 0
        self._prefix = prefix
        self._pool = _pool(url, deadline)
        self._server = _server(self._pool.connection_kwargs)
        self._idle: list[AbstractConnection] = []
        self._deadline = deadline
        self._permits = asyncio.Semaphore(_CONNECTIONS)
        self._went_away = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self._warned_at = -_WARNING_EVERY
        self._warned = False

    async def start(self) -> None:
        """Look whether the server is there, and keep looking."""
        await self._probe()
        self._watcher = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Refuse further operations, let the running ones end, and disconnect."""
        self.available = False
        if self._watcher:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
        with suppress(Exception):
            async with asyncio.timeout(self._deadline):
                for _ in range(_CONNECTIONS):
                    await self._permits.acquire()
        await self._disconnect()

    def script(self, name: str, text: str) -> Callable[[Sequence[str], Sequence[object]], Awaitable[Any]]:
        """Make a script callable; the prefix comes before its keys."""
        run = self._script(text)

        def call(keys: Sequence[str], arguments: Sequence[object]) -> Awaitable[Any]:
            return self._run(name, lambda: run([f"{self._prefix}{key}" for key in keys], arguments))

        return call

    def _script(self, text: str) -> Callable[[Sequence[str], Sequence[object]], Coroutine[Any, Any, Any]]:
        """Make a script callable as an operation; the server is sent it once, and then knows it by its digest."""
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

        async def run(keys: Sequence[str], arguments: Sequence[object]) -> Any:
            given = (len(keys), *keys, *arguments)
            try:
                return await self._ask("EVALSHA", digest, *given)
            except NoScriptError:
                return await self._ask("EVAL", text, *given)

        return run

    async def _ask(self, *command: object) -> Any:
        """Send a command and wait for its reply.

        Not by the library's client, but over its connections: what the client does around a command costs more than
        all else of the way to the server, and nothing of it is wanted here: tries anew, telemetry, replies made nicer.
        """
        connection = self._idle.pop() if self._idle else self._pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            await self._pool.ensure_connection(connection)
            await connection.send_packed_command(_packed(command), check_health=False)
            return await connection.read_response()
        finally:
            self._idle.append(connection)  # one that failed is closed, and opened again when it is its turn

    async def _run(self, name: str, operation: Callable[[], Awaitable[T]]) -> T:
        if self.available:
            began = math.inf
            try:
                async with asyncio.timeout(self._deadline), self._permits:
                    began = time.monotonic()
                    if self.available:
                        result = await operation()
                        instruments.observer.record_store_operation(self.kind, name, time.monotonic() - began)
                        return result
            except Exception as error:  # noqa: BLE001 - to a peer that is no Redis the client says anything
                # Whoever waited for a connection most of the time says nothing about the server.
                if not isinstance(error, TimeoutError) or time.monotonic() - began > 0.8 * self._deadline:
                    self._failed(error)
        self.failures += 1
        raise StoreUnavailable("the state store cannot be reached", retry_after=1)

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WHILE_AVAILABLE if self.available else _WHILE_AWAY):
                    await self._went_away.wait()
            self._went_away.clear()
            if not self.available:
                await self._disconnect()
            await self._probe()

    async def _probe(self) -> None:
        """Write a value, since a server that is full or read-only would answer a ping."""
        try:
            async with asyncio.timeout(self._deadline):
                await self._ask("SET", f"{self._prefix}probe", b"", "PX", 1)
        except Exception as error:  # noqa: BLE001 - the watch must not end
            self._failed(error)
        else:
            self._succeeded()

    async def _disconnect(self) -> None:
        """Drop the idle connections: those to a server that was away may be dead without knowing it."""
        with suppress(Exception):
            async with asyncio.timeout(self._deadline):
                while self._idle:
                    await self._idle.pop().disconnect()

    def _failed(self, error: Exception) -> None:
        reason = _reason(error)
        if self.available and not _concerns_one_key(reason, error):
            self.available = False
            self._went_away.set()
        if time.monotonic() - self._warned_at >= _WARNING_EVERY:
            self._warned_at = time.monotonic()
            self._warned = True
            _log.warning("the state store cannot be used", extra={"server": self._server, "reason": reason})

    def _succeeded(self) -> None:
        self.available = True
        if self._warned:
            self._warned = False
            _log.info("the state store can be used again")


def _packed(command: Sequence[object]) -> bytes:
    """A command as the protocol has it (RESP): a list of texts, each with its length in bytes."""
    pieces = [b"*%d" % len(command)]
    for each in command:
        text = each if isinstance(each, bytes) else str(each).encode()
        pieces += (b"$%d" % len(text), text)
    return b"\r\n".join((*pieces, b""))


def _concerns_one_key(reason: str, error: Exception) -> bool:
    """Whether what is kept there cannot be used, though the server works: a foreign type, or a text for a number."""
    return reason == "WRONGTYPE" or (reason == "ERR" and "user_script" in str(error))


def _reason(error: Exception) -> str:
    """The code of a refusal, such as ``READONLY``, or the kind of failure; nothing that holds a password."""
    if isinstance(error, RedisError) and error.status_code:
        return error.status_code
    refusal = re.match(r"[A-Z]{2,30}\b", str(error)) if isinstance(error, ResponseError) else None
    # That nobody listens and that a name is unknown are one error to the library, and two to whoever looks for a fault.
    cause = error.__context__ if isinstance(error.__context__, OSError) else error
    return refusal.group() if refusal else type(cause).__name__


def _pool(url: str, deadline: float) -> ConnectionPool:
    """Connections without time limits of their own: those would cost a task per command and bound no whole operation.

    There is one more than operations may use, for the probe.
    """
    bounds: dict[str, Any] = {
        "max_connections": _CONNECTIONS + 1,
        "socket_timeout": None,
        "socket_connect_timeout": deadline,
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": 0,
        "decode_responses": False,
        "driver_info": None,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
    }
    try:
        _check_password(url)
        pool = ConnectionPool(**{**parse_url(url), **bounds})
        pool.connection_class(**pool.connection_kwargs)
    except (RedisError, TypeError, ValueError):
        raise ValueError("the URL of Redis cannot be used") from None
    return pool


def _check_password(url: str) -> None:
    """A password with a bare ``/`` or ``?`` ends the address too early: its beginning would be taken for a port.

    Raises:
        ValueError: there is an ``@`` behind the address.
    """
    parts = urlsplit(url)
    if parts.scheme != "unix" and "@" in parts.path + parts.query:
        raise ValueError


def _server(connection: Mapping[str, Any]) -> str:
    """Where it is, as far as anybody may read it: the host and the port, or a socket's path."""
    if path := connection.get("path"):
        return str(path)
    host = connection.get("host", "localhost")
    return f"{f'[{host}]' if ':' in host else host}:{connection.get('port', 6379)}"
