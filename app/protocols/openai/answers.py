"""An answer as OpenAI's stream of chunks."""

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from random import getrandbits
from typing import Any, ClassVar

from fastapi import Response
from pydantic_core import to_json

from app.api.responses.active_request import ActiveRequest
from app.api.responses.formats import BufferedFormat, StreamFormat, StreamWriter
from app.protocols.openai.errors import error_document, error_response, limit_headers
from app.protocols.openai.partial_turns import keep_calls
from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import Usage, immutable
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = [
    "OPEN_WEBUI",
    "Chunks",
    "Completion",
    "ToolStatus",
    "Wish",
    "call_documents",
    "consent_link",
    "finish_reason",
    "note_headers",
    "usage_document",
]


@immutable
class Wish:
    """What the forms of an answer must know of its request."""

    model: str
    """As the client calls it."""
    theirs: frozenset[str] = frozenset()
    """The names of the tools that the client runs."""
    in_session: bool = False
    include_usage: bool = False
    page: Callable[[], str] = str
    """Gives the address of the service's own page, where a user consents who has no other way."""
    tells_progress: bool = False
    """Whether Open WebUI's page is told what the service's tools do."""
    identifier: str = field(default_factory=lambda: f"chatcmpl-{getrandbits(96):024x}")
    created: int = field(default_factory=lambda: int(time.time()))
    began: float = field(default_factory=time.perf_counter)


def call_documents(response: ChatResponse, theirs: frozenset[str]) -> list[dict[str, Any]]:
    """The calls that the client must run; those of the service are never among them, or the client would run them."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in response.message.tool_calls
        if call.name in theirs
    ]


def finish_reason(response: ChatResponse, *, has_calls: bool) -> str:
    """Why the answer ended, in one of OpenAI's words."""
    if has_calls:
        return "tool_calls"
    reason = response.finish_reason
    return reason if reason == "length" or reason == "content_filter" else "stop"


