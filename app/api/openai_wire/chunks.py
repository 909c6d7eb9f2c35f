"""An answer as OpenAI's stream of chunks."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from fastapi import Response
from pydantic_core import to_json

from app.api.answering.asked import Asked
from app.api.answering.format import StreamFormat, StreamWriter
from app.api.openai_wire.errors import error_document, error_response
from app.api.openai_wire.kept_calls import keep_calls
from app.api.openai_wire.limits import limit_headers
from app.api.openai_wire.progress import ToolStatus
from app.api.openai_wire.wish import Wish, call_documents, consent_link, finish_reason, note_headers, usage_document
from app.chat.request import ChatEvent
from app.chat_models.base import ChatResponse, Progress, TextDelta
from app.errors import ToolchatError

__all__ = ["Chunks"]

_DONE = b"data: [DONE]\n\n"


class ChunkWriter(StreamWriter):
    """Writes text as it comes, then the calls that the client must run, the reason for the end, and the tokens."""

    def __init__(self, wish: Wish, asked: Asked) -> None:
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

    def failed(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.failed`; no ``[DONE]`` follows, for the answer is not whole."""
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
            self.asked.headers |= limit_headers(self.asked.spending.headers)
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

    async def finished(self, asked: Asked, response: ChatResponse) -> ChatResponse:
        """See :meth:`AnswerFormat.finished`; keeps what the client does not know of."""
        return await keep_calls(asked.service.store, response, self._wish.theirs) if self._wish.theirs else response

    def refused(self, asked: Asked, error: ToolchatError) -> Response:
        """See :meth:`AnswerFormat.refused`."""
        asked.note_failure(error)
        return error_response(error, asked.request_id)
