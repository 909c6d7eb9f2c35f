"""Alarms: kept in the state store for all replicas, listed, deleted, and rung when they are due."""

import asyncio
import contextlib
import logging
import re
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter

from app.observability.logs import hashed
from toolchat.chat.advisors.idempotency import IdempotencyStore, IdempotentRequest
from toolchat.errors import NotFound, Overloaded, SessionBusy, ToolchatError, ValidationFailed
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatResponse
from toolchat.state.base import LockLost, StateStore, decoding
from toolchat.state.locks import Locks
from toolchat.tool_calling.caller import current_client_key
from toolchat.tool_calling.errors import ToolExecutionError

__all__ = ["Alarm", "AlarmIdempotency", "AlarmOrder", "AlarmStore", "due_at"]


_log = logging.getLogger(__name__)

_KEY = "alarms:all"
_KEPT = 367 * 86_400.0
"""Seconds that the alarms are kept after their last change: longer than the farthest one is ahead."""
_LONGEST_SLEEP = 60.0
"""Seconds after which the timer looks again: the clock may have been set, and other replicas set alarms."""


@dataclass(frozen=True, slots=True)
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
    share: str = ""
    """Who set it, as far as places are shared out: the principal, or the address of somebody without a key."""

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


_ALARMS = TypeAdapter(list[Alarm])


@dataclass(frozen=True, slots=True)
class AlarmOrder:
    """On whose behalf the alarms of one question are set; handed to the tool behind the model's back."""

    owner: str
    window: timedelta = timedelta()
    """How long the same argument from the same owner means the same alarm; nothing unless a GET may set alarms."""
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    request: str = field(default_factory=lambda: secrets.token_hex(8))
    """Identifies the request; one request sets at most one alarm per minute."""


