"""One HTTP request as it is observed: how long it took, what of that was waiting, and what became of it."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from app.observability import conventions
from app.observability import metrics as series
from app.observability.deferred_recording import ByKind, outcomes, record_later
from app.observability.metrics import OVERHEAD, SECONDS
from app.observability.series import OTHER, Names, Numbers, put
from app.observability.spans import Span, Tracer

__all__ = ["Request", "current_request"]

_principals = Names(100)


class Request:
    """One HTTP request, from here to :meth:`end`; what the service waits for meanwhile is noted on it."""

    __slots__ = ("_since", "_waiting", "answered_by", "began", "first_byte", "span", "waited")

    def __init__(self) -> None:
        self.began = perf_counter()
        self.first_byte = 0.0
        """When it went out; whoever sends it notes it."""
        self.answered_by: tuple[str, str] | None = None
        """Provider and model whose turn was the last, where several stand by."""
        self.waited = 0.0
        """Seconds in which a model or a tool was waited for, those in which several were only once."""
        self.span: Span | None = None
        """Where traces are on."""
        self._waiting = 0
        self._since = 0.0

    def trace(self, tracer: Tracer, scope: Mapping[str, Any], path: str) -> None:
        """Begin its span: whatever comes is a part of it, until that is left.

        Args:
            tracer: the one of this process.
            scope: the request's.
            path: its path without ids.
        """
        self.span = conventions.request(tracer, scope, path, self.began).enter()

    def wait(self, now: float) -> None:
        """Begin to wait for somebody."""
        if not self._waiting:
            self._since = now
        self._waiting += 1

    def go_on(self, now: float) -> None:
        """End it."""
        self._waiting -= 1
        if not self._waiting:
            self.waited += now - self._since

    def overhead(self, now: float) -> float:
        """Seconds that the service itself has taken until now."""
        waiting = now - self._since if self._waiting else 0.0
        return max(0.0, now - self.began - self.waited - waiting)

    def end(self, route: str, outcome: str, state: Mapping[str, Any], now: float, status: int) -> None:
        """Count the request, and its question if it asked one: its state then has ``form``, and maybe ``variant``.

        Args:
            route: the route's template.
            outcome: ``ok``, the code of a problem, or ``client_gone``.
            state: that of the request's scope.
            now: when its answer ended.
            status: its status.
        """
        if self.span is not None:
            conventions.responded(self.span, route, status, outcome, now)
        form = state.get("form")
        if form is None:
            record_later(_count_request, route, outcome)
            return
        asked = route, state.get("variant", ""), form, outcome, state["summary"].get("principal", "")
        took = now - self.began
        first_byte = self.first_byte - self.began if self.first_byte else took
        example = self.span.trace.hex if self.span is not None and self.span.trace.is_sampled else ""
        record_later(_count_question, asked, took, first_byte, self.overhead(now), example)


current_request: ContextVar[Request] = ContextVar("observed_request", default=Request())  # noqa: B039 - nobody's
"""The request that is being answered; outside of one, something that nobody reads."""


def _count_request(route: str, outcome: str) -> None:
    series.REQUESTS.add(route, outcomes.of(outcome))


def _count_question(
    asked: tuple[str, str, str, str, str], took: float, first_byte: float, overhead: float, example: str
) -> None:
    requests, questions, seconds, first_bytes, overheads = _questions[asked]
    requests[0] += 1
    questions[0] += 1
    put(seconds, SECONDS, took)
    put(first_bytes, SECONDS, first_byte)
    put(overheads, OVERHEAD, overhead)
    if example:
        route, _, form, *_ = asked
        series.QUESTION_SECONDS.exemplify(took, example, route, form)


def _question_numbers(route: str, variant: str, form: str, outcome: str, principal: str) -> Sequence[Numbers]:
    outcome = outcomes.of(outcome)
    return (
        series.REQUESTS.at(route, outcome),
        series.QUESTIONS.at(route, variant, form, outcome, _principal(principal)),
        series.QUESTION_SECONDS.at(route, form),
        series.FIRST_BYTE_SECONDS.at(route, form),
        series.OVERHEAD_SECONDS.at(route, form),
    )


def _principal(name: str) -> str:
    """What figures call a principal: of those whom an identity provider knows there may be any number."""
    if not name:
        return "anonymous"
    return OTHER if name.startswith("jwt:") else _principals.of(name)


_questions = ByKind(_question_numbers)
