"""The observer of the service: counts what the engine reports, and records it as spans while traces are on."""

from asyncio import CancelledError
from contextvars import Context
from functools import cache
from time import perf_counter
from types import TracebackType
from typing import Self

from app.observability import conventions as spans_of
from app.observability import metrics
from app.observability.metrics import OTHER, BoundedNames, labelled
from app.observability.request import current_request, exemplar
from app.observability.spans import Span, current_span
from toolchat.errors import (
    ProviderAuth,
    ProviderRateLimited,
    ToolchatError,
    UpstreamInvalid,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from toolchat.http.requests import Request
from toolchat.instruments import ModelCall, Observer, ToolRun, UpstreamRequest
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse, Prompt
from toolchat.tool_calling.events import ToolCallFinished

__all__ = ["ServiceObserver", "outcome_of", "record_mcp_server_state", "record_reader_left"]

_error_kinds, _upstreams = BoundedNames(100), BoundedNames(50)
_PROVIDER_FAILURES = tuple(
    error.code for error in (UpstreamUnavailable, UpstreamTimeout, UpstreamInvalid, ProviderRateLimited, ProviderAuth)
)
"""Outcomes of a model call that are the provider's fault."""
_UPSTREAM_FAILURES = ("429", "500", "502", "503", "504", UpstreamUnavailable.code, UpstreamTimeout.code)
"""Outcomes of a request that are the upstream's fault."""
_MIN_WAIT = 0.001
"""Seconds; a shorter wait gets no span."""
_UNOBSERVED_TOOL, _UNOBSERVED_REQUEST = ToolRun(), UpstreamRequest()


class ServiceObserver(Observer):
    """Adds to the ``metrics``, and to the spans of the current request.

    Prometheus' ``increase()`` and ``rate()`` compare values: they miss the first failure of a series that appears with
    the value 1. So the failures that alerts are based on start at 0 as soon as their labels are known.
    """

    def register_model(self, provider: str, model: str) -> None:
        """Begin the series of failed model calls at 0."""
        for outcome in _PROVIDER_FAILURES:
            labelled(metrics.MODEL_TURNS, provider, model, outcome)

    def observe_model_call(self, provider: str, model: str, prompt: Prompt) -> ModelCall:
        """Count a model call, and record its span."""
        return _ServiceModelCall(provider, model, prompt)

    def record_fallback(self, provider: str, model: str, error: ToolchatError) -> None:
        """Count a fallback."""
        labelled(metrics.MODEL_FALLBACKS, provider, model, error.code).inc()
        if (span := current_span.get()) is not None:
            span.event("fallback", *spans_of.error(error.code, provider=provider, model=model))

    def record_answering_model(self, provider: str, model: str) -> None:
        """Note the model on the request, whose response names it."""
        current_request.get().answered_by = provider, model

    def observe_tool_run(self, call: ToolCall) -> ToolRun:
        """Record the span of a tool call."""
        parent = current_span.get()
        if parent is None or not parent.trace.is_sampled:
            return _UNOBSERVED_TOOL
        return _TracedToolRun(parent, call)

    def record_tool_call(self, tool: str | None, finished: ToolCallFinished) -> None:
        """Count a tool call."""
        name, kind = tool or OTHER, finished.error_kind or ""
        outcome = ("error", _error_kinds.of(kind)) if kind else ("ok", "")
        flags = ("true" if finished.cached else "false", "true" if finished.repaired else "false")
        labelled(metrics.TOOL_CALLS, name, *outcome, *flags).inc()
        labelled(metrics.TOOL_SECONDS, name).observe(finished.duration_ms / 1000, exemplar(current_span.get()))

    def record_tool_retry(self, tool: str) -> None:
        """Count a repeated tool call."""
        labelled(metrics.TOOL_RETRIES, tool).inc()
        if (span := current_span.get()) is not None:
            span.event("retry")

    def begin_waiting(self) -> None:
        """Stop counting the time as the service's own."""
        current_request.get().wait(perf_counter())

    def end_waiting(self) -> None:
        """Count the time as the service's own again."""
        current_request.get().go_on(perf_counter())

    def record_wait(self, resource: str, seconds: float) -> None:
        """Record a wait for a ``place``, an upstream's ``pace`` or a lock such as ``lock:memory``."""
        labelled(metrics.WAIT_SECONDS, resource).observe(seconds)
        if seconds >= _MIN_WAIT and (span := current_span.get()) is not None and span.trace.is_sampled:
            spans_of.waiting(span, resource, seconds, perf_counter())

    def observe_upstream_request(self, upstream: str, request: Request) -> UpstreamRequest:
        """Record the span of a request to an upstream, and propagate the trace to it."""
        span = current_span.get()
        if span is None:
            return _UNOBSERVED_REQUEST
        if not span.trace.is_sampled:
            return _PropagatedRequest(span.lines)
        return _TracedRequest(span, upstream, request)

    def record_upstream_response(self, upstream: str, outcome: str) -> None:
        """Count a request to an upstream."""
        name = _upstreams.of(upstream)
        _start_upstream(name)
        labelled(metrics.UPSTREAM_REQUESTS, name, outcome).inc()

    def record_connection_opened(self) -> None:
        """Count a connection; a request without one uses a connection that was open."""
        metrics.CONNECTIONS_OPENED.inc()

    def register_breaker(self, upstream: str) -> None:
        """Begin the series of a circuit breaker at 0."""
        name = _upstreams.of(upstream)
        labelled(metrics.BREAKER_OPEN, name)
        labelled(metrics.BREAKER_OPENINGS, name)
        labelled(metrics.BREAKER_REFUSALS, name)

    def record_breaker_state(self, upstream: str, *, is_open: bool, has_opened: bool = False) -> None:
        """Record the state of a circuit breaker."""
        name = _upstreams.of(upstream)
        labelled(metrics.BREAKER_OPEN, name).set(is_open)
        if has_opened:
            labelled(metrics.BREAKER_OPENINGS, name).inc()

    def record_breaker_refusal(self, upstream: str) -> None:
        """Count a request that an open circuit breaker refused."""
        labelled(metrics.BREAKER_REFUSALS, _upstreams.of(upstream)).inc()
        if (span := current_span.get()) is not None:
            span.event("breaker open", ("toolchat.upstream", upstream))

    def record_store_operation(self, kind: str, operation: str, seconds: float) -> None:
        """Record an operation of a shared store: a command, or a script by its name."""
        labelled(metrics.STORE_SECONDS, kind).observe(seconds)
        if (span := current_span.get()) is not None and span.trace.is_sampled:
            spans_of.store(span, kind, operation, seconds, perf_counter())

    def copy_context(self, target: Context) -> None:
        """Copy the current span: shared work is part of the first request's trace."""
        target.run(current_span.set, current_span.get())


class _ServiceModelCall(ModelCall):
    """Counts a model call and its tokens, and records its span."""

    __slots__ = ("_began", "_first", "_names", "_prompt", "_request", "_response", "_span")

    def __init__(self, provider: str, model: str, prompt: Prompt) -> None:
        self._names, self._prompt = (provider, model), prompt
        self._first = 0.0
        self._span: Span | None = None
        self._response: ChatResponse | None = None

    def __enter__(self) -> Self:
        self._request, self._began = current_request.get(), perf_counter()
        self._request.wait(self._began)
        if (parent := current_span.get()) is not None and parent.trace.is_sampled:
            self._span = spans_of.chat(parent, *self._names, self._prompt, self._began).enter()
        return self

    def record_chunk(self) -> None:
        self._first = self._first or perf_counter()

    def record_retry(self, error: ToolchatError) -> None:
        labelled(metrics.MODEL_RETRIES, *self._names, error.code).inc()
        if self._span is not None:
            self._span.event("retry", *spans_of.error(error.code))

    def record_response(self, response: ChatResponse) -> None:
        self._response = response

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        now = perf_counter()
        self._request.go_on(now)
        first = self._first - self._began if self._first else 0.0
        outcome = "ok" if error is None else outcome_of(error)
        self._count(outcome, now - self._began, first)
        if self._span is not None:
            self._span.leave()
            spans_of.answered(self._span, self._response, outcome, now, first)

    def _count(self, outcome: str, seconds: float, first: float) -> None:
        labelled(metrics.MODEL_TURNS, *self._names, outcome).inc()
        labelled(metrics.MODEL_SECONDS, *self._names).observe(seconds, exemplar(self._span))
        if first:
            labelled(metrics.MODEL_FIRST_SECONDS, *self._names).observe(first)
        if self._response is not None:
            usage = self._response.usage
            labelled(metrics.MODEL_TOKENS, *self._names, "input").observe(usage.input_tokens)
            labelled(metrics.MODEL_TOKENS, *self._names, "output").observe(usage.output_tokens)
            labelled(metrics.MODEL_CACHED, *self._names).inc(usage.cached_tokens)


class _TracedToolRun(ToolRun):
    """Records the span of a tool call."""

    __slots__ = ("_call", "_finished", "_parent", "_span")

    def __init__(self, parent: Span, call: ToolCall) -> None:
        self._parent, self._call = parent, call
        self._finished: ToolCallFinished | None = None

    def __enter__(self) -> Self:
        self._span = spans_of.tool(self._parent, self._call, perf_counter()).enter()
        return self

    def record_result(self, finished: ToolCallFinished) -> None:
        self._finished = finished

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._span.leave()
        outcome = "" if error is None else outcome_of(error)
        spans_of.tool_ended(self._span, self._call, self._finished, outcome, perf_counter())


class _PropagatedRequest(UpstreamRequest):
    """Sends the id of a trace that is not sampled."""

    __slots__ = ("_lines",)

    def __init__(self, lines: bytes) -> None:
        self._lines = lines

    @property
    def header_lines(self) -> bytes:
        return self._lines


class _TracedRequest(UpstreamRequest):
    """Records the span of a request to an upstream; part of its parent's span if that is a request itself."""

    __slots__ = ("_outcome", "_parent", "_request", "_span", "_upstream")

    def __init__(self, parent: Span, upstream: str, request: Request) -> None:
        self._parent, self._upstream, self._request = parent, upstream, request
        self._outcome = ""

    def __enter__(self) -> Self:
        self._span = spans_of.upstream(self._parent, self._upstream, self._request, perf_counter())
        return self

    @property
    def header_lines(self) -> bytes:
        return (self._span or self._parent).lines

    def record_status(self, status: int) -> None:
        self._outcome = str(status)

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._span is not None:
            outcome = self._outcome if error is None else outcome_of(error)
            spans_of.upstream_ended(self._span, outcome, perf_counter())


def outcome_of(error: BaseException) -> str:
    """The outcome that metrics and spans show for an error: its code, if it has one."""
    if isinstance(error, ToolchatError):
        return error.code
    return "cancelled" if isinstance(error, CancelledError) else ToolchatError.code


def record_reader_left() -> None:
    """Count a response whose connection was closed in favour of waiting requests."""
    metrics.READERS_LEFT.inc()


def record_mcp_server_state(server: str, *, is_up: bool) -> None:
    """Record whether an MCP server is reachable; the servers of the configuration are few."""
    labelled(metrics.MCP_SERVER_UP, server).set(is_up)


@cache
def _start_upstream(name: str) -> None:
    for outcome in _UPSTREAM_FAILURES:
        labelled(metrics.UPSTREAM_REQUESTS, name, outcome)
