"""What spans and their attributes are called: OpenTelemetry's conventions, and this is the one place that knows them.

HTTP: https://opentelemetry.io/docs/specs/semconv/http/http-spans/ (stable).
Generative AI: https://github.com/open-telemetry/semantic-conventions-genai (still moving).
What they have no name for begins with ``toolchat.``.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.observability import content
from app.observability.spans import CLIENT, INTERNAL, Attribute, Fixed, Span, Tracer
from toolchat.http.requests import Request
from toolchat.messages import Message, ToolCall, Usage
from toolchat.models.base import ChatResponse, Prompt
from toolchat.tool_calling.events import ToolCallFinished

__all__ = [
    "agent",
    "answered",
    "chat",
    "request",
    "responded",
    "tool",
    "tool_ended",
    "upstream",
]

AGENT = "toolchat"
ERROR_TYPE = "error.type"
STATUS = "http.response.status_code"
_PROVIDERS = {"openai_compatible": "openai"}
"""By the format of its telemetry, which is that of its protocol, whoever runs the server."""
_UNKNOWN_TOOL = "unknown-tool"


def request(tracer: Tracer, scope: Mapping[str, Any], path: str, began: float) -> Span:
    """Begin the span of an HTTP request; ``path`` has no ids in it."""
    span = tracer.begin(scope["method"], scope["headers"], began)
    if span.trace.is_sampled:
        server = tuple(scope.get("server") or ())
        head = _head(scope["method"], path, scope["scheme"], scope["http_version"], server)
        span.attributes += [head, ("toolchat.request_id", scope["state"]["request_id"])]
    return span


@lru_cache(1000)
def _head(method: str, path: str, scheme: str, version: str, server: tuple[Any, ...]) -> Fixed:
    place = (("server.address", server[0]), ("server.port", server[1] or 0)) if server else ()
    said = ("http.request.method", method), ("url.path", path), ("url.scheme", scheme)
    return Fixed(*said, ("network.protocol.version", version), *place)


def responded(span: Span, route: str, status: int, outcome: str, now: float) -> None:
    """End it. A refusal is the client's fault, and no error here; what breaks off in mid-answer is one."""
    failure = "" if outcome == "ok" or 400 <= status < 500 else outcome
    if span.trace.is_sampled:
        span.name = f"{span.name} {route}"
        span.attributes.append(_responded(route, status, outcome, failure))
    span.end(now, failure)


@lru_cache(1000)
def _responded(route: str, status: int, outcome: str, failure: str) -> Fixed:
    told = ("http.route", route), (STATUS, status), ("toolchat.outcome", outcome)
    return Fixed(*told, *([(ERROR_TYPE, failure)] if failure else []))


def agent(parent: Span, provider: str, model: str, messages: Sequence[Message], began: float) -> Span:
    """Begin the span of a question: the model's turns and the tool calls are its parts."""
    span = parent.child(f"invoke_agent {AGENT}", INTERNAL, began)
    span.attributes.append(_asking("invoke_agent", provider, model))
    span.attributes += _conversation(span)
    if span.trace.captures:
        span.attributes += _asked(messages)
    return span


def chat(parent: Span, provider: str, model: str, prompt: Prompt, began: float) -> Span:
    """Begin the span of a model's turn."""
    model = prompt.options.model or model
    span = parent.child(f"chat {model}", INTERNAL if provider == "offline" else CLIENT, began)
    span.attributes.append(_asking("chat", provider, model, stream=prompt.stream))
    span.attributes += _conversation(span)
    if span.trace.captures:
        span.attributes += _asked(prompt.messages)
    return span


def answered(span: Span, response: ChatResponse | None, outcome: str, now: float, first: float = 0.0) -> None:
    """End the span of a question or of a turn.

    Args:
        span: that of :func:`agent` or :func:`chat`.
        response: what came of it; nothing where it failed.
        outcome: ``ok``, or why it failed.
        now: the time.
        first: seconds to the first piece, if it came in pieces.
    """
    if response is not None:
        span.attributes += [_answered(response.finish_reason, response.model), *_usage(response.usage)]
        if span.trace.captures:
            output = content.answer(response.message, response.finish_reason)
            span.attributes.append(("gen_ai.output.messages", output))
    if first:
        span.attributes.append(("gen_ai.response.time_to_first_chunk", first))
    _end(span, "" if outcome == "ok" else outcome, now)


@lru_cache(1000)
def _asking(operation: str, provider: str, model: str, *, stream: bool | None = None) -> Fixed:
    more = ("gen_ai.agent.name", AGENT) if stream is None else ("gen_ai.request.stream", stream)
    name = _PROVIDERS.get(provider, provider)
    return Fixed(
        ("gen_ai.operation.name", operation), ("gen_ai.provider.name", name), ("gen_ai.request.model", model), more
    )


