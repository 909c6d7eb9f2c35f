"""What spans and their attributes are called: OpenTelemetry's conventions, and this is the one place that knows them.

HTTP: https://opentelemetry.io/docs/specs/semconv/http/http-spans/ (stable).
Generative AI: https://github.com/open-telemetry/semantic-conventions-genai (still moving).
What they have no name for begins with ``toolchat.``.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, Self

from pydantic_core import to_json

from app.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolResponseMessage, Usage, UserMessage
from app.observation.spans import CLIENT, INTERNAL, Attribute, Fixed, Span, Tracer

__all__ = [
    "Answered",
    "Finished",
    "Prompted",
    "Sent",
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
_MOST_MESSAGES, _MOST_CHARS = 40, 8000
"""Of what is captured: the newest messages, and the beginning of each text."""


class Prompted(Protocol):
    """What a chat model is asked."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation."""
        ...

    @property
    def options(self) -> Any:
        """Among them ``model``, where it is not the ordinary one."""
        ...

    @property
    def stream(self) -> bool:
        """Whether the answer comes piece by piece."""
        ...


class Answered(Protocol):
    """What came back."""

    @property
    def message(self) -> AssistantMessage:
        """The answer."""
        ...

    @property
    def finish_reason(self) -> str:
        """Why it ended."""
        ...

    @property
    def usage(self) -> Usage:
        """Tokens."""
        ...

    @property
    def model(self) -> str:
        """Who answered."""
        ...


class Finished(Protocol):
    """What became of a tool call."""

    @property
    def error_kind(self) -> str | None:
        """Why it failed, if it did."""
        ...

    @property
    def result(self) -> str:
        """What the model is told."""
        ...

    @property
    def cached(self) -> bool:
        """Whether an earlier call's result was given."""
        ...

    @property
    def repaired(self) -> bool:
        """Whether its arguments were."""
        ...


class Sent(Protocol):
    """A request to an upstream."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        ...

    @property
    def url(self) -> tuple[str, str, int, str]:
        """Scheme, host, port and path; not the query."""
        ...

    def with_lines(self, lines: bytes) -> Self:
        """The same with more header lines."""
        ...


def request(tracer: Tracer, scope: Mapping[str, Any], path: str, began: float) -> Span:
    """Begin the span of an HTTP request; ``path`` has no ids in it."""
    span = tracer.begin(scope["method"], scope["headers"], began)
    if span.trace.is_sampled:
        head = _head(scope["method"], path, scope["scheme"], scope["http_version"], scope.get("server"))
        span.attributes += [head, ("toolchat.request_id", scope["state"]["request_id"])]
        if span.trace.captures and scope["query_string"]:
            span.attributes.append(("url.query", _short(scope["query_string"].decode("latin-1"))))
    return span


@lru_cache(1000)
def _head(method: str, path: str, scheme: str, version: str, server: tuple[str, int | None] | None) -> Fixed:
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


def chat(parent: Span, provider: str, model: str, prompt: Prompted, began: float) -> Span:
    """Begin the span of a model's turn."""
    model = prompt.options.model or model
    span = parent.child(f"chat {model}", INTERNAL if provider == "offline" else CLIENT, began)
    span.attributes.append(_asking("chat", provider, model, stream=prompt.stream))
    span.attributes += _conversation(span)
    if span.trace.captures:
        span.attributes += _asked(prompt.messages)
    return span


def answered(span: Span, response: Answered | None, outcome: str, now: float, first: float = 0.0) -> None:
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
            parts = _parts(response.message)
            output = [{"role": "assistant", "parts": parts, "finish_reason": response.finish_reason}]
            span.attributes.append(("gen_ai.output.messages", _json(output)))
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
        span.attributes.append(("gen_ai.tool.call.arguments", _short(call.arguments)))
    return span


@lru_cache(1000)
def _tool(name: str) -> Fixed:
    return Fixed(
        ("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", name), ("gen_ai.tool.type", "function")
    )


def tool_ended(span: Span, call: ToolCall, finished: Finished | None, outcome: str, now: float) -> None:
    """End it: with what became of the call, or else with why nothing did.

    A name that there is not is the model's, and no part of the span's.
    """
    if finished is not None:
        outcome = finished.error_kind or ""
        flags = {"cached": finished.cached, "repaired": finished.repaired}
        span.attributes += [(f"toolchat.tool.{name}", True) for name, is_set in flags.items() if is_set]
        if span.trace.captures:
            span.attributes.append(("gen_ai.tool.call.result", _short(finished.result)))
    if outcome != _UNKNOWN_TOOL:
        span.name = f"execute_tool {call.name[:64]}"
    _end(span, outcome, now)


def upstream(parent: Span, name: str, sent: Sent, began: float) -> Span | None:
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
        span.attributes.append(("url.path", _short(path)))
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


def store(parent: Span, kind: str, seconds: float, now: float) -> None:
    """Keep the span of an operation of a shared store."""
    span = parent.child(kind, CLIENT, now - seconds)
    span.attributes.append(("db.system.name", kind))
    span.end(now)


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
    system = [_text(each.text) for each in messages if isinstance(each, SystemMessage)]
    if system:
        yield "gen_ai.system_instructions", _json(system)
    others = [each for each in messages if not isinstance(each, SystemMessage)]
    yield "gen_ai.input.messages", _json([_message(each) for each in others[-_MOST_MESSAGES:]])


def _message(message: Message) -> Mapping[str, Any]:
    role = {UserMessage: "user", AssistantMessage: "assistant", ToolResponseMessage: "tool"}.get(
        type(message), "system"
    )
    return {"role": role, "parts": _parts(message)}


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    if isinstance(message, ToolResponseMessage):
        return [
            {"type": "tool_call_response", "id": each.id, "result": _short(each.text)} for each in message.responses
        ]
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    told = [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": _short(each.arguments)} for each in calls
    ]
    return [*([_text(message.text)] if message.text else []), *told]


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "content": _short(text)}


def _short(text: str) -> str:
    text = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be sent


def _json(value: Any) -> str:
    return to_json(value).decode()
