"""The observer that records spans, each as OpenTelemetry's current one, so that a tool's own become its children."""

from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import Context as Variables, ContextVar
from types import TracebackType
from typing import Any, Self

from opentelemetry import propagate
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    format_span_id,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)
from starlette.types import Scope
from yarl import URL

from toolchat.errors import ToolchatError
from toolchat.instruments import ModelCall, ToolRun, UpstreamRequest
from toolchat.messages import Message, ToolCall
from toolchat.models.base import ChatResponse, Prompt
from toolchat.service.observability import semantic_conventions as conventions
from toolchat.service.observability.observer import ServiceModelCall, ServiceObserver, outcome_of
from toolchat.service.observability.semantic_conventions import AGENT, ERROR_TYPE, STATUS, Attributes
from toolchat.tool_calling.events import ToolCallFinished

_conversation: ContextVar[str] = ContextVar("traced_conversation", default="")


class TracingObserver(ServiceObserver):
    """Counts what the engine reports, and records it as spans."""

    def __init__(self, tracer: Tracer, export_failure: Callable[[], str], *, captures: bool) -> None:
        self._tracer = tracer
        self.export_failure = export_failure
        """Returns why the collector did not accept the last spans, and its address; empty if it did."""
        self.captures = captures
        """Whether spans contain questions, answers, arguments and results as well."""

    def current_ids(self) -> dict[str, str]:
        """The ids of the current span, if there is one."""
        current = get_current_span().get_span_context()
        if not current.is_valid:
            return {}
        return {"trace_id": format_trace_id(current.trace_id), "span_id": format_span_id(current.span_id)}

    def is_recorded(self) -> bool:
        """Whether the current trace is recorded."""
        return get_current_span().is_recording()

    def start(
        self, name: str, kind: SpanKind, attributes: Attributes | None = None, context: Context | None = None
    ) -> "CurrentSpan":
        """Start a span, and make it current."""
        return CurrentSpan(self._tracer.start_span(name, context, kind, attributes), context)

    def start_request(self, scope: Mapping[str, Any]) -> "CurrentSpan":
        """Start the span of an HTTP request, as the child of an outer application's, or of what its headers say."""
        context = get_current()
        if not context or not get_current_span(context).get_span_context().is_valid:
            headers = defaultdict[str, list[str]](list)
            for name, value in scope["headers"]:
                headers[name.decode("latin-1")].append(value.decode("latin-1"))
            context = propagate.extract(headers, context)
        return self.start(scope["method"], SpanKind.SERVER, None, context)

    async def run_agent(
        self,
        provider: str,
        model: str,
        messages: Sequence[Message],
        conversation: str,
        run: Coroutine[Any, Any, ChatResponse],
    ) -> ChatResponse:
        """Answer a question of a recorded trace in a span; ``conversation`` is the hash of its conversation's id."""
        _conversation.set(conversation)
        attributes = conventions.model_attributes("invoke_agent", provider, model, conversation)
        attributes["gen_ai.agent.name"] = AGENT
        if self.captures:
            attributes |= conventions.prompt_of(messages)
        with self.start(f"invoke_agent {AGENT}", SpanKind.INTERNAL, attributes) as current:
            response = await run
            current.span.set_attributes(conventions.response_of(response, captures=self.captures))
            return response

    def observe_model_call(self, provider: str, model: str, prompt: Prompt) -> ModelCall:
        if not self.is_recorded():
            return super().observe_model_call(provider, model, prompt)
        return _TracedModelCall(self, provider, model, prompt)

    def observe_tool_run(self, call: ToolCall) -> ToolRun:
        return _TracedToolRun(self, call) if self.is_recorded() else super().observe_tool_run(call)

    def observe_upstream_request(self, upstream: str, method: str, url: URL) -> UpstreamRequest:
        """Propagate the trace to an upstream, in a span unless the request is that of a model call's, which has one."""
        parent = get_current_span()
        if not parent.is_recording():
            return _TracedRequest()
        if isinstance(parent, ReadableSpan) and parent.kind is SpanKind.CLIENT:
            parent.set_attributes(conventions.server_attributes(url))
            return _TracedRequest()
        attributes = conventions.upstream_attributes(upstream, method, url, captures=self.captures)
        return _TracedRequest(self._tracer.start_span(method, None, SpanKind.CLIENT, attributes))

    inject = staticmethod(propagate.inject)

    def copy_context(self, target: Variables) -> None:
        """Copy the current span: shared work is part of the first request's trace."""
        target.run(attach, get_current())