@lru_cache(1000)
def _answered(finish_reason: str, model: str) -> Fixed:
    by = [("gen_ai.response.model", model)] if model else []
    return Fixed(("gen_ai.response.finish_reasons", (finish_reason,)), *by)


def tool(parent: Span, call: ToolCall, began: float) -> Span:
    """Begin the span of a tool call."""
    span = parent.child("execute_tool", INTERNAL, began)
    span.attributes += [_tool(call.name[:64]), ("gen_ai.tool.call.id", call.id[:128])]
    if span.trace.captures:
        span.attributes.append(("gen_ai.tool.call.arguments", content.short(call.arguments)))
    return span


@lru_cache(1000)
def _tool(name: str) -> Fixed:
    return Fixed(
        ("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", name), ("gen_ai.tool.type", "function")
    )


def tool_ended(span: Span, call: ToolCall, finished: ToolCallFinished | None, outcome: str, now: float) -> None:
    """End it: with what became of the call, or else with why nothing did.

    A name that there is not is the model's, and no part of the span's.
    """
    if finished is not None:
        outcome = finished.error_kind or ""
        flags = {"cached": finished.cached, "repaired": finished.repaired}
        span.attributes += [(f"toolchat.tool.{name}", True) for name, is_set in flags.items() if is_set]
        if span.trace.captures:
            span.attributes.append(("gen_ai.tool.call.result", content.short(finished.result)))
    if outcome != _UNKNOWN_TOOL:
        span.name = f"execute_tool {call.name[:64]}"
    _end(span, outcome, now)


def upstream(parent: Span, name: str, sent: Request, began: float) -> Span | None:
    """Begin the span of a request to an upstream, which has a name in the service; none where its parent is one.

    Its path may hold what a tool was asked, and is told only where that is; a query, which may hold a key, never is.
    """
    scheme, host, port, path = sent.url
    if parent.kind == CLIENT:
        if (place := _place(host, port)) not in parent.attributes:  # it may be tried again
            parent.attributes.append(place)
        return None
    span = parent.child(sent.method, CLIENT, began)
    span.attributes.append(_sent(name, sent.method, scheme, host, port))
    if span.trace.captures:
        span.attributes.append(("url.path", content.short(path)))
    return span


@lru_cache(1000)
def _place(host: str, port: int) -> Fixed:
    return Fixed(("server.address", host), ("server.port", port))


@lru_cache(1000)
def _sent(name: str, method: str, scheme: str, host: str, port: int) -> Fixed:
    shown = f"[{host}]" if ":" in host else host
    place = ("server.address", host), ("server.port", port), ("url.full", f"{scheme}://{shown}:{port}")
    return Fixed(("http.request.method", method), *place, ("toolchat.upstream", name))


def upstream_ended(span: Span, outcome: str, now: float) -> None:
    """End it when the head of the answer has come; ``outcome`` is its status, or an error."""
    is_status = outcome.isdecimal()
    if is_status:
        span.attributes.append((STATUS, int(outcome)))
    _end(span, "" if is_status and int(outcome) < 400 else outcome, now)


def waiting(parent: Span, what: str, seconds: float, now: float) -> None:
    """Keep the span of having waited."""
    parent.child(f"wait {what}", INTERNAL, now - seconds).end(now)


def store(parent: Span, kind: str, operation: str, seconds: float, now: float) -> None:
    """Keep the span of an operation of a shared store (https://opentelemetry.io/docs/specs/semconv/db/redis/)."""
    span = parent.child(f"{kind} {operation}", CLIENT, now - seconds)
    span.attributes.append(_stored(kind, operation))
    span.end(now)


@lru_cache(100)
def _stored(kind: str, operation: str) -> Fixed:
    return Fixed(("db.system.name", kind), ("db.operation.name", operation))


def error(code: str, **more: Attribute) -> tuple[tuple[str, Attribute], ...]:
    """The attributes of an event that tells of an error."""
    return ((ERROR_TYPE, code), *((f"toolchat.{name}", value) for name, value in more.items()))


def _end(span: Span, failure: str, now: float) -> None:
    if failure:
        span.attributes.append((ERROR_TYPE, failure))
    span.end(now, failure)


def _conversation(span: Span) -> list[tuple[str, Attribute]]:
    return [("gen_ai.conversation.id", span.trace.conversation)] if span.trace.conversation else []


def _usage(usage: Usage) -> Iterator[tuple[str, Attribute]]:
    yield "gen_ai.usage.input_tokens", usage.input_tokens
    yield "gen_ai.usage.output_tokens", usage.output_tokens
    if usage.cached_tokens:
        yield "gen_ai.usage.cache_read.input_tokens", usage.cached_tokens
    if usage.reasoning_tokens:
        yield "gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens


def _asked(messages: Sequence[Message]) -> Iterator[tuple[str, Attribute]]:
    if instructions := content.instructions(messages):
        yield "gen_ai.system_instructions", instructions
    yield "gen_ai.input.messages", content.conversation(messages)
