"""Answers in OpenAI's formats: a chat completion, or a stream of its chunks."""

import time
from collections.abc import Mapping
from dataclasses import field
from random import getrandbits
from typing import Any, NamedTuple

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall, Usage, immutable
from toolchat.models.base import CUT, ChatResponse, Progress, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter, frame_of
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

    def outcome(self, active: ActiveRequest, response: ChatResponse, *, has_text: bool = False) -> "Outcome":
        """What is left to write of an answer; ``has_text``: its text was streamed."""
        text = response.message.text
        if has_text:
            text = f"\n\n{active.notice}" if active.notice else ""
        reasoning = response.message.extra.get("reasoning_content") or response.message.extra.get("reasoning")
        return Outcome(
            text,
            reasoning if isinstance(reasoning, str) else "",
            tuple(call for call in response.message.tool_calls if call.name in self.client_tools),
            response.finish_reason if response.finish_reason in CUT else "",
            (self.client_tools and response.last_usage) or response.usage,
            {"approval": active.pending} if active.pending else {},
        )


class Outcome(NamedTuple):
    """The end of an answer, as each wire writes it in its own terms."""

    text: str
    """The text that was not streamed: all of it, or the notice of a pending approval."""
    reasoning: str
    """The model's reasoning in its last call, if the provider sends it."""
    calls: tuple[ToolCall, ...]
    """The calls that the client must run; those of the service's tools are hidden, or the client would run them too."""
    cut: str
    """Why the provider cut the answer, as a finish reason; empty for a complete one."""
    usage: Usage
    """The tokens of all model calls, or of the last one for an agent, which reads them as the size of its context."""
    approval: Mapping[str, Any]
    """The pending approval as a field of the answer, which is none of OpenAI's; empty without one."""


class SavedTurns(AnswerFormat):
    """Formats of clients with tools of their own: a turn that the client does not see as a whole is saved."""

    context: ResponseContext

    async def finish(self, active: ActiveRequest, response: ChatResponse) -> ChatResponse:
        names = self.context.client_tools
        return await save_turn(active.service.store, response, names) if names else response


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


class _ChatFormat(SavedTurns, OpenAIFormat):
    """What both formats of chat completions share."""


class Completion(_ChatFormat, BufferedFormat):
    """A chat completion: the text, the calls that the client must run, and the usage."""

    media_type = "application/json"

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        outcome = self.context.outcome(active, response)
        calls = _wire_calls(outcome)
        text = outcome.text if outcome.text or not calls else None
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        message |= {"reasoning_content": outcome.reasoning} if outcome.reasoning else {}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(outcome)}
        head = _head("chat.completion", self.context)
        return to_json({**head, "choices": [choice], "usage": _usage(outcome.usage), **outcome.approval})


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
        self._head = _head("chat.completion.chunk", context) | ({"usage": None} if context.include_usage else {})

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._text(event.text)
        if isinstance(event, Progress):
            return self._chunk({"reasoning_content": event.reasoning}) if event.reasoning else b""
        status = self._status.update(event) if self._status else None
        # Within an ordinary chunk: code written for the official client fails on events without choices.
        return self._write([_choice({})], event=status) if status else b""

    def done(self, response: ChatResponse) -> bytes:
        outcome = self._context.outcome(self.active, response, has_text=self._has_text)
        pieces = [self._text(outcome.text)] if outcome.text else []
        if calls := _wire_calls(outcome):
            pieces.append(self._chunk({"tool_calls": [{"index": number, **call} for number, call in enumerate(calls)]}))
        pieces.append(self._chunk({}, _finish_reason(outcome), **outcome.approval))
        # OpenAI sends usage in a chunk of its own without choices, after the last one, and null in all others.
        if self._context.include_usage:
            pieces.append(self._write([], usage=_usage(outcome.usage)))
        return b"".join((*pieces, _DONE))

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; without ``[DONE]``, because the answer is incomplete."""
        return b"data: %b\n\n" % to_json(error_document(error))

    def _text(self, text: str) -> bytes:
        self._has_text = self._has_text or bool(text)
        piece = self._chunk({"content": text})
        self.text_frame = frame_of(lambda text: self._chunk({"content": text}))
        return piece

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        if not self._has_role:  # it belongs to the first delta
            self._has_role, delta = True, {"role": "assistant", "content": "", **delta}
        return self._write([_choice(delta, reason)], **more)

    def _write(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: %b\n\n" % to_json({**self._head, "choices": choices, **more})


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


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


def _wire_calls(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in outcome.calls
    ]


def _finish_reason(outcome: Outcome) -> str:
    """The finish reason as one of OpenAI's values; a cut answer's calls may be incomplete."""
    return _CUT.get(outcome.cut) or ("tool_calls" if outcome.calls else "stop")


_CUT = {"length": "length", "content_filter": "content_filter", "incomplete": "length"}


def _head(kind: str, context: ResponseContext) -> dict[str, Any]:
    identifier = f"chatcmpl-{context.identifier}"
    return {"id": identifier, "object": kind, "created": context.created, "model": context.model}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