class CurrentSpan:
    """A span that is current until its block or :meth:`end` ends it."""

    __slots__ = ("_token", "failure", "span")

    def __init__(self, span: Span, context: Context | None = None) -> None:
        self.span = span
        self.failure = ""
        """The kind of its failure, unless that is an exception."""
        self._token = attach(set_span_in_context(span, context))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """End it, and make the previous span current again."""
        detach(self._token)
        _end(self.span, self.failure, error)

    def end_request(
        self, scope: Scope, path: str, route: str, status: int, outcome: str, failure: ToolchatError | None
    ) -> None:
        """End the span of an HTTP request. A response that breaks off has failed; a refusal is the client's fault."""
        if self.span.is_recording():
            self.span.update_name(f"{scope['method']} {route}")
            self.span.set_attributes(conventions.request_attributes(scope, path, route, status, outcome))
        self.failure = "" if outcome == "ok" or 400 <= status < 500 else outcome
        self.end(failure if self.failure else None)


class _TracedModelCall(ServiceModelCall):
    """Counts a model call, and records its span."""

    __slots__ = ("_current", "_tracing")

    def __init__(self, tracing: TracingObserver, provider: str, model: str, prompt: Prompt) -> None:
        super().__init__(provider, model, prompt)
        self._tracing = tracing

    def __enter__(self) -> Self:
        super().__enter__()
        (provider, model), prompt = self.names, self.prompt
        model = prompt.options.model or model
        attributes = conventions.model_attributes("chat", provider, model, _conversation.get())
        attributes["gen_ai.request.stream"] = prompt.stream
        if self._tracing.captures:
            attributes |= conventions.prompt_of(prompt.messages)
        kind = SpanKind.INTERNAL if provider == "offline" else SpanKind.CLIENT
        self._current = self._tracing.start(f"chat {model}", kind, attributes)
        return self

    def record_retry(self, error: ToolchatError) -> None:
        super().record_retry(error)
        self._current.span.add_event("retry", {ERROR_TYPE: error.code})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        span = self._current.span
        if self.response is not None:
            span.set_attributes(conventions.response_of(self.response, captures=self._tracing.captures))
        if self.first_chunk:
            span.set_attribute("gen_ai.response.time_to_first_chunk", self.first_chunk)
        if isinstance(error, ToolchatError) and (status := error.log_fields.get("upstream_status")):
            span.set_attribute(STATUS, status)
        self._current.end(error)


class _TracedToolRun(ToolRun):
    """Records the span of a tool call."""

    __slots__ = ("_call", "_current", "_tracing")

    def __init__(self, tracing: TracingObserver, call: ToolCall) -> None:
        self._tracing, self._call = tracing, call

    def __enter__(self) -> Self:
        attributes = conventions.tool_attributes(self._call, captures=self._tracing.captures)
        self._current = self._tracing.start("execute_tool", SpanKind.INTERNAL, attributes)
        return self

    def record_result(self, finished: ToolCallFinished) -> None:
        """Add the result. An unknown name is the model's text, so it is no part of the span's name."""
        span = self._current.span
        span.set_attributes(conventions.result_attributes(finished, captures=self._tracing.captures))
        self._current.failure = finished.error_kind or ""
        if finished.error_kind != "unknown-tool":
            span.update_name(f"execute_tool {finished.call.name[:64]}")

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._current.end(error)


class _TracedRequest(UpstreamRequest):
    """Sends the current trace to an upstream, or that of the span that the request has of its own."""

    __slots__ = ("_span", "_status", "headers")

    def __init__(self, span: Span | None = None) -> None:
        self.headers: dict[str, str] = {}
        propagate.inject(self.headers, set_span_in_context(span) if span else None)
        self._span, self._status = span, 0

    def record_status(self, status: int) -> None:
        self._status = status

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._span is not None:
            if self._status:
                self._span.set_attribute(STATUS, self._status)
            _end(self._span, str(self._status) if self._status >= 400 else "", error)


def _end(span: Span, failure: str, error: BaseException | None = None) -> None:
    """End a span, which has failed if there is either; the message of a foreign exception is not recorded."""
    if failure := failure or ("" if error is None else outcome_of(error)):
        span.set_attribute(ERROR_TYPE, failure)
        detail = None
        if isinstance(error, ToolchatError):
            detail = error.detail
            span.set_attributes({f"toolchat.{name}": value for name, value in error.log_fields.items()})
        span.set_status(StatusCode.ERROR, detail)
    span.end()
