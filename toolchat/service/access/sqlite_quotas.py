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

from toolchat.errors import StoreUnavailable
from toolchat.service.access.usage import DAY, Decision, Kind, Limits, NameUsage, count, observed_wait, reserve, today
from toolchat.state.sqlite import SqliteStateStore

_WRITE_SECONDS: Final = 0.25
_SHARE: Final = 100
"""A process counts less than this part of what is left of a limit before it writes: of a limit below it, nothing."""
_USAGE = TypeAdapter(NameUsage)
T = TypeVar("T")


@dataclass(slots=True)
class _View:
    """What has been used under a name, as the file had it last, and what this process has counted since."""

    limits: Limits
    used: NameUsage
    until: float = 0.0
    """When the file has to be read again, on the monotonic clock."""
    spare: tuple[float, float, float] = (0, 0, 0)
    """Concurrent questions, tokens and questions that may be counted until then."""
    questions: int = 0
    """Counted, and not written yet; so are the following."""
    tokens: int = 0
    started: dict[str, float] = field(default_factory=dict)
    """As ``NameUsage.running``."""
    ended: list[str] = field(default_factory=list)

    @property
    def has_changes(self) -> bool:
        """Whether anything is not written yet."""
        return bool(self.questions or self.tokens or self.started or self.ended)

    def has_room(self, now: float) -> bool:
        """Whether one more question may be counted before this is written."""
        concurrent, tokens, questions = self.spare
        has_room = self.questions < questions and self.tokens < tokens and now <= self.until
        return has_room and len(self.started) - len(self.ended) < concurrent

    def note(self, question: str) -> None:
        """Note a question that was counted."""
        self.questions += 1
        if self.limits.concurrent is not None:
            self.started[question] = self.used.running[question]

    def settle(self, question: str, tokens: int) -> None:
        """End a question, which may have been written."""
        self.used.settle(self.limits, question, tokens)
        if self.limits.tokens_per_day:
            self.tokens += tokens
        if self.limits.concurrent is not None and self.started.pop(question, None) is None:
            self.ended.append(question)

    def apply(self, used: NameUsage, now: float) -> None:
        """Add what is not written to what has been used."""
        used.even = used.even_after(self.questions, self.limits, now)
        used.running |= self.started
        for question in self.ended:
            used.running.pop(question, None)
        used.tokens += self.tokens


class SqliteQuotas:
    """Counts usage in the file of the state store, for all processes of this machine, and after a restart.

    Each further process may exceed a limit by a hundredth, and so may a restart after a crash; a limit below a hundred
    is exact. Every operation raises ``StoreUnavailable``.

    Args:
        longest: seconds after which a question counts as ended even if its process died.
    """

    def __init__(self, store: SqliteStateStore, *, longest: float) -> None:
        self._store = store
        self._longest = longest
        self._process = secrets.token_hex(8)
        self._views: dict[str, _View] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    async def reserve(self, limits: Sequence[Limits], question: int) -> Decision:
        name, longest = f"{self._process}:{question}", self._longest
        if views := self._with_room(limits):
            # No limit can refuse the question: with room, less than a hundredth of what was left has been counted.
            decision = count([each.used for each in views], limits, name, now=time.time(), longest=longest)
            for view in views:
                view.note(name)
            return decision

        def counted(used: Sequence[NameUsage]) -> Decision:
            return reserve(used, limits, name, now=time.time(), longest=longest)

        with observed_wait():
            return await self._update(limits, counted)

    async def settle(self, limits: Sequence[Limits], question: int, tokens: int) -> None:
        name = f"{self._process}:{question}"
        if views := self._with_room(limits):
            for view in views:
                view.settle(name, tokens)
            return

        def settle(used: Sequence[NameUsage]) -> None:
            for usage, each in zip(used, limits, strict=True):
                usage.settle(each, name, tokens)

        if any(each.concurrent is not None or each.tokens_per_day is not None for each in limits):
            await self._update(limits, settle)

    async def aclose(self) -> None:
        """Write what is counted; if the store is unavailable, it is lost."""
        await self._write()
        if self._timer:
            self._timer.cancel()

    def _with_room(self, limits: Sequence[Limits]) -> list[_View]:
        """What has been used under each name, if the file need not be asked; else nothing."""
        now, found = time.monotonic(), []
        for each in limits:
            view = self._views.get(each.name)
            if view is None or view.limits is not each or not view.has_room(now):
                return []
            found.append(view)
        return found

    async def _update(self, limits: Sequence[Limits], change: Callable[[Sequence[NameUsage]], T]) -> T:
        """Change what has been used under the names of limits, in one step, and write what is counted under them."""
        # Until the file is read, nothing is counted without it.
        views = [self._views.pop(each.name, None) for each in limits]
        results: list[tuple[list[NameUsage], T]] = []

        def update(values: list[bytes | None]) -> Sequence[bytes]:
            used = [_USAGE.validate_json(value) if value else NameUsage() for value in values]
            for each, view in zip(used, views, strict=True):
                each.start_day(today())
                if view:
                    view.apply(each, time.time())
            results[:] = [(used, change(used))]
            return [_USAGE.dump_json(each) for each in used]

        # Kept for a day more than their tokens are needed, as clocks may differ.
        await self._store.update([f"quota:{each.name}" for each in limits], update, ttl=2 * DAY)
        used, result = results[0]
        self._look(limits, used)
        return result

    def _look(self, limits: Sequence[Limits], used: Sequence[NameUsage]) -> None:
        """Remember what the file has, if enough is left of every limit to count without it."""
        now = time.time()
        # At midnight the tokens of the day are 0 again.
        until = time.monotonic() + min(_WRITE_SECONDS, DAY - now % DAY)
        for each, usage in zip(limits, used, strict=True):
            # Another question may have read the file and counted meanwhile.
            view = self._views.pop(each.name, None) or _View(each, usage)
            view.apply(usage, now)
            spare: dict[Kind, float] = {"concurrent": math.inf, "day": math.inf, "minute": math.inf}
            spare |= {quota.kind: quota.remaining // _SHARE for quota in usage.left(each, now)}
            if min(spare.values()) > 0 or view.has_changes:
                view.used, view.until, view.spare = usage, until, (spare["concurrent"], spare["day"], spare["minute"])
                self._views[each.name] = view
        self._schedule()

    def _schedule(self) -> None:
        if self._views and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_SECONDS, self._start_writing)

    def _start_writing(self) -> None:
        self._timer = None
        self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        now = time.monotonic()
        self._views = {name: view for name, view in self._views.items() if view.until > now or view.has_changes}
        self._schedule()
        if limits := [view.limits for view in self._views.values() if view.has_changes]:
            with suppress(StoreUnavailable):  # as with a question that cannot be settled
                await self._update(limits, lambda _: None)