class AlarmStore:
    """Keeps a bounded number of alarms; one task, begun when there are any, rings the next one due.

    Of the replicas that have had to do with alarms, whichever comes first rings one. Every operation raises
    ``StoreUnavailable`` when the store cannot be reached, and what changes alarms ``Overloaded`` when too many do.
    """

    def __init__(self, store: StateStore, *, limit: int = 1000) -> None:
        self._store = store
        self._locks = Locks(store, max_waiting=limit, client_key=current_client_key)
        self._limit = limit
        self._changed = asyncio.Event()
        self._timer: asyncio.Task[None] | None = None

    async def set(self, order: AlarmOrder, at: datetime, asked_for: str) -> Alarm:
        """Set an alarm, or find the one that the same request has set before.

        Raises:
            ToolExecutionError: so many alarms are waiting that there is no room (``too-many-alarms``).
        """
        async with self._changing() as alarms:
            known = next((each for each in alarms if each.is_meant_by(order, at, asked_for)), None)
            if known is None:
                share = hashed(current_client_key())
                self._make_room(alarms, share)
                now = datetime.now(UTC)
                known = Alarm(secrets.token_hex(8), order.owner, at, asked_for, order.request, now, share=share)
                alarms.append(known)
        self._wake()
        return known

    async def of(self, owner: str) -> list[Alarm]:
        """An owner's alarms, the next due first."""
        alarms = await self._read()
        if alarms:
            self._wake()
        return sorted((each for each in alarms if each.owner == owner), key=lambda each: each.at)

    async def set_by(self, request: str) -> list[Alarm]:
        """The alarms that a request has set."""
        return [each for each in await self._read() if each.request == request]

    async def delete(self, owner: str, identifier: str) -> Alarm:
        """Delete an owner's alarm.

        Raises:
            NotFound: the owner has none of this id.
        """
        async with self._changing() as alarms:
            alarm = next((each for each in alarms if (each.owner, each.id) == (owner, identifier)), None)
            if alarm is None:
                raise NotFound("there is no alarm under this id")
            alarms.remove(alarm)
        return alarm

    async def aclose(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    @asynccontextmanager
    async def _changing(self) -> AsyncGenerator[list[Alarm], None]:
        """All alarms, to be changed; nobody else changes them meanwhile."""
        try:
            async with self._locks.hold(_KEY) as lock:
                alarms = await self._read()
                before = tuple(alarms)
                yield alarms
                if tuple(alarms) != before:
                    await self._store.put(_KEY, _ALARMS.dump_json(alarms), ttl=_KEPT, lock=lock)
        except (SessionBusy, LockLost):
            raise Overloaded("too many alarms are being changed just now", retry_after=1) from None

    async def _read(self) -> list[Alarm]:
        value = await self._store.get(_KEY) or b"[]"
        with decoding("the alarms cannot be read"):
            return _ALARMS.validate_json(value)

    def _make_room(self, alarms: list[Alarm], share: str) -> None:
        waiting = sum(not each.fired for each in alarms if each.share == share)
        if waiting >= max(1, self._limit // 2):  # the other half is for the others
            raise ToolExecutionError(f"{waiting} alarms of this client are waiting already", kind="too-many-alarms")
        if len(alarms) < self._limit:
            return
        oldest = min((each for each in alarms if each.fired), key=lambda each: each.at, default=None)
        if oldest is None:
            raise ToolExecutionError(f"{self._limit} alarms are waiting already", kind="too-many-alarms")
        alarms.remove(oldest)

    def _wake(self) -> None:
        self._changed.set()
        if self._timer is None or self._timer.done():
            # A context of its own: the log lines of the timer belong to no request.
            self._timer = asyncio.create_task(self._ring(), context=Context())

    async def _ring(self) -> None:
        while True:
            self._changed.clear()
            wait = await self._rung()
            if wait is None and not self._changed.is_set():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(wait or 0, _LONGEST_SLEEP)):
                    await self._changed.wait()

    async def _rung(self) -> float | None:
        """Ring what is due; seconds until the next alarm is, ``None`` when no other waits."""
        try:
            if _due(await self._read()):
                await self._ring_all()
            waiting = [each.at for each in await self._read() if not each.fired]
        except ToolchatError:
            return 1.0
        return max((min(waiting) - datetime.now(UTC)).total_seconds(), 0) if waiting else None

    async def _ring_all(self) -> None:
        async with self._changing() as alarms:
            due = _due(alarms)
            alarms[:] = [replace(each, fired=True) if each in due else each for each in alarms]
        for each in due:
            _log.info("alarm fired", extra={"alarm": each.id, "due": each.at.isoformat()})


def _due(alarms: Sequence[Alarm]) -> list[Alarm]:
    now = datetime.now(UTC)
    return [each for each in alarms if not each.fired and each.at <= now]


class AlarmIdempotency(IdempotencyStore):
    """Finds the alarms that a request has set, so that a failed request without any may be repeated."""

    def __init__(self, store: StateStore, alarms: AlarmStore) -> None:
        super().__init__(store)
        self._alarms = alarms

    def reused(self) -> ToolchatError:
        """See :meth:`IdempotencyStore.reused`."""
        return ValidationFailed("Idempotency-Key: was used with another question; use a new key")

    async def check_incomplete(self, idempotent: IdempotentRequest) -> ChatResponse | None:
        """The answer to a request that has set an alarm; ``None`` if it has set none."""
        alarms = await self._alarms.set_by(idempotent.name)
        times = ", ".join(each.at.isoformat(timespec="seconds") for each in alarms)
        text = f"闹钟已设置 / alarm set: {times}. 首次回答没有完成 / the first answer was not completed."
        return ChatResponse(AssistantMessage(text), "stop", Usage(), "") if alarms else None

    async def release(self, idempotent: IdempotentRequest, *, began: bool) -> None:
        """Store the alarms of a failed request as its answer; if there are none, free its key."""
        if began and (answer := await self.check_incomplete(idempotent)):
            await self.save(idempotent, answer)
        else:
            await super().release(idempotent, began=False)


_FARTHEST = timedelta(days=366)
_DURATION = re.compile(
    r"P(?=.)(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?"
    r"(?:T(?=.)(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)S)?)?",
    re.ASCII,
)
_HINT = "use a date and time such as 2030-01-31T07:30:00+08:00, or a duration from now such as PT10M"


def due_at(text: str, asked_at: datetime, zone: ZoneInfo) -> tuple[datetime, str]:
    """Read an absolute time, or a duration counted from the moment of asking.

    Args:
        text: what the model wrote.
        asked_at: when the question came in; the same for all calls of one question, so that a call made twice means
            the same moment.
        zone: the zone of a time that names no offset.

    Returns:
        The moment in UTC, and the canonical text of what was asked for.

    Raises:
        ToolExecutionError: it is neither (``invalid-time``), left out by clocks that are put forward
            (``no-such-time``), past (``past-time``), or more than a year ahead (``too-far``).
    """
    duration = _duration(text.strip())
    due = _absolute(text.strip(), zone) if duration is None else asked_at + min(duration, 2 * _FARTHEST)
    now = datetime.now(UTC)
    if due < now and (duration is None or not duration):
        said = f"it is {now.astimezone(zone).isoformat(timespec='seconds')} now"
        raise ToolExecutionError(f"this time is past: {said}", kind="past-time", hint=_HINT)
    if due > now + _FARTHEST:
        raise ToolExecutionError("this time is more than a year ahead", kind="too-far", hint="set it later")
    return due, due.isoformat() if duration is None else f"PT{duration.total_seconds():g}S"


def _duration(text: str) -> timedelta | None:
    match = _DURATION.fullmatch(text.upper())
    if match is None:
        return None
    weeks, days, hours, minutes, seconds = (float(each or 0) for each in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _absolute(text: str, zone: ZoneInfo) -> datetime:
    try:
        if not re.search(r"[0-9][T ][0-9]", text, re.IGNORECASE):
            raise ValueError("no time of day")
        moment = datetime.fromisoformat(text.upper())
        due = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ToolExecutionError("the time is not in ISO-8601", kind="invalid-time", hint=_HINT) from None
    if moment.tzinfo is None and due.astimezone(zone).replace(tzinfo=None) != moment:
        said = f"clocks in {zone.key} are put forward then; there is no {moment:%H:%M} on that day"
        raise ToolExecutionError(said, kind="no-such-time", hint="ask for another time, or name an offset from UTC")
    return due