def usage_document(usage: Usage) -> dict[str, Any]:
    """The tokens of all turns together."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def consent_link(asked: ActiveRequest, wish: Wish) -> str:
    """Where the user decides about an answer that waits, behind the words that say what waits; empty for any other."""
    return f"\n{wish.page()}?approval={asked.pending['id']}" if asked.pending else ""


def note_headers(asked: ActiveRequest, wish: Wish) -> None:
    """Put into the answer's headers what OpenAI's have; a conversation of one request has no name for the client."""
    asked.headers["openai-processing-ms"] = str(round((time.perf_counter() - wish.began) * 1000))
    if not wish.in_session:
        asked.headers.pop("X-Session-ID", None)


class Completion(BufferedFormat):
    """The answer with the calls that the client must run, and the tokens."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"type": "object"}}
    negotiated = False

    def __init__(self, wish: Wish) -> None:
        self._wish = wish

    async def finished(self, asked: ActiveRequest, response: ChatResponse) -> ChatResponse:
        """See :meth:`AnswerFormat.finished`; keeps what the client does not know of."""
        return await keep_calls(asked.service.store, response, self._wish.theirs) if self._wish.theirs else response

    def refused(self, asked: ActiveRequest, error: ToolchatError) -> Response:
        """See :meth:`AnswerFormat.refused`."""
        asked.record_error(error)
        return error_response(error, asked.request_id)

    def render(self, asked: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.render`."""
        wish = self._wish
        note_headers(asked, wish)
        asked.headers |= limit_headers(asked.reservation.headers)
        calls = call_documents(response, wish.theirs)
        choice = {
            "index": 0,
            "message": _message(response, calls, consent_link(asked, wish)),
            "logprobs": None,
            "finish_reason": finish_reason(response, has_calls=bool(calls)),
        }
        document = {
            "id": wish.identifier,
            "object": "chat.completion",
            "created": wish.created,
            "model": wish.model,
            "choices": [choice],
            "usage": usage_document(response.usage),
        }
        return to_json(document | ({"approval": asked.pending} if asked.pending else {}))


def _message(response: ChatResponse, calls: list[dict[str, Any]], link: str) -> dict[str, Any]:
    text = response.message.text + link
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    extra = response.message.extra
    if isinstance(reasoning := extra.get("reasoning_content") or extra.get("reasoning"), str):
        message["reasoning_content"] = reasoning
    return message


OPEN_WEBUI = "open-webui"
"""What ``X-Toolchat-Progress`` and ``OPENAI_API_PROGRESS`` ask for."""


class ToolStatus:
    """Words the status; it is done when no call runs any more."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}

    def told(self, event: ChatEvent) -> dict[str, Any] | None:
        """The page's event; ``None`` for what it is not told."""
        if isinstance(event, ToolCallStarted):
            self._running[event.call.id] = event.call.name[:64]
            return _status(f"Running {', '.join(self._running.values())} …", done=False)
        if isinstance(event, ToolCallProgress):
            return _status(str(event), done=False)
        if isinstance(event, ToolCallFinished):
            self._running.pop(event.call.id, None)
            outcome = "answered" if event.outcome == "ok" else f"failed ({event.error_kind})"
            described = f"{event.call.name[:64]} {outcome} in {event.duration_ms:.0f} ms"
            return _status(described, done=not self._running)
        return None


def _status(description: str, *, done: bool) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}


_DONE = b"data: [DONE]\n\n"


class ChunkWriter(StreamWriter):
    """Writes text as it comes, then the calls that the client must run, the reason for the end, and the tokens."""

    def __init__(self, wish: Wish, asked: ActiveRequest) -> None:
        super().__init__(asked)
        self._wish = wish
        self._status = ToolStatus() if wish.tells_progress else None
        self._begun = False
        self._has_role = False
        self._has_text = False
        head = {
            "id": wish.identifier,
            "object": "chat.completion.chunk",
            "created": wish.created,
            "model": wish.model,
        }
        self._head = b"data: %b," % to_json(head)[:-1]
        self._tail = b',"usage":null}\n\n' if wish.include_usage else b"}\n\n"
        # Nearly every piece is a text behind the first: all that differs between them is the text.
        self._before = b'%b"choices":[{"index":0,"delta":{"content":' % self._head
        self._after = b'},"logprobs":null,"finish_reason":null}]%b' % self._tail
        note_headers(asked, wish)

    def event(self, event: ChatEvent) -> bytes:
        """See :meth:`StreamWriter.event`."""
        if isinstance(event, TextDelta):
            return self._text(event.text)
        if isinstance(event, Progress):
            return self._chunk(self._delta({"reasoning_content": event.reasoning})) if event.reasoning else b""
        status = self._status.told(event) if self._status else None
        # In an ordinary chunk: a line without choices breaks the official client's users, even as a named event.
        return self._chunk({}, more=b',"event":%b' % to_json(status)) if status else b""

    def done(self, response: ChatResponse) -> bytes:
        """See :meth:`StreamWriter.done`."""
        calls = call_documents(response, self._wish.theirs)
        pieces = [self._rest(response)]
        if calls:
            numbered = [{"index": number, **call} for number, call in enumerate(calls)]
            pieces.append(self._chunk(self._delta({"tool_calls": numbered})))
        waiting = b',"approval":%b' % to_json(self.asked.pending) if self.asked.pending else b""
        reason = finish_reason(response, has_calls=bool(calls))
        pieces.append(self._chunk(self._delta({}), reason, waiting))
        if self._wish.include_usage:
            usage = to_json(usage_document(response.usage))
            pieces.append(b'%b"choices":[],"usage":%b}\n\n' % (self._head, usage))
        return b"".join((*pieces, _DONE))

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; no ``[DONE]`` follows, for the answer is not whole."""
        return b"data: %b\n\n" % to_json(error_document(error))

    def _rest(self, response: ChatResponse) -> bytes:
        """Text that has not been told: of an answer that waits for approval, or that no model has written."""
        if notice := self.asked.notice:
            notice += consent_link(self.asked, self._wish)
            return self._text(f"\n\n{notice}" if self._has_text else notice)
        text = response.message.text
        return self._text(text) if text and not self._has_text else b""

    def _text(self, text: str) -> bytes:
        self._has_text = self._has_text or bool(text)
        if self._has_role:
            return self._before + to_json(text) + self._after
        return self._chunk(self._delta({"content": text}))

    def _delta(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._has_role:
            return fields
        self._has_role = True
        return {"role": "assistant", "content": "", **fields}

    def _chunk(self, delta: Mapping[str, Any], reason: str | None = None, more: bytes = b"") -> bytes:
        if not self._begun:
            self._begun = True
            # Not before: only an answer that has its place knows what it leaves of the quotas.
            self.asked.headers |= limit_headers(self.asked.reservation.headers)
        choice = to_json({"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason})
        return b'%b"choices":[%b]%b%b' % (self._head, choice, more, self._tail)


class Chunks(StreamFormat):
    """Server-sent events with a chunk each, and ``[DONE]``."""

    media_type = "text/event-stream"
    parameters = "; charset=utf-8"
    documentation: ClassVar = {"schema": {"type": "string"}}
    negotiated = False

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self.writer = partial(ChunkWriter, wish)

    async def finished(self, asked: ActiveRequest, response: ChatResponse) -> ChatResponse:
        """See :meth:`AnswerFormat.finished`; keeps what the client does not know of."""
        return await keep_calls(asked.service.store, response, self._wish.theirs) if self._wish.theirs else response

    def refused(self, asked: ActiveRequest, error: ToolchatError) -> Response:
        """See :meth:`AnswerFormat.refused`."""
        asked.record_error(error)
        return error_response(error, asked.request_id)
