"""The measurements of one HTTP request: its duration, the time it waited, its tokens and its outcome."""

import os
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from toolchat.service.observability import metrics, tracing
from toolchat.service.observability.metrics import OTHER, BoundedNames, labelled
from toolchat.service.request_state import RequestState

if TYPE_CHECKING:
    from toolchat.service.observability.spans import CurrentSpan

_principals, _outcomes = BoundedNames(100), BoundedNames(100)  # tool modules may define errors of their own


@dataclass(slots=True)
class MeasuredRequest:
    """The measurements of one HTTP request, from its construction to :meth:`end`."""

    began: float = field(default_factory=perf_counter)
    first_byte: float = 0.0
    """The time of the first byte of the response, set by the sender; 0 until then."""
    answered_by: tuple[str, str] | None = None
    """Provider and model of the last model call, if there are fallbacks."""
    asked: tuple[str, str] | None = None
    """Provider and model of the last model call."""
    model_seconds: float = 0.0
    """Duration of all model calls."""
    tokens: int = 0
    """Tokens of all model calls so far, including those that failed or were cancelled."""
    waited: float = 0.0
    """Seconds spent waiting for models and tools; concurrent waits count once."""
    span: "CurrentSpan | None" = None
    """Its span, if traces are on."""
    _waiting: int = 0
    _since: float = 0.0

    def wait(self, now: float) -> None:
        """Begin to wait for a model or a tool."""
        if not self._waiting:
            self._since = now
        self._waiting += 1

    def go_on(self, now: float) -> None:
        """End a wait."""
        self._waiting -= 1
        if not self._waiting:
            self.waited += now - self._since

    def overhead(self, now: float) -> float:
        """Seconds spent in the service itself until now."""
        waiting = now - self._since if self._waiting else 0.0
        return max(0.0, now - self.began - self.waited - waiting)

    def summary(self, now: float) -> dict[str, Any]:
        """The fields of the log line; ``now`` is when the answer ended."""
        line: dict[str, Any] = {"total_ms": round((now - self.began) * 1000, 1), "worker": os.getpid()}
        if self.first_byte:
            line["first_byte_ms"] = round((self.first_byte - self.began) * 1000, 1)
        if self.asked is not None:
            line["provider"], line["model"] = self.asked
            line |= {"tokens": self.tokens, "model_ms": round(self.model_seconds * 1000, 1)}
        return line

    def end(self, route: str, state: RequestState, now: float) -> None:
        """Count the request, and its question if it asked one."""
        outcome = _outcomes.of(state.outcome)
        labelled(metrics.REQUESTS, route, outcome).inc()
        form = state.form
        if not form:
            return
        principal = _principal(state.summary.get("principal", ""))
        seconds = now - self.began
        labelled(metrics.QUESTIONS, route, state.variant, form, outcome, principal).inc()
        labelled(metrics.QUESTION_SECONDS, route, form).observe(seconds, tracing.exemplar())
        first_byte = self.first_byte - self.began if self.first_byte else seconds
        labelled(metrics.FIRST_BYTE_SECONDS, route, form).observe(first_byte)
        labelled(metrics.OVERHEAD_SECONDS, route, form).observe(self.overhead(now))


current_request: ContextVar[MeasuredRequest] = ContextVar("observed_request", default=MeasuredRequest())  # noqa: B039
"""The request that is being answered; outside of one, a default that is never read."""


def _principal(name: str) -> str:
    """The label of a principal; all people of an identity provider share one, and those of a page have the page's."""
    if not name:
        return "anonymous"
    return OTHER if name.startswith("jwt:") else _principals.of(name.partition("~")[0])
