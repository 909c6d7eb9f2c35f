"""Answers in OpenAI's formats: a chat completion, or a stream of its chunks."""

import time
from collections.abc import Mapping
from dataclasses import field
from random import getrandbits
from typing import Any

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import Usage, immutable
from toolchat.models.base import CUT, ChatResponse, Progress, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter
from toolchat.service.api.responses.formats import AnswerFormat, BufferedFormat
from toolchat.service.protocols.openai.errors import error_document, limit_headers
from toolchat.service.protocols.openai.partial_turns import save_turn
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

OPEN_WEBUI = "open-webui"
"""The value of ``X-Toolchat-Progress`` and ``OPENAI_API_PROGRESS`` that requests Open WebUI's status events."""
_DONE = b"data: [DONE]\n\n"


def new_identifier() -> str:
    """The part of a response's id behind its prefix: 24 hexadecimal digits."""
    return f"{getrandbits(96):024x}"


@immutable
class ResponseContext:
    """The parts of a request that shape its response."""

    model: str
    """The model's name in the request."""
    client_tools: frozenset[str] = frozenset()
    """Names of the tools that the client runs itself."""
    in_session: bool = False
    """Whether the client named the conversation."""
    include_usage: bool = False
    reports_progress: bool = False
    """Whether a stream reports tool calls in Open WebUI's events."""
    identifier: str = field(default_factory=new_identifier)
    created: int = field(default_factory=lambda: int(time.time()))
    started: float = field(default_factory=time.perf_counter)

    def usage_of(self, response: ChatResponse) -> Usage:
        """The tokens of an answer: of all model calls, or of the last for an agent, which reads them as its context."""
        return (self.client_tools and response.last_usage) or response.usage


class OpenAIFormat(AnswerFormat):
    """What the formats of all of OpenAI's APIs share: their headers."""

    negotiated = False

    def __init__(self, context: ResponseContext) -> None:
        self.context = context

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        """See :meth:`AnswerFormat.headers`; the session id is hidden if the client did not name the conversation."""
        headers = super().headers(active, response)
        headers["openai-processing-ms"] = str(round((time.perf_counter() - self.context.started) * 1000))
        if not self.context.in_session:
            headers.pop("X-Session-ID", None)
        if usage := active.reservation.usage:
            headers |= limit_headers(usage)
        return headers


class _ChatFormat(OpenAIFormat):
    """What both formats of chat completions share: the turn is saved if the client does not see all of it."""

    async def finish(self, active: ActiveRequest, response: ChatResponse) -> ChatResponse:
        names = self.context.client_tools
        return await save_turn(active.service.store, response, names) if names else response


class Completion(_ChatFormat, BufferedFormat):
    """A chat completion: the text, the calls that the client must run, and the usage."""

    media_type = "application/json"

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        context = self.context
        calls = _client_calls(response, context.client_tools)
        choice = {
            "index": 0,
            "message": _message(response, calls),
            "logprobs": None,
            "finish_reason": _finish_reason(response, has_calls=bool(calls)),
        }
        return b'%b,"choices":[%b],"usage":%b%b}' % (
            _head("chat.completion", context),
            to_json(choice),
            _usage(context.usage_of(response)),
            _approval(active),
        )


class Chunks(_ChatFormat, StreamFormat):
    """Server-sent events with one chunk each, ended by ``[DONE]``."""

    def writer(self, active: ActiveRequest) -> StreamWriter:
        """See :attr:`StreamFormat.writer`."""
        return ChunkWriter(self.context, active)


