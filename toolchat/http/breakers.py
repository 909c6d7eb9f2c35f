"""Circuit breakers: fail fast while an upstream is down."""

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import toolchat.instruments as instruments
from toolchat.errors import NotConfigured, Overloaded, UpstreamError, UpstreamTimeout, UpstreamUnavailable

_log = logging.getLogger(__name__)
_FAILURES = (UpstreamUnavailable, UpstreamTimeout)
"""Errors that count as failures of the upstream: no connection, a failure that it reports, or silence. A rate limit or
an invalid response shows that the upstream is up."""


class CircuitBreaker:
    """A circuit breaker for one upstream: closed, it passes requests; open, it refuses them at once.

    ::

        with breaker:
            ...  # send the request; the exception that leaves the block is its outcome

    The circuit opens after a number of consecutive failures. After a pause one trial request passes: if it succeeds,
    the circuit closes, else it stays open for another pause. A cancelled request counts neither way.

    Args:
        failures: consecutive failures that open the circuit; 0: it never opens.
        pause: seconds before a trial request.
    """

    def __init__(
        self, upstream: str, *, failures: int = 5, pause: float = 10, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._upstream = upstream
        self._max_failures = failures
        self._pause = pause
        self._clock = clock
        self._failed = 0
        self._next_trial = 0.0
        """The time from which a trial request may pass."""
        self._failed_status = 0
        """The status of a response that counts as a failure; 0 without one."""
        self.last_failure = ""
        """What failed last, for operators; empty after a success."""
        if failures:
            instruments.observer.register_breaker(upstream)

    @property
    def is_open(self) -> bool:
        """Whether requests are refused, except for the trial request."""
        return 0 < self._max_failures <= self._failed

    def __enter__(self) -> Self:
        if self._failed and self.is_open:
            left = self._next_trial - self._clock()
            if left > 0:
                instruments.observer.record_breaker_refusal(self._upstream)
                detail = f"{self._upstream} has failed {self._failed} times in a row: its circuit is open"
                error = UpstreamUnavailable(detail, retry_after=left)
                error.log_fields["last_failure"] = self.last_failure
                raise error
            self._next_trial = self._clock() + self._pause  # this is the trial; others are refused meanwhile
            _log.info("circuit half-open: a trial request passes", extra={"upstream": self._upstream})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not (self._failed_status or self._failed or self.last_failure):
            return  # the common case
        status, self._failed_status = self._failed_status, 0
        proves_nothing = isinstance(error, Overloaded) or (isinstance(error, UpstreamError) and error.is_stale)
        if isinstance(error, _FAILURES) and not proves_nothing:
            self._fail(error.for_operators)
        elif status:
            self._fail(f"status {status}")
        elif error is None or (isinstance(error, Exception) and not proves_nothing):
            self._succeed()
            if isinstance(error, UpstreamError | NotConfigured):
                self.last_failure = error.for_operators  # it is up, but refuses us: a key, a quota, an address
        elif self.is_open:
            # The trial was cancelled, had no open file left, or a stale connection: another one may pass.
            self._next_trial = 0.0

    def record_status(self, status: int) -> None:
        """Record the HTTP status of a response that raises no error: 500 and above is a failure."""
        self._failed_status = status if status >= 500 else 0

    def _fail(self, reason: str) -> None:
        was_open = self.is_open
        self._failed += 1
        self.last_failure = reason
        if self.is_open:
            if not was_open:
                fields = {"upstream": self._upstream, "failures": self._failed, "last_failure": reason}
                _log.warning("circuit open", extra={**fields, "pause_seconds": self._pause})
            self._next_trial = self._clock() + self._pause
            instruments.observer.record_breaker_state(self._upstream, is_open=True, has_opened=not was_open)

    def _succeed(self) -> None:
        if self.is_open:
            _log.info("circuit closed", extra={"upstream": self._upstream})
            instruments.observer.record_breaker_state(self._upstream, is_open=False)
        self._failed, self.last_failure = 0, ""


class Breakers:
    """One circuit breaker for each upstream, by name; the arguments are those of :class:`CircuitBreaker`."""

    def __init__(self, failures: int = 5, pause: float = 10) -> None:
        self._failures = failures
        self._pause = pause
        self._known: dict[str, CircuitBreaker] = {}

    @property
    def last_failures(self) -> dict[str, str]:
        """What failed last, of each upstream that has not answered since."""
        return {upstream: each.last_failure for upstream, each in self._known.items() if each.last_failure}

    def get(self, upstream: str) -> CircuitBreaker:
        """The breaker of an upstream."""
        if upstream not in self._known:
            self._known[upstream] = CircuitBreaker(upstream, failures=self._failures, pause=self._pause)
        return self._known[upstream]
