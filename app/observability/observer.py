"""The observer of the service: counts what the engine reports, and records it as spans while traces are on."""

from asyncio import CancelledError
from collections.abc import Sequence
from contextvars import Context
from time import perf_counter
from types import TracebackType
from typing import Self

from app.observability import conventions as spans_of
from app.observability import metrics as series
from app.observability.deferred_recording import ByKind, record_later
from app.observability.initial_series import PROVIDER_FAILURES, UPSTREAM_FAILURES, start_at_zero
from app.observability.metrics import SECONDS, TOKENS
from app.observability.request import current_request
from app.observability.series import OTHER, Names, Numbers, put
from app.observability.spans import Span, current_span
from toolchat.errors import ToolchatError
from toolchat.http.requests import Request
from toolchat.instruments import ModelCall, Observer, ToolRun, UpstreamRequest
from toolchat.messages import ToolCall, Usage
from toolchat.models.base import ChatResponse, Prompt
from toolchat.tool_calling.events import ToolCallFinished

__all__ = ["ServiceObserver", "outcome_of", "record_mcp_server_state", "record_reader_left"]

_NO_USAGE = Usage()
_error_kinds, _upstreams = Names(100), Names(50)
_MIN_WAIT = 0.001
"""Seconds; a shorter wait gets no span."""
_UNOBSERVED_TOOL, _UNOBSERVED_REQUEST = ToolRun(), UpstreamRequest()


class ServiceObserver(Observer):
    """Adds to the series of ``metrics``, and to the spans of the current request."""

    def register_model(self, provider: str, model: str) -> None:
        """Begin the series of failed model calls at 0."""
        start_at_zero(series.MODEL_TURNS, (provider, model), PROVIDER_FAILURES)

    def observe_model_call(self, provider: str, model: str, prompt: Prompt) -> ModelCall:
        """Count a model call, and record its span."""
        return _ServiceModelCall(provider, model, prompt)

    def record_fallback(self, provider: str, model: str, error: ToolchatError) -> None:
        """Count a fallback."""
        record_later(series.MODEL_FALLBACKS.add, provider, model, error.code)
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
        span = current_span.get()
        example = span.trace.hex if span is not None and span.trace.is_sampled else ""
        key = (tool or OTHER, finished.error_kind or "", finished.cached, finished.repaired)
        record_later(_count_call, key, finished.duration_ms / 1000, example)

    def record_tool_retry(self, tool: str) -> None:
        """Count a repeated tool call."""
        record_later(series.TOOL_RETRIES.add, tool)
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
        record_later(series.WAIT_SECONDS.observe, seconds, resource)
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
        record_later(_count_answer, upstream, outcome)

    def record_connection_opened(self) -> None:
        """Count a connection; a request without one uses a connection that was open."""
        record_later(series.CONNECTIONS_OPENED.add)

    def register_breaker(self, upstream: str) -> None:
        """Begin the series of a circuit breaker at 0."""
        name = (_upstreams.of(upstream),)
        for family in (series.BREAKER_OPEN, series.BREAKER_OPENINGS, series.BREAKER_REFUSALS):
            start_at_zero(family, (), name)

    def record_breaker_state(self, upstream: str, *, is_open: bool, has_opened: bool = False) -> None:
        """Record the state of a circuit breaker."""
        name = _upstreams.of(upstream)
        series.BREAKER_OPEN.at(name)[0] = is_open
        if has_opened:
            series.BREAKER_OPENINGS.add(name)

    def record_breaker_refusal(self, upstream: str) -> None:
        """Count a request that an open circuit breaker refused."""
        record_later(series.BREAKER_REFUSALS.add, _upstreams.of(upstream))
        if (span := current_span.get()) is not None:
            span.event("breaker open", ("toolchat.upstream", upstream))

    def record_store_operation(self, kind: str, operation: str, seconds: float) -> None:
        """Record an operation of a shared store: a command, or a script by its name."""
        record_later(series.STORE_SECONDS.observe, seconds, kind)
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
        record_later(series.MODEL_RETRIES.add, *self._names, error.code)
        if self._span is not None:
            self._span.event("retry", *spans_of.error(error.code))

    def record_response(self, response: ChatResponse) -> None:
        self._response = response

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        now = perf_counter()
        self._request.go_on(now)
        first = self._first - self._began if self._first else 0.0
        outcome = "ok" if error is None else outcome_of(error)
        usage = _NO_USAGE if self._response is None else self._response.usage
        example = self._span.trace.hex if self._span is not None else ""
        record_later(_count_turn, (*self._names, outcome), now - self._began, first, usage, example)
        if self._span is not None:
            self._span.leave()
            spans_of.answered(self._span, self._response, outcome, now, first)


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
    series.READERS_LEFT.add()


def record_mcp_server_state(server: str, *, is_up: bool) -> None:
    """Record whether an MCP server is reachable; the servers of the configuration are few."""
    series.MCP_SERVER_UP.at(server)[0] = is_up


def _count_turn(key: tuple[str, str, str], took: float, first: float, usage: Usage, example: str) -> None:
    turns, seconds, firsts, inputs, outputs, cached = _turns[key]
    turns[0] += 1
    put(seconds, SECONDS, took)
    if example:
        series.MODEL_SECONDS.exemplify(took, example, *key[:2])
    if first:
        put(firsts, SECONDS, first)
    if usage is not _NO_USAGE:
        put(inputs, TOKENS, usage.input_tokens)
        put(outputs, TOKENS, usage.output_tokens)
        cached[0] += usage.cached_tokens


def _turn_numbers(provider: str, model: str, outcome: str) -> Sequence[Numbers]:
    return (
        series.MODEL_TURNS.at(provider, model, outcome),
        series.MODEL_SECONDS.at(provider, model),
        series.MODEL_FIRST_SECONDS.at(provider, model),
        series.MODEL_TOKENS.at(provider, model, "input"),
        series.MODEL_TOKENS.at(provider, model, "output"),
        series.MODEL_CACHED.at(provider, model),
    )


_turns = ByKind(_turn_numbers)


def _count_call(key: tuple[str, str, bool, bool], seconds: float, example: str) -> None:
    calls, took = _calls[key]
    calls[0] += 1
    put(took, SECONDS, seconds)
    if example:
        series.TOOL_SECONDS.exemplify(seconds, example, key[0])


def _call_numbers(tool: str, error_kind: str, cached: bool, repaired: bool) -> Sequence[Numbers]:
    outcome, kind = ("error", _error_kinds.of(error_kind)) if error_kind else ("ok", "")
    flags = ("true" if cached else "false", "true" if repaired else "false")
    return series.TOOL_CALLS.at(tool, outcome, kind, *flags), series.TOOL_SECONDS.at(tool)


_calls = ByKind(_call_numbers)


def _count_answer(upstream: str, outcome: str) -> None:
    _answers[upstream, outcome][0][0] += 1


def _answer_numbers(upstream: str, outcome: str) -> Sequence[Numbers]:
    name = _upstreams.of(upstream)
    start_at_zero(series.UPSTREAM_REQUESTS, (name,), UPSTREAM_FAILURES)
    return (series.UPSTREAM_REQUESTS.at(name, outcome),)


_answers = ByKind(_answer_numbers)
