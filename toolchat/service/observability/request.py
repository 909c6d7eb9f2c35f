"""The measurements of one HTTP request: its duration, the time it waited, its tokens and its outcome."""

import os
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any

from toolchat.service.observability import metrics
from toolchat.service.observability.metrics import OTHER, BoundedNames, labelled
from toolchat.service.request_state import RequestState

if TYPE_CHECKING:
    from toolchat.service.observability.spans import CurrentSpan

_principals, _outcomes = BoundedNames(100), BoundedNames(100)  # tool modules may define errors of their own


class Request:
    """The measurements of one HTTP request, from its construction to :meth:`end`."""

    __slots__ = (
        "_since",
        "_waiting",
        "answered_by",
        "asked",
        "began",
        "first_byte",
        "model_seconds",
        "span",
        "tokens",
        "waited",
    )

    def __init__(self) -> None:
        self.began = perf_counter()
        self.first_byte = 0.0
        """The time of the first byte of the response, set by the sender; 0 until then."""
        self.answered_by: tuple[str, str] | None = None
        """Provider and model of the last model call, if there are fallbacks."""
        self.asked: tuple[str, str] | None = None
        """Provider and model of the last model call."""
        self.model_seconds = 0.0
        """Duration of all model calls."""
        self.tokens = 0
        """Tokens of all model calls so far, including those that failed or were cancelled."""
        self.waited = 0.0
        """Seconds spent waiting for models and tools; concurrent waits count once."""
        self.span: CurrentSpan | None = None
        """Its span, if traces are on."""
        self._waiting = 0
        self._since = 0.0

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
        exemplar = None if self.span is None else self.span.exemplar
        labelled(metrics.QUESTION_SECONDS, route, form).observe(seconds, exemplar)
        first_byte = self.first_byte - self.began if self.first_byte else seconds
        labelled(metrics.FIRST_BYTE_SECONDS, route, form).observe(first_byte)
        labelled(metrics.OVERHEAD_SECONDS, route, form).observe(self.overhead(now))


current_request: ContextVar[Request] = ContextVar("observed_request", default=Request())  # noqa: B039 - never read
"""The request that is being answered; outside of one, a default that is never read."""


def _principal(name: str) -> str:
    """The label of a principal; all people of an identity provider share one, and those of a page have the page's."""
    if not name:
        return "anonymous"
    return OTHER if name.startswith("jwt:") else _principals.of(name.partition("~")[0])
