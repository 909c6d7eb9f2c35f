"""Quotas in the file of the state store: exact near a limit, counted in the process and written later far from it."""

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pydantic import TypeAdapter

from app.access.usage import DAY, Kind, Limits, NameUsage, QuotaUsage, refusing, reserve, today
from toolchat.errors import StoreUnavailable
from toolchat.state.sqlite import SqliteStateStore

__all__ = ["SqliteQuotas"]

_WRITE_SECONDS: Final = 0.25
_SHARE: Final = 100
"""A process counts less than this part of what is left of a limit before it writes: of a limit below it, nothing."""
_USAGE = TypeAdapter(NameUsage)
T = TypeVar("T")


@dataclass(slots=True)
class _Unwritten:
    """What this process has counted under a name, and not written yet."""

    limits: Limits
    questions: int = 0
    tokens: int = 0
    started: dict[str, float] = field(default_factory=dict)
    """As ``NameUsage.running``."""
    ended: list[str] = field(default_factory=list)

    def count(self, question: str, until: float) -> None:
        """Count a question."""
        self.questions += 1
        if self.limits.concurrent is not None:
            self.started[question] = until

    def settle(self, question: str, tokens: int) -> None:
        """End a question, which may have been written."""
        self.tokens += tokens
        if self.limits.concurrent is not None and self.started.pop(question, None) is None:
            self.ended.append(question)

    def is_within(self, spare: dict[Kind, float]) -> bool:
        """Whether one more question may be counted before this is written."""
        running = len(self.started) - len(self.ended)
        return running < spare["concurrent"] and self.tokens < spare["day"] and self.questions < spare["minute"]

    def apply(self, used: NameUsage, now: float) -> None:
        """Add this to what has been used."""
        used.even = used.even_after(self.questions, self.limits, now)
        used.running |= self.started
        for question in self.ended:
            used.running.pop(question, None)
        if self.limits.tokens_per_day:
            used.tokens += self.tokens


@dataclass(slots=True)
class _View:
    """What has been used under a name, as the file had it last, and what this process has counted since."""

    limits: Limits
    used: NameUsage
    until: float
    """When the file has to be read again, on the monotonic clock."""
    spare: dict[Kind, float]
    """What may be counted until then."""


class SqliteQuotas:
    """Counts usage in the file of the state store, for all processes of this machine, and after a restart.

    Each further process may exceed a limit by a hundredth, and so may a restart after a crash; a limit below a hundred
    is exact. Every operation raises ``StoreUnavailable``.

    Args:
        store: the state store, in SQLite.
        longest: seconds after which a question counts as ended even if its process died.
    """

    def __init__(self, store: SqliteStateStore, *, longest: float) -> None:
        self._store = store
        self._longest = longest
        self._process = secrets.token_hex(8)
        self._views: dict[str, _View] = {}
        self._unwritten: dict[str, _Unwritten] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    async def reserve(self, limits: Sequence[Limits], question: int) -> Sequence[Sequence[QuotaUsage]]:
        """See :meth:`QuotaStore.reserve`."""
        name = f"{self._process}:{question}"

        def count(used: Sequence[NameUsage]) -> list[list[QuotaUsage]]:
            return reserve(used, limits, name, now=time.time(), longest=self._longest)

        if views := self._with_room(limits):
            usage = count(views)
            if not any(map(refusing, usage)):
                for each in limits:
                    self._changes(each).count(name, time.time() + self._longest)
                return usage
        return await self._update(limits, count)

    async def settle(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        """See :meth:`QuotaStore.settle`."""
        if all(each.concurrent is None and each.tokens_per_day is None for each in limits):
            return
        name = f"{self._process}:{question}"

        def settle(used: Sequence[NameUsage]) -> None:
            for usage, each in zip(used, limits, strict=True):
                usage.settle(each, name, tokens)

        if views := self._with_room(limits):
            settle(views)
            for each in limits:
                self._changes(each).settle(name, tokens)
        else:
            await self._update(limits, settle)

    async def aclose(self) -> None:
        """Write what is counted; if the store is unavailable, it is lost."""
        if self._timer:
            self._timer.cancel()
        await self._write()

    def _with_room(self, limits: Sequence[Limits]) -> list[NameUsage]:
        """What has been used under each name, if the file need not be asked; else nothing."""
        now, found = time.monotonic(), []
        for each in limits:
            view, changes = self._views.get(each.name), self._unwritten.get(each.name)
            if view is None or view.limits is not each or view.until < now:
                return []
            if changes and not changes.is_within(view.spare):
                return []
            view.used.start_day(today())
            found.append(view.used)
        return found

    def _changes(self, limits: Limits) -> _Unwritten:
        if (changes := self._unwritten.get(limits.name)) is None:
            changes = self._unwritten[limits.name] = _Unwritten(limits)
        return changes

    async def _update(self, limits: Sequence[Limits], change: Callable[[Sequence[NameUsage]], T]) -> T:
        """Change what has been used under the names of limits, in one step, and write what is counted under them."""
        unwritten = [self._unwritten.pop(each.name, None) for each in limits]
        for each in limits:  # until the file is read, nothing is counted without it
            self._views.pop(each.name, None)
        results: list[tuple[list[NameUsage], T]] = []

        def update(values: list[bytes | None]) -> Sequence[bytes]:
            used = [_USAGE.validate_json(value) if value else NameUsage() for value in values]
            for each, counted in zip(used, unwritten, strict=True):
                each.start_day(today())
                if counted:
                    counted.apply(each, time.time())
            results[:] = [(used, change(used))]
            return [_USAGE.dump_json(each) for each in used]

        # Kept for a day more than their tokens are needed, as clocks may differ.
        await self._store.update([f"quota:{each.name}" for each in limits], update, ttl=2 * DAY)
        used, result = results[0]
        self._look(limits, used)
        return result

    def _look(self, limits: Sequence[Limits], used: Sequence[NameUsage]) -> None:
        """Remember what the file has, if enough is left of every limit to count without it."""
        until = time.monotonic() + _WRITE_SECONDS
        for each, usage in zip(limits, used, strict=True):
            if counted := self._unwritten.get(each.name):
                counted.apply(usage, time.time())
            spare: dict[Kind, float] = {"concurrent": math.inf, "day": math.inf, "minute": math.inf}
            spare |= {quota.kind: quota.remaining // _SHARE for quota in usage.left(each, time.time())}
            if min(spare.values()) > 0:
                self._views[each.name] = _View(each, usage, until, spare)
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(_WRITE_SECONDS, self._start_writing)

    def _start_writing(self) -> None:
        self._timer = None
        self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        now = time.monotonic()
        self._views = {name: view for name, view in self._views.items() if view.until > now}
        if limits := [each.limits for each in self._unwritten.values()]:
            with suppress(StoreUnavailable):  # as with a question that cannot be settled
                await self._update(limits, lambda _: None)
