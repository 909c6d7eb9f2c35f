"""How many questions are answered at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Draining, Overloaded

__all__ = ["Admission"]


class Admission:
    """Places for questions; one more is refused at once instead of waiting unseen."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.in_flight = 0
        self.refused = 0
        self.draining = False
        """Set when the service is told to stop; the questions that it has are answered, and no others."""

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Take a place for one question.

        Raises:
            Overloaded: there is none.
            Draining: the service is being stopped.
        """
        if self.draining:
            raise Draining("the service is being stopped and takes no more questions", retry_after=1)
        if self.in_flight >= self._limit:
            self.refused += 1
            raise Overloaded(f"{self._limit} questions are being answered already", retry_after=1)
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
