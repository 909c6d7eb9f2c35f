"""Alarms of this process: kept, listed, deleted, and rung when they are due."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Iterator
from contextvars import Context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from app.errors import NotFound
from app.tool_calling.errors import ToolExecutionError

__all__ = ["Alarm", "AlarmOrder", "AlarmStore"]

_log = logging.getLogger(__name__)

_LONGEST_SLEEP = 60
"""Seconds after which the timer looks at the clock again: the machine's clock may have been set."""


@dataclass(slots=True)
class Alarm:
    """One alarm."""

    id: str
    owner: str
    at: datetime
    """In UTC."""
    asked_for: str
    """The canonical argument by which it was asked for."""
    request: str
    set_at: datetime
    fired: bool = False

    @property
    def _minute(self) -> datetime:
        return self.at.replace(second=0, microsecond=0)

    def is_meant_by(self, order: "AlarmOrder", at: datetime, asked_for: str) -> bool:
        """Whether a call asks for this very alarm once more."""
        if self.owner != order.owner:
            return False
        same_minute = self._minute == at.replace(second=0, microsecond=0)
        lately = self.asked_for == asked_for and order.asked_at - self.set_at < order.window
        return (self.at == at and not self.fired) or (self.request == order.request and same_minute) or lately


@dataclass(frozen=True, slots=True)
class AlarmOrder:
    """On whose behalf the alarms of one question are set; handed to the tool behind the model's back."""

    owner: str
    window: timedelta = timedelta()
    """How long the same argument from the same owner means the same alarm; nothing unless a GET may set alarms."""
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    request: str = field(default_factory=lambda: secrets.token_hex(8))
    """Marks the question, and is no client's to choose; within one question there is one alarm per minute."""
    alarms: list[Alarm] = field(default_factory=list)
    """What has been set so far."""


class AlarmStore:
    """Keeps a bounded number of alarms; one task, begun with the first alarm, rings the next one due."""

    def __init__(self, *, limit: int = 1000) -> None:
        self._limit = limit
        self._alarms: dict[str, Alarm] = {}
        self._changed = asyncio.Event()
        self._timer: asyncio.Task[None] | None = None

    def set(self, order: AlarmOrder, at: datetime, asked_for: str) -> Alarm:
        """Set an alarm, or find the one that was set by the same wish before.

        Raises:
            ToolExecutionError: so many alarms are waiting that there is no room (``too-many-alarms``).
        """
        known = next((each for each in self._alarms.values() if each.is_meant_by(order, at, asked_for)), None)
        if known is not None:
            return known
        self._make_room()
        alarm = Alarm(secrets.token_hex(8), order.owner, at, asked_for, order.request, datetime.now(UTC))
        self._alarms[alarm.id] = alarm
        self._wake()
        return alarm

    def of(self, owner: str) -> list[Alarm]:
        """An owner's alarms, the next due first."""
        return sorted((each for each in self._alarms.values() if each.owner == owner), key=lambda each: each.at)

    def delete(self, owner: str, identifier: str) -> Alarm:
        """Delete an owner's alarm.

        Raises:
            NotFound: the owner has none of this id.
        """
        alarm = self._alarms.get(identifier)
        if alarm is None or alarm.owner != owner:
            raise NotFound("there is no alarm under this id")
        del self._alarms[identifier]
        self._changed.set()
        return alarm

    async def aclose(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    def _make_room(self) -> None:
        if len(self._alarms) < self._limit:
            return
        oldest = min((each for each in self._alarms.values() if each.fired), key=lambda each: each.at, default=None)
        if oldest is None:
            raise ToolExecutionError(f"{self._limit} alarms are waiting already", kind="too-many-alarms")
        del self._alarms[oldest.id]

    def _wake(self) -> None:
        self._changed.set()
        if self._timer is None or self._timer.done():
            # A context of its own: the log lines of the timer belong to no request.
            self._timer = asyncio.create_task(self._ring(), context=Context())

    def _waiting(self) -> Iterator[Alarm]:
        return (each for each in self._alarms.values() if not each.fired)

    async def _ring(self) -> None:
        while (due := min(self._waiting(), key=lambda each: each.at, default=None)) is not None:
            wait = (due.at - datetime.now(UTC)).total_seconds()
            if wait <= 0:
                due.fired = True
                _log.info("alarm fired", extra={"alarm": due.id, "due": due.at.isoformat()})
                continue
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(wait, _LONGEST_SLEEP)):
                    await self._changed.wait()
