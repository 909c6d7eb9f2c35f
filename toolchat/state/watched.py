"""A state store on a server: every operation has a deadline, and fails fast while the server is unavailable."""

import asyncio
import logging
import math
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any

import toolchat.instruments as instruments
from toolchat.errors import StoreUnavailable
from toolchat.state.base import StateStore, Write

_PROBE_SECONDS = 2.0
_PROBE_SECONDS_UNAVAILABLE = 1.0
_WARNING_SECONDS = 60.0
_STEPS = 10

_log = logging.getLogger(__name__)
_probing: ContextVar[bool] = ContextVar("probing", default=False)
"""Whether the operation is the probe's, which runs although the server is unavailable."""


class WatchedStateStore(StateStore):
    """What the stores on a server share: deadlines, and a probe of the server.

    An operation fails if the server exceeds its deadline or refuses it. From then on all operations fail at once,
    until the probe succeeds: it tries immediately, then every second.

    Args:
        server: the address of the server in the log, without user and password.
        deadline: seconds for one operation.
        connections: how many operations run at the same time.
    """

    def __init__(self, server: str, *, deadline: float, connections: int) -> None:
        super().__init__()
        self._server = server
        self._deadline = deadline
        self._connections = connections
        self._permits = asyncio.Semaphore(connections)
        self._became_unavailable = asyncio.Event()
        self._warned_at = -_WARNING_SECONDS
        self._warned = False

    async def start(self) -> None:
        """Probe the server, and keep probing it in the background."""
        await self._probe()
        self._watcher = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Refuse further operations, wait for the running ones, and disconnect."""
        await super().aclose()
        with suppress(Exception):
            async with asyncio.timeout(self._deadline):
                for _ in range(self._connections):
                    await self._permits.acquire()
        await self._close_idle()

    async def run(
        self,
        name: str,
        operation: Callable[[], Awaitable[Any]],
        expected: type[Exception] | tuple[type[Exception], ...] = (),
        seconds: float | None = None,
    ) -> Any:
        """Run an operation and return its reply; ``None`` if the server refuses it as expected.

        ``seconds``: a longer deadline than that of others.
        """
        if self.available or _probing.get():
            began = math.inf
            try:
                with _Deadline(seconds or self._deadline):
                    async with self._permits:
                        began = time.monotonic()
                        reply = await operation()
                    instruments.observer.record_store_operation(self.kind, name, time.monotonic() - began)
                    return reply
            except Exception as error:  # noqa: BLE001 - a peer of another kind causes any error
                if isinstance(error, expected):
                    return None
                # A time-out that was mostly spent waiting for a connection says nothing about the server.
                if not isinstance(error, TimeoutError) or time.monotonic() - began > 0.8 * self._deadline:
                    self._failed(error)
        raise self._unavailable("the state store cannot be reached")

    async def probe(self) -> None:
        """Do what a turn does, so that a server that is full, read-only or lacks a permission is found."""
        writes = [Write("probe", b"", 10, lists=("probe",), line=b"", place=place) for place in (0, 1, 1)]
        await self.commit((*writes, Write("probe")), checks={"probe": (None, b"")})
        await self.listed("probe", limit=1)
        await self.read_log("probe")

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_SECONDS if self.available else _PROBE_SECONDS_UNAVAILABLE):
                    await self._became_unavailable.wait()
            self._became_unavailable.clear()
            if not self.available:
                await self._close_idle()
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

    async def _close_idle(self) -> None:
        with suppress(Exception):
            async with asyncio.timeout(self._deadline):
                await self.disconnect()

    @abstractmethod
    async def disconnect(self) -> None:
        """Close the idle connections: after an outage they may be dead without an error so far."""

    @abstractmethod
    def reason(self, error: Exception) -> str:
        """Why the server cannot be used, in a few words; never text with a password."""

    @abstractmethod
    def concerns_one_key(self, error: Exception) -> bool:
        """Whether an error concerns the stored value only, while the server works."""

    def _failed(self, error: Exception) -> None:
        reason = self.reason(error)
        self.cause = f"{reason}: {self._server}"
        if self.available and not self.concerns_one_key(error):
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


class Places:
    """Collects the keys or the values that a script gets, and their places in it."""

    def __init__(self, *first: Any) -> None:
        self.values: list[Any] = list(first)

    def add(self, value: Any) -> int:
        """The place of a value, counted from 1."""
        self.values.append(value)
        return len(self.values)


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
