"""Answers in OpenAI's formats: a chat completion, or a stream of its chunks."""

import time
from typing import Any

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import Usage
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter, frame_of
from toolchat.service.api.responses.formats import BufferedFormat
from toolchat.service.protocols.answers import Outcome, ResponseContext, SavedTurns
from toolchat.service.protocols.openai.errors import error_document, limit_headers
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

OPEN_WEBUI = "open-webui"
"""The value of ``X-Toolchat-Progress`` and ``OPENAI_API_PROGRESS`` that requests Open WebUI's status events."""
_DONE = b"data: [DONE]\n\n"


class OpenAIFormat(SavedTurns):
    """What the formats of all of OpenAI's APIs share: their headers."""

    def __init__(self, context: ResponseContext) -> None:
        self.context = context

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        """See :meth:`AnswerFormat.headers`."""
        elapsed = round((time.perf_counter() - self.context.started) * 1000)
        limits = limit_headers(active.reservation.usage)
        return super().headers(active, response) | {"openai-processing-ms": str(elapsed)} | limits


class Completion(OpenAIFormat, BufferedFormat):
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
        return to_json({**head, "choices": [choice], "usage": usage_document(outcome.usage), **outcome.approval})


class Chunks(OpenAIFormat, StreamFormat):
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
            pieces.append(self._write([], usage=usage_document(outcome.usage)))
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


def usage_document(usage: Usage, given: str = "prompt", written: str = "completion") -> dict[str, Any]:
    """The tokens of an answer; the two APIs name those that were given and written differently."""
    return {
        f"{given}_tokens": usage.input_tokens,
        f"{written}_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        f"{given}_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        f"{written}_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
