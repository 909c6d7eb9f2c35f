"""Quotas: limits on questions per minute, concurrent questions and tokens per day, per principal and in total."""

import asyncio
import itertools
import math
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

import toolchat.instruments as instruments
from toolchat.errors import QuotaExceeded, StoreUnavailable
from toolchat.service.access.principals import Principal
from toolchat.service.access.usage import DAY, NameUsage, QuotaDecision, QuotaLimits, QuotaUsage, reserve
from toolchat.state.base import StateStore, decoding, kept_task
from toolchat.state.sqlite import SqliteStateStore

_RETRY_SECONDS = 1.0
_MEANING = {"minute": "questions per minute", "concurrent": "questions at once", "day": "tokens per day (UTC)"}
_USAGE: Final = TypeAdapter(NameUsage)
T = TypeVar("T")


@dataclass(slots=True)
class QuotaReservation:
    """An accepted question: the limits that it counts under, and its usage so far."""

    limits: Sequence[QuotaLimits] = ()
    usage: Sequence[QuotaUsage] = ()
    """The state of the principal's own limits, or of the total limits if the principal has none."""
    tokens: int = 0
    """Tokens to charge; set when the question has been answered."""
    question: str = ""
    store: StateStore | None = None
    """The store that counted it; ``None`` if no limit applies."""

    @property
    def headers(self) -> dict[str, str]:
        """``RateLimit-Policy`` and ``RateLimit``; empty if no limit applies."""
        return rate_limit_headers(self.limits[0], self.usage) if self.usage else {}


class Quotas:
    """Accepts or refuses questions, and charges their usage to the principal and to the total.

    Usage is counted in the state store, for all processes that share it. Availability comes first: while the store is
    away, each process applies the whole limits by itself, in its memory.

    Args:
        store: the state store.
        total: the limits of all principals together.
        lease: seconds after which a question counts as ended, unless its process lives and says that it is running.
    """

    def __init__(self, store: StateStore, total: QuotaLimits, *, lease: float = 30) -> None:
        self._store, self._own = store, SqliteStateStore()
        self._total, self._lease = total, lease
        self._running: dict[str, QuotaReservation] = {}
        self._tasks = set[asyncio.Task[None]]()
        self._renewal: asyncio.Task[None] | None = None
        self._limits = lru_cache(1000)(self._limits_of)  # of its name and limits: hashing a whole principal costs more
        self._numbers = itertools.count(1)
        self._process = secrets.token_hex(8)
        self.alone = False
        """Whether the last question was counted in this process because the shared store was unavailable."""

    async def reserve(self, principal: Principal) -> QuotaReservation:
        """Accept a question of a principal."""
        limits = self._limits(*_bounds(principal), *(_bounds(principal.page) if principal.page else ()))
        if not limits:
            return QuotaReservation()
        reservation = QuotaReservation(limits, question=f"{self._process}:{next(self._numbers)}", store=self._store)
        try:
            self.alone, decision = False, await self._reserve(reservation)
        except StoreUnavailable:
            self.alone, reservation.store = True, self._own
            decision = await self._reserve(reservation)
        except asyncio.CancelledError:
            kept_task(self._tasks, self.settle(reservation))  # it is counted, or will be
            raise
        decisive, reservation.usage, refused = decision
        if refused:
            limit = next(each for each in reservation.usage if each.kind == refused)
            detail = f"{limit.limit} {_MEANING[refused]} are used up"
            headers = rate_limit_headers(decisive, reservation.usage)
            raise QuotaExceeded(detail, refused, retry_after=limit.wait, headers=headers, usage=reservation.usage)
        if any(each.concurrent for each in limits):
            self._running[reservation.question] = reservation
            if self._renewal is None or self._renewal.done():
                self._renewal = kept_task(self._tasks, self._renew())
        return reservation

    async def settle(self, reservation: QuotaReservation) -> None:
        """End an accepted question; later if the store is unavailable."""
        self._running.pop(reservation.question, None)
        # A rate alone has nothing to count when a question ends.
        if reservation.store is None or not any(each.concurrent or each.tokens_per_day for each in reservation.limits):
            return

        def settle(used: Sequence[NameUsage], _: float) -> None:
            for usage, each in zip(used, reservation.limits, strict=True):
                usage.settle(each, reservation.question, reservation.tokens)

        try:
            await self._update(reservation, settle)
        except StoreUnavailable as error:
            self.alone = True
            if error.retryable:
                kept_task(self._tasks, self._settle_later(reservation))

    async def _settle_later(self, reservation: QuotaReservation) -> None:
        await asyncio.sleep(_RETRY_SECONDS)
        await self.settle(reservation)

    async def _renew(self) -> None:
        """Say that questions are running that take longer than most."""

        def renew(used: Sequence[NameUsage], now: float) -> None:
            for usage in used:
                usage.renew(reservation.question, now + self._lease)

        while self._running:
            await asyncio.sleep(self._lease / 3)
            for reservation in list(self._running.values()):
                with suppress(StoreUnavailable):
                    await self._update(reservation, renew)

    async def _reserve(self, reservation: QuotaReservation) -> QuotaDecision:
        def count(used: Sequence[NameUsage], now: float) -> QuotaDecision:
            return reserve(used, reservation.limits, reservation.question, now=now, lease=self._lease)

        began = time.perf_counter()
        try:
            return await self._update(reservation, count)
        finally:
            instruments.observer.record_wait("place", time.perf_counter() - began)

    async def _update(self, reservation: QuotaReservation, change: Callable[[Sequence[NameUsage], float], T]) -> T:
        """Change what has been used under the names of the limits, in one step."""
        results: list[T] = []

        def update(values: Sequence[bytes | None], now: float) -> Sequence[bytes]:
            with decoding("a quota cannot be read"):
                used = [_USAGE.validate_json(value) if value else NameUsage() for value in values]
            for each in used:
                each.refresh(now, self._lease)
            results[:] = [change(used, now)]
            return [_USAGE.dump_json(each) for each in used]

        # Kept for a day more than their tokens are needed, as clocks may differ.
        store = reservation.store or self._own
        await store.update([f"quota:{each.name}" for each in reservation.limits], update, ttl=2 * DAY)
        return results[0]

    def _limits_of(self, *bounds: Any) -> Sequence[QuotaLimits]:
        """The limits that apply to a principal: its own, those of the page that speaks for it, and the total."""
        own = [QuotaLimits(f"key:{bounds[at]}", *bounds[at + 1 : at + 4]) for at in range(0, len(bounds), 4)]
        return [each for each in (*own, self._total) if each.policy]


def _bounds(principal: Principal) -> tuple[Any, ...]:
    return principal.name, principal.requests_per_minute, principal.concurrent, principal.tokens_per_day


def rate_limit_headers(limits: QuotaLimits, usage: Sequence[QuotaUsage]) -> dict[str, str]:
    """The headers ``RateLimit-Policy`` and ``RateLimit``."""
    items = [f'"{each.kind}";r={max(each.remaining, 0)};t={math.ceil(each.wait)}' for each in usage]
    return {"RateLimit-Policy": limits.policy, "RateLimit": ", ".join(items)}
