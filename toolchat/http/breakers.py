"""Circuit breakers: whoever is known to be away is not waited for."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from toolchat import instruments
from toolchat.errors import Overloaded, UpstreamTimeout, UpstreamUnavailable

__all__ = ["Breakers", "CircuitBreaker"]

_FAILURES = (UpstreamUnavailable, UpstreamTimeout)
"""What says that an upstream is away: it cannot be reached, reports a failure of its own, or stays silent. A limit that
it keeps, or nonsense that it answers, says that it is there."""


class CircuitBreaker:
    """Stands before one upstream: closed it lets everybody pass, open it refuses at once.

    ::

        with breaker:
            ...  # ask the upstream; what leaves the block says how it went

    It opens when so many in a row have failed. After a pause one may ask again: if that goes well it closes, if not it
    stays open for another pause. Who is cancelled meanwhile says nothing about the upstream.

    Args:
        upstream: the name that errors and figures show.
        failures: how many in a row; 0: it never opens.
        pause: seconds.
        clock: seconds that never go back.

    Raises:
        UpstreamUnavailable: on entering it while it is open.
    """

    def __init__(
        self, upstream: str, *, failures: int = 5, pause: float = 10, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._upstream = upstream
        self._most = failures
        self._pause = pause
        self._clock = clock
        self._failed = 0
        self._closed_from = 0.0
        """When the next one may ask."""
        self._failing = False
        if failures:
            instruments.observer.register_breaker(upstream)

    @property
    def is_open(self) -> bool:
        """Whether it refuses all but the one who tries."""
        return 0 < self._most <= self._failed

    def __enter__(self) -> Self:
        if self._failed and self.is_open:
            left = self._closed_from - self._clock()
            if left > 0:
                instruments.observer.record_breaker_refusal(self._upstream)
                raise UpstreamUnavailable(
                    f"{self._upstream} has failed {self._failed} times in a row and is not asked for now",
                    retry_after=left,
                )
            self._closed_from = self._clock() + self._pause  # one tries; the others go on being refused meanwhile
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not (self._failing or self._failed):
            return  # as nearly always
        failing, self._failing = self._failing, False
        if failing or isinstance(error, _FAILURES):
            self._fail()
        elif error is None or (isinstance(error, Exception) and not isinstance(error, Overloaded)):
            self._succeed()
        elif self.is_open:
            self._closed_from = 0.0  # who tried was cancelled, or could not open a connection; another one may

    def record_status(self, status: int) -> None:
        """Note the HTTP status of an answer that nothing is raised for: 500 and above is a failure."""
        self._failing = status >= 500

    heard = record_status  # deprecated alias, removed in 0.3

    def _fail(self) -> None:
        was_open = self.is_open
        self._failed += 1
        if self.is_open:
            self._closed_from = self._clock() + self._pause
            instruments.observer.record_breaker_state(self._upstream, is_open=True, has_opened=not was_open)

    def _succeed(self) -> None:
        if self.is_open:
            instruments.observer.record_breaker_state(self._upstream, is_open=False)
        self._failed = 0


class Breakers:
    """One breaker for each upstream, by name.

    Args:
        failures: as :class:`CircuitBreaker` takes it.
        pause: likewise.
    """

    def __init__(self, failures: int = 5, pause: float = 10) -> None:
        self._failures = failures
        self._pause = pause
        self._known: dict[str, CircuitBreaker] = {}

    def get(self, upstream: str) -> CircuitBreaker:
        """The breaker of an upstream."""
        if upstream not in self._known:
            self._known[upstream] = CircuitBreaker(upstream, failures=self._failures, pause=self._pause)
        return self._known[upstream]

    of = get  # deprecated alias, removed in 0.3
