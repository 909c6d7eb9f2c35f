"""An answer as the AI SDK's stream of parts."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from fastapi import Response
from pydantic_core import from_json, to_json

from app.api.responses.active_request import ActiveRequest
from app.api.responses.formats import StreamFormat, StreamWriter
from app.protocols.ai_sdk.errors import error_response
from app.protocols.ai_sdk.requests import approval_requests
from toolchat.chat.request import ChatEvent, Notice
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted, parse_arguments

__all__ = ["MessageStream"]

_DONE = b"data: [DONE]\n\n"
_REASONS = {"length": "length", "content_filter": "content-filter", "approval_required": "tool-calls"}
"""Why an answer ended, in the SDK's words; every other reason is ``stop``."""


class PartWriter(StreamWriter):
    """Writes text and reasoning as they come, and each call with what became of it; a step for each of their rounds.

    Args:
        resumed: the calls with which the answer goes on: the page has them already.
        in_session: whether the page has named the conversation.
        asked: the question.
    """

    def __init__(self, resumed: frozenset[str], in_session: bool, asked: ActiveRequest) -> None:
        super().__init__(asked)
        self._known = set(resumed)
        self._begun = self._in_step = self._has_text = False
        self._answered = 0
        """The round of the step's calls, once one of them has ended."""
        self._open = ""
        """``text`` or ``reasoning``, while a part of it is open."""
        self._number = 0
        asked.headers["x-vercel-ai-ui-message-stream"] = "v1"
        if not in_session:
            asked.headers.pop("X-Session-ID", None)

    def event(self, event: ChatEvent) -> bytes:
        """See :meth:`StreamWriter.event`."""
        if isinstance(event, TextDelta):
            return self._delta("text", event.text)
        if isinstance(event, Progress):
            return self._delta("reasoning", event.reasoning)
        if isinstance(event, ToolCallStarted):
            return self._called(event)
        if isinstance(event, ToolCallFinished):
            return self._ended(event)
        return self._noticed(event) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        """See :meth:`StreamWriter.done`."""
        pieces = [self._waiting(self.asked.pending) if self.asked.pending else self._rest(response)]
        pieces += [self._start(), self._finish_step()]
        pieces += [_part({"type": "finish", "finishReason": _REASONS.get(response.finish_reason, "stop")}), _DONE]
        return b"".join(pieces)

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`."""
        return self._close() + _part({"type": "error", "errorText": error.detail}) + _DONE

    def _called(self, event: ToolCallStarted) -> bytes:
        if event.call.id in self._known:
            return b""
        begin = self._step(event.round) + self._close()
        return begin + _input(event.call.id, event.call.name, parse_arguments(event.call))

    def _ended(self, event: ToolCallFinished) -> bytes:
        if event.call.id in self._known:
            self._known.remove(event.call.id)  # a later call may have the same id
        else:
            self._answered = event.round
        return self._start() + _part({**_outcome(event), "toolCallId": event.call.id})

    def _noticed(self, notice: Notice) -> bytes:
        # Transient: a page is told of it and does not send it back with every later question.
        return self._start() + _part({"type": f"data-{notice.name}", "data": notice.data, "transient": True})

    def _waiting(self, pending: Mapping[str, Any]) -> bytes:
        inputs = (_input(call["id"], call["name"], call["arguments"]) for call in pending["calls"])
        return b"".join((self._step(), self._close(), *inputs, *map(_part, approval_requests(pending))))

    def _rest(self, response: ChatResponse) -> bytes:
        """Text that has not been told, of an answer that no model has written."""
        return b"" if self._has_text else self._delta("text", response.message.text)

    def _delta(self, kind: str, text: str) -> bytes:
        if not text:
            return b""
        self._has_text |= kind == "text"
        begin = self._step() + (b"" if self._open == kind else self._opened(kind))
        return begin + _part({"type": f"{kind}-delta", "id": str(self._number), "delta": text})

    def _opened(self, kind: str) -> bytes:
        closed = self._close()
        self._open, self._number = kind, self._number + 1
        return closed + _part({"type": f"{kind}-start", "id": str(self._number)})

    def _close(self) -> bytes:
        kind, self._open = self._open, ""
        return _part({"type": f"{kind}-end", "id": str(self._number)}) if kind else b""

    def _start(self) -> bytes:
        begun, self._begun = self._begun, True
        return b"" if begun else _part({"type": "start"})

    def _step(self, of_round: int = 0) -> bytes:
        """Begin a step unless one goes on: a round's calls belong together, and what comes after them does not."""
        if self._in_step and self._answered in (0, of_round):
            return b""
        begin = self._start() + self._finish_step() + _part({"type": "start-step"})
        self._in_step, self._answered = True, 0
        return begin

    def _finish_step(self) -> bytes:
        was_in_step, self._in_step = self._in_step, False
        return self._close() + (_part({"type": "finish-step"}) if was_in_step else b"")


class MessageStream(StreamFormat):
    """Server-sent events with a part each, and ``[DONE]``."""

    media_type = "text/event-stream"
    parameters = "; charset=utf-8"
    documentation: ClassVar = {"schema": {"type": "string"}}
    negotiated = False

    def __init__(self, resumed: frozenset[str] = frozenset(), *, in_session: bool = False) -> None:
        self.writer = partial(PartWriter, resumed, in_session)

    def refused(self, asked: ActiveRequest, error: ToolchatError) -> Response:
        """See :meth:`AnswerFormat.refused`."""
        asked.record_error(error)
        return error_response(error, asked.request_id)


def _part(part: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % to_json(part, inf_nan_mode="strings")


def _input(identifier: str, name: str, arguments: object) -> bytes:
    # A page is not told of tools beforehand, so theirs are dynamic; and it must neither run one nor answer for it.
    part = {"type": "tool-input-available", "toolCallId": identifier, "toolName": name, "input": arguments}
    return _part({**part, "dynamic": True, "providerExecuted": True})


def _outcome(event: ToolCallFinished) -> dict[str, Any]:
    if event.error_kind == "rejected":
        return {"type": "tool-output-denied"}
    result = _value(event.result)
    if event.outcome == "ok":
        return {"type": "tool-output-available", "output": result}
    error = result.get("error") if isinstance(result, dict) else None
    text = error.get("message") if isinstance(error, dict) else None
    return {"type": "tool-output-error", "errorText": text if isinstance(text, str) else event.result}


def _value(text: str) -> Any:
    """A result as the object or the list that it is; any other text as itself."""
    try:
        return from_json(text, allow_inf_nan=False) if text[:1] in ("{", "[") else text
    except ValueError:
        return text
