"""How many questions are answered at once, and whose."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.access.quotas import Quotas, Spending
from app.callers import current_caller
from app.errors import Draining, Overloaded

__all__ = ["Admission"]


class Admission:
    """Places for questions; one more is refused at once instead of waiting unseen.

    Args:
        limit: places.
        per_client: places that one principal, or one address without a key, may take; the others are for the others.
        quotas: what else a principal may use.
    """

    def __init__(self, limit: int, per_client: int, quotas: Quotas) -> None:
        self._limit = limit
        self._per_client = per_client
        self.quotas = quotas
        self._taken: Counter[str] = Counter()
        self.in_flight = 0
        self.refused = 0
        self.draining = False
        """Set when the service is told to stop; the questions that it has are answered, and no others."""

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[Spending, None]:
        """Take a place for one question of the current caller; who answers it notes there what it has used.

        Raises:
            Overloaded: there is none, or none for this caller.
            Draining: the service is being stopped.
            QuotaExceeded: a quota is used up.
        """
        caller = current_caller.get()
        share = caller.share
        self._check(share)
        self.in_flight += 1
        self._taken[share] += 1
        try:
            spending = await self.quotas.enter(caller.principal)
            try:
                yield spending
            finally:
                await self.quotas.leave(spending)
        finally:
            self.in_flight -= 1
            self._taken[share] -= 1
            if not self._taken[share]:
                del self._taken[share]

    def _check(self, share: str) -> None:
        if self.draining:
            raise Draining("the service is being stopped and takes no more questions", retry_after=1)
        if self.in_flight >= self._limit or self._taken[share] >= self._per_client:
            self.refused += 1
            everybody = self.in_flight >= self._limit
            places = f"{self._limit} questions" if everybody else f"{self._per_client} questions of this client"
            raise Overloaded(f"{places} are being answered already", retry_after=1)
