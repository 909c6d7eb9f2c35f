"""What is measured: each HTTP request, and what the engine reports to the observer while it is answered."""

import os
from asyncio import CancelledError
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from prometheus_client import Counter
from pydantic_core import to_json

from toolchat.errors import (
    ProviderAuth,
    ProviderQuota,
    ProviderRateLimited,
    ToolchatError,
    UpstreamInvalid,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from toolchat.instruments import ModelCall, Observer
from toolchat.messages import estimate_size, estimate_tokens
from toolchat.models.base import ChatResponse, ModelEvent, Prompt, TextDelta
from toolchat.service.observability import metrics, tracing
from toolchat.service.observability.metrics import OTHER, BoundedNames, labelled
from toolchat.service.request_state import RequestState
from toolchat.tool_calling.events import ToolCallFinished

if TYPE_CHECKING:
    from toolchat.service.observability.spans import CurrentSpan

_error_kinds, _upstreams, _tools = BoundedNames(100), BoundedNames(50), BoundedNames(500)
_principals, _outcomes = BoundedNames(100), BoundedNames(100)  # tool modules may define errors of their own
_UNAVAILABLE = (UpstreamUnavailable, UpstreamTimeout)
_PROVIDER_FAILURES = (*_UNAVAILABLE, UpstreamInvalid, ProviderAuth, ProviderQuota, ProviderRateLimited)
"""Errors of a model call that are the provider's fault."""
_TOKENS_AROUND_A_MESSAGE = 4
_UPSTREAM_FAILURES = ("429", "500", "502", "503", "504", *[each.code for each in _UNAVAILABLE])
"""Outcomes of a request that are the upstream's fault."""


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
    refused_by: Counter | None = None
    """Counts it if a limit has refused it."""
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
        if self.refused_by is not None:
            self.refused_by.inc()
        if not (form := state.form):
            return
        principal = _principal(state.summary.get("principal", ""))
        labelled(metrics.QUESTIONS, route, state.variant, form, outcome, principal).inc()
        labelled(metrics.QUESTION_SECONDS, route, form).observe(now - self.began, tracing.exemplar())
        if form == "text/event-stream" and self.first_byte:
            labelled(metrics.FIRST_BYTE_SECONDS, route).observe(self.first_byte - self.began)
        labelled(metrics.OVERHEAD_SECONDS, route).observe(self.overhead(now))


current_request: ContextVar[MeasuredRequest] = ContextVar("observed_request", default=MeasuredRequest())  # noqa: B039
"""The request that is being answered; outside of one, a default that is never read."""


class ServiceObserver(Observer):
    """Adds to the ``metrics``; while traces are on, its subclass in ``spans`` is used."""

    # Prometheus' ``increase()`` and ``rate()`` miss the first failure of a series that appears with the value 1. So the
    # failures that alerts are based on start at 0 as soon as their labels are known.

    def register_model(self, provider: str, model: str) -> None:
        for error in _PROVIDER_FAILURES:
            labelled(metrics.MODEL_TURNS, provider, model, error.code)

    def observe_model_call(self, provider: str, model: str, prompt: Prompt) -> ModelCall:
        return ServiceModelCall(provider, model, prompt)

    def record_tool_left_out(self, provider: str, model: str, tool: str) -> None:
        labelled(metrics.MODEL_TOOLS_LEFT_OUT, provider, model, _tools.of(tool)).inc()

    def record_fallback(self, provider: str, model: str, error: ToolchatError) -> None:
        labelled(metrics.MODEL_FALLBACKS, provider, model, error.code).inc()

    def record_answering_model(self, provider: str, model: str) -> None:
        current_request.get().answered_by = provider, model

    def record_tool_call(self, tool: str | None, finished: ToolCallFinished) -> None:
        name, kind = tool or OTHER, finished.error_kind or ""
        outcome = ("error", _error_kinds.of(kind)) if kind else ("ok", "")
        flags = ("true" if finished.cached else "false", "true" if finished.repaired else "false")
        labelled(metrics.TOOL_CALLS, name, *outcome, *flags).inc()
        labelled(metrics.TOOL_SECONDS, name).observe(finished.duration_ms / 1000, tracing.exemplar())

    def record_tool_retry(self, tool: str) -> None:
        labelled(metrics.TOOL_RETRIES, tool).inc()

    def begin_waiting(self) -> None:
        current_request.get().wait(perf_counter())

    def end_waiting(self) -> None:
        current_request.get().go_on(perf_counter())

    def record_wait(self, resource: str, seconds: float) -> None:
        labelled(metrics.WAIT_SECONDS, resource).observe(seconds)

    def record_upstream_response(self, upstream: str, outcome: str) -> None:
        name = _upstreams.of(upstream)
        _start_upstream(name)
        labelled(metrics.UPSTREAM_REQUESTS, name, outcome).inc()

    def record_connection_opened(self) -> None:
        metrics.CONNECTIONS_OPENED.inc()

    def register_breaker(self, upstream: str) -> None:
        name = _upstreams.of(upstream)
        labelled(metrics.BREAKER_OPEN, name)
        labelled(metrics.BREAKER_OPENINGS, name)
        labelled(metrics.BREAKER_REFUSALS, name)

    def record_breaker_state(self, upstream: str, *, is_open: bool, has_opened: bool = False) -> None:
        name = _upstreams.of(upstream)
        labelled(metrics.BREAKER_OPEN, name).set(is_open)
        if has_opened:
            labelled(metrics.BREAKER_OPENINGS, name).inc()

    def record_breaker_refusal(self, upstream: str) -> None:
        labelled(metrics.BREAKER_REFUSALS, _upstreams.of(upstream)).inc()

    def record_store_operation(self, kind: str, operation: str, seconds: float) -> None:  # noqa: ARG002
        labelled(metrics.STORE_SECONDS, kind).observe(seconds)


class ServiceModelCall(ModelCall):
    """Counts a model call and its tokens."""

    __slots__ = ("_began", "_received", "_request", "first_chunk", "names", "prompt", "response")

    def __init__(self, provider: str, model: str, prompt: Prompt) -> None:
        self.names, self.prompt = (provider, model), prompt
        self.first_chunk = 0.0
        """Seconds to the first chunk of a streamed response; 0 until then."""
        self.response: ChatResponse | None = None
        self._received = 0
        """Tokens of the streamed events so far, estimated."""

    def __enter__(self) -> Self:
        self._request, self._began = current_request.get(), perf_counter()
        self._request.asked = self.names
        self._request.wait(self._began)
        return self

    def record_chunk(self, event: ModelEvent) -> None:
        if not self.first_chunk:
            self.first_chunk = perf_counter() - self._began
        text = event.text if isinstance(event, TextDelta) else event.reasoning
        self._received += estimate_tokens(text) or 1

    def record_retry(self, error: ToolchatError) -> None:
        labelled(metrics.MODEL_RETRIES, *self.names, error.code).inc()
        self._request.tokens += self._spent_by(error)
        self._received = 0

    def record_response(self, response: ChatResponse) -> None:
        self.response = response

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        now = perf_counter()
        seconds = now - self._began
        self._request.go_on(now)
        self._request.model_seconds += seconds
        self._request.tokens += self._spent() if error is None else self._spent_by(error)
        labelled(metrics.MODEL_TURNS, *self.names, "ok" if error is None else outcome_of(error)).inc()
        labelled(metrics.MODEL_SECONDS, *self.names).observe(seconds, tracing.exemplar())
        if self.first_chunk:
            labelled(metrics.MODEL_FIRST_SECONDS, *self.names).observe(self.first_chunk)
        if self.response is not None:
            usage = self.response.usage
            labelled(metrics.MODEL_TOKENS, *self.names, "input").observe(usage.input_tokens)
            labelled(metrics.MODEL_TOKENS, *self.names, "output").observe(usage.output_tokens)
            if usage.cached_tokens > 0:  # a counter must not decrease, and a model of a user may report anything
                labelled(metrics.MODEL_CACHED, *self.names).inc(usage.cached_tokens)
            if written := sum(call.repaired for call in self.response.message.tool_calls):
                labelled(metrics.MODEL_TEXT_CALLS, *self.names).inc(written)

    def _spent(self) -> int:
        """The tokens of the response as the provider reports them, otherwise estimated."""
        if self.response is None:
            return 0
        return self.response.usage.total_tokens or _prompt_tokens(self.prompt) + estimate_size([self.response.message])

    def _spent_by(self, error: BaseException) -> int:
        """The estimated tokens of an attempt without a response; 0 if it was refused, or the provider not reached."""
        was_refused = isinstance(error, ToolchatError) and not isinstance(error, UpstreamTimeout | UpstreamInvalid)
        return 0 if was_refused and not self._received else _prompt_tokens(self.prompt) + self._received


def _prompt_tokens(prompt: Prompt) -> int:
    """Estimate the tokens of a prompt, with those that separate its messages and describe its tools."""
    tools = sum(estimate_tokens(to_json(each.input_schema).decode() + each.description) for each in prompt.tools)
    around = _TOKENS_AROUND_A_MESSAGE * (len(prompt.messages) + len(prompt.tools))
    return estimate_size(prompt.messages) + around + tools


def outcome_of(error: BaseException) -> str:
    """The outcome that metrics and spans show for an error: its code, if it has one."""
    if isinstance(error, ToolchatError):
        return error.code
    return "cancelled" if isinstance(error, CancelledError) else ToolchatError.code


@cache
def _start_upstream(name: str) -> None:
    for outcome in _UPSTREAM_FAILURES:
        labelled(metrics.UPSTREAM_REQUESTS, name, outcome)


def _principal(name: str) -> str:
    """The label of a principal; all people of an identity provider share one, and those of a page have the page's."""
    if not name:
        return "anonymous"
    return OTHER if name.startswith("jwt:") else _principals.of(name.partition("~")[0])
