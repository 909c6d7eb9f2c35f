"""Alarms: stored for all replicas, set once per request, and the times that a model may ask for."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter, ValidationError

from toolchat import (
    RECORD_VERSION,
    AssistantMessage,
    ChatResponse,
    Lock,
    LockLost,
    Locks,
    NotFound,
    Overloaded,
    RecordVersion,
    SessionBusy,
    StateStore,
    StoreUnavailable,
    ToolchatError,
    ToolExecutionError,
    Usage,
    ValidationFailed,
    current_client_key,
)
from toolchat.service import IdempotencyStore, IdempotentRequest, belonging_to

_LIST = "alarms"
"""The list of all alarms, and the name of the lock under which one is added."""
_TTL = 367 * 86_400.0
"""Seconds that an alarm is stored: longer than it may be ahead."""
_FARTHEST = timedelta(days=366)
_DURATION = re.compile(
    r"P(?=.)(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?"
    r"(?:T(?=.)(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)S)?)?",
    re.ASCII,
)
_HINT = "use a date and time such as 2030-01-31T07:30:00+08:00, or a duration from now such as PT10M"


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm."""

    id: str
    owner: str
    at: datetime
    """In UTC."""
    request: str
    set_at: datetime
    share: str
    """Hash of the client that set the alarm: its principal, or its address if it has no key."""
    version: RecordVersion = RECORD_VERSION

    @property
    def is_due(self) -> bool:
        """Whether its time has come."""
        return self.at <= datetime.now(UTC)

    def matches(self, order: "AlarmOrder", at: datetime) -> bool:
        """Whether a call asks for this alarm once more."""
        if self.owner != order.owner:
            return False
        is_same_minute = _minute(self.at) == _minute(at)
        # Within one request a model may compute the same time again, some seconds off.
        return (self.at == at and not self.is_due) or (self.request == order.request and is_same_minute)


_ALARM = TypeAdapter(Alarm)


def _key(identifier: str) -> str:
    return f"alarm:{identifier}"


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class AlarmOrder:
    """On behalf of whom alarms are set; passed in the tool context, hidden from the model."""

    owner: str
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    request: str = field(default_factory=lambda: secrets.token_hex(8))
    """Id of the request; one request sets at most one alarm per minute."""


class AlarmStore:
    """Stores a bounded number of alarms. Nothing happens when one is due: its status follows from the time.

    Every operation raises ``StoreUnavailable`` if the store cannot be reached.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self.limit = 1000
        self._locks = Locks(store, max_waiting=self.limit, client_key=current_client_key)

    async def set(self, order: AlarmOrder, at: datetime) -> Alarm:
        """Set an alarm, or return the one that the same request has set before.

        Raises:
            ToolExecutionError: the limit of waiting alarms is reached (``too-many-alarms``).
            Overloaded: too many alarms are set at once.
        """
        try:
            async with self._locks.hold(_LIST) as lock:
                alarms = await self._listed(_LIST)
                known = next((each for each in alarms if each.matches(order, at)), None)
                return known or await self._add(order, at, alarms, lock)
        except (SessionBusy, LockLost):
            raise Overloaded("too many alarms are being changed just now", retry_after=1) from None

    async def _add(self, order: AlarmOrder, at: datetime, alarms: list[Alarm], lock: Lock) -> Alarm:
        share = hashlib.sha256(current_client_key().encode()).hexdigest()[:16]
        added = Alarm(secrets.token_hex(8), order.owner, at, order.request, datetime.now(UTC), share)
        if (oldest := self._to_evict(alarms, share)) is not None:
            await self._store.delete(_key(oldest.id), lock=lock)
        lists = (_LIST, f"{_LIST}:{order.owner}", *belonging_to())
        await self._store.put(_key(added.id), _ALARM.dump_json(added), ttl=_TTL, lock=lock, lists=lists)
        return added

    async def of(self, owner: str) -> list[Alarm]:
        """Return an owner's alarms, sorted by time."""
        return sorted(await self._listed(f"{_LIST}:{owner}"), key=lambda each: each.at)

    async def set_by(self, request: str) -> list[Alarm]:
        """Return the alarms that a request has set."""
        return [each for each in await self._listed(_LIST) if each.request == request]

    async def delete(self, owner: str, identifier: str) -> Alarm:
        """Delete an owner's alarm and return it.

        Raises:
            NotFound: the owner has no alarm with this id.
        """
        alarm = next((each for each in await self.of(owner) if each.id == identifier), None)
        if alarm is None or not await self._store.delete(_key(identifier)):
            raise NotFound("there is no alarm under this id")
        return alarm

    async def _listed(self, name: str) -> list[Alarm]:
        try:
            return [_ALARM.validate_json(value) async for _, value, _ in self._store.newest(name)]
        except ValidationError:
            raise StoreUnavailable("the alarms cannot be read", retryable=False) from None

    def _to_evict(self, alarms: list[Alarm], share: str) -> Alarm | None:
        """The alarm that makes room for one more, if it takes that."""
        waiting = sum(not each.is_due for each in alarms if each.share == share)
        # One client gets half of the alarms at most: the other half is left to all others.
        if waiting >= max(1, self.limit // 2):
            raise ToolExecutionError(f"{waiting} alarms of this client are waiting already", kind="too-many-alarms")
        if len(alarms) < self.limit:
            return None
        # Past alarms are kept as a record, and are the first to go.
        oldest = min((each for each in alarms if each.is_due), key=lambda each: each.at, default=None)
        if oldest is None:
            raise ToolExecutionError(f"{self.limit} alarms are waiting already", kind="too-many-alarms")
        return oldest


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

    async def release(self, idempotent: IdempotentRequest, lock: Lock, *, began: bool) -> None:
        """Store the alarms of a failed request as its answer; if there are none, free its key."""
        if began and (answer := await self.check_incomplete(idempotent)):
            await self.save(idempotent, lock, answer)
        else:
            await super().release(idempotent, lock, began=False)


def due_at(text: str, asked_at: datetime, zone: ZoneInfo) -> datetime:
    """Parse an absolute time, or a duration from the time of the request.

    Args:
        text: the model's argument.
        asked_at: time of the request; the same for all its calls, so that a repeated call means the same alarm.
        zone: time zone of a time without an offset.

    Returns:
        The time in UTC.

    Raises:
        ToolExecutionError: the text is neither (``invalid-time``), or the time is skipped by daylight saving
            (``no-such-time``), past (``past-time``), or more than a year ahead (``too-far``).
    """
    duration = _duration(text.strip())
    # Bounded before it is added: a huge duration would overflow datetime.
    due = _absolute(text.strip(), zone) if duration is None else asked_at + min(duration, 2 * _FARTHEST)
    now = datetime.now(UTC)
    if due < now and (duration is None or not duration):
        current = f"it is {now.astimezone(zone).isoformat(timespec='seconds')} now"
        raise ToolExecutionError(f"this time is past: {current}", kind="past-time", hint=_HINT)
    if due > now + _FARTHEST:
        raise ToolExecutionError("this time is more than a year ahead", kind="too-far", hint="set it later")
    return due


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
    # A local time within the gap comes back as another one (PEP 495).
    if moment.tzinfo is None and due.astimezone(zone).replace(tzinfo=None) != moment:
        gap = f"clocks in {zone.key} are put forward then; there is no {moment:%H:%M} on that day"
        raise ToolExecutionError(gap, kind="no-such-time", hint="ask for another time, or name an offset from UTC")
    return due