class ChunkWriter(StreamWriter):
    """Writes the text as it arrives, then the calls that the client must run, the finish reason, and the usage."""

    def __init__(self, context: ResponseContext, active: ActiveRequest) -> None:
        super().__init__(active)
        self._context = context
        self._status = ToolStatus() if context.reports_progress else None
        self._has_role = self._has_text = False
        self._head = b"data: %b," % _head("chat.completion.chunk", context)
        self._tail = b',"usage":null}\n\n' if context.include_usage else b"}\n\n"

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._text(event.text)
        if isinstance(event, Progress):
            return self._chunk(self._delta({"reasoning_content": event.reasoning})) if event.reasoning else b""
        status = self._status.update(event) if self._status else None
        # Within an ordinary chunk: code written for the official client fails on events without choices.
        return self._chunk({}, more=b',"event":%b' % to_json(status)) if status else b""

    def done(self, response: ChatResponse) -> bytes:
        calls = _client_calls(response, self._context.client_tools)
        pieces = [self._remaining_text(response)]
        if calls:
            numbered = [{"index": number, **call} for number, call in enumerate(calls)]
            pieces.append(self._chunk(self._delta({"tool_calls": numbered})))
        reason = _finish_reason(response, has_calls=bool(calls))
        pieces.append(self._chunk(self._delta({}), reason, _approval(self.active)))
        # OpenAI sends usage in a chunk of its own without choices, after the last one, and null in all others.
        if self._context.include_usage:
            pieces.append(b'%b"choices":[],"usage":%b}\n\n' % (self._head, _usage(self._context.usage_of(response))))
        return b"".join((*pieces, _DONE))

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; without ``[DONE]``, because the answer is incomplete."""
        return b"data: %b\n\n" % to_json(error_document(error))

    def _remaining_text(self, response: ChatResponse) -> bytes:
        """Text that was not streamed: the notice of a pending approval, or an answer that no model wrote."""
        if notice := self.active.notice:
            return self._text(f"\n\n{notice}" if self._has_text else notice)
        text = response.message.text
        return self._text(text) if text and not self._has_text else b""

    def _text(self, text: str) -> bytes:
        self._has_text = self._has_text or bool(text)
        before = b'%b"choices":[{"index":0,"delta":{"content":' % self._head
        self.text_frame = before, b'},"logprobs":null,"finish_reason":null}]%b' % self._tail
        return self._chunk(self._delta({"content": text}))

    def _delta(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the role to the first delta."""
        if self._has_role:
            return fields
        self._has_role = True
        return {"role": "assistant", "content": "", **fields}

    def _chunk(self, delta: Mapping[str, Any], reason: str | None = None, more: bytes = b"") -> bytes:
        choice = to_json({"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason})
        return b'%b"choices":[%b]%b%b' % (self._head, choice, more, self._tail)


class ToolStatus:
    """Describes the running tool calls as Open WebUI's status events."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}

    def update(self, event: ChatEvent) -> dict[str, Any] | None:
        """The status event that an event leads to; ``None`` if it changes nothing."""
        if isinstance(event, ToolCallStarted):
            self._running[event.call.id] = event.call.name[:64]
            return _status(f"Running {', '.join(self._running.values())} …", done=False)
        if isinstance(event, ToolCallProgress):
            return _status(str(event), done=False)
        if isinstance(event, ToolCallFinished):
            self._running.pop(event.call.id, None)
            outcome = "answered" if event.outcome == "ok" else f"failed ({event.error_kind})"
            description = f"{event.call.name[:64]} {outcome} in {event.duration_ms:.0f} ms"
            return _status(description, done=not self._running)
        return None


def _status(description: str, *, done: bool) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}


def _message(response: ChatResponse, calls: list[dict[str, Any]]) -> dict[str, Any]:
    text = response.message.text
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    extra = response.message.extra
    if isinstance(reasoning := extra.get("reasoning_content") or extra.get("reasoning"), str):
        message["reasoning_content"] = reasoning
    return message


def _client_calls(response: ChatResponse, client_tools: frozenset[str]) -> list[dict[str, Any]]:
    """The calls that the client must run; calls of the service's tools are hidden, or the client would run them too."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in response.message.tool_calls
        if call.name in client_tools
    ]


def _finish_reason(response: ChatResponse, *, has_calls: bool) -> str:
    """The finish reason as one of OpenAI's values."""
    reason = response.finish_reason
    if reason in CUT:  # the client's calls may be incomplete
        return "length" if reason == "incomplete" else reason
    return "tool_calls" if has_calls else "stop"


def _head(kind: str, context: ResponseContext) -> bytes:
    """The begin of a document, without the closing brace: what follows is the answer's own."""
    created, model = context.created, to_json(context.model)
    head = b'{"id":"chatcmpl-%b","object":"%b","created":%d,"model":%b'
    return head % (context.identifier.encode(), kind.encode(), created, model)


def _approval(active: ActiveRequest) -> bytes:
    """The pending approval, which is no field of OpenAI's; empty without one."""
    return b',"approval":%b' % to_json(active.pending) if active.pending else b""


def _usage(usage: Usage) -> bytes:
    return (
        b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
        b'"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}'
    ) % (
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
    )
