"""How many questions are answered at once, and whose."""

from collections import Counter

from app.access.quotas import Quotas, Spending
from app.callers import Principal, current_caller
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

    def place(self) -> "Place":
        """A place for one question of the current caller, for an ``async with``: who answers notes there what it uses.

        Raises:
            Overloaded: there is none, or none for this caller; as the block begins, like the others.
            Draining: the service is being stopped.
            QuotaExceeded: a quota is used up.
        """
        caller = current_caller.get()
        return Place(self, caller.principal, caller.share)

    def take(self, share: str) -> None:
        """Take a place; raises as :meth:`place`."""
        self._check(share)
        self.in_flight += 1
        self._taken[share] += 1

    def give_back(self, share: str) -> None:
        """Give it back."""
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


class Place:
    """The place of one question while it is being answered."""

    __slots__ = ("_admission", "_principal", "_share", "_spending")

    def __init__(self, admission: Admission, principal: Principal, share: str) -> None:
        self._admission, self._principal, self._share = admission, principal, share

    async def __aenter__(self) -> Spending:
        self._admission.take(self._share)
        try:
            self._spending = await self._admission.quotas.enter(self._principal)
        except BaseException:
            self._admission.give_back(self._share)
            raise
        return self._spending

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._admission.quotas.leave(self._spending)
        finally:
            self._admission.give_back(self._share)
