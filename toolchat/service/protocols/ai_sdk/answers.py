"""Answers as the AI SDK's UI message stream, and errors as plain text."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from fastapi import Response
from pydantic_core import to_json

from toolchat.chat.request import ChatEvent, Notice
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.service.api.problems import error_headers
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamWriter
from toolchat.service.protocols.ai_sdk.requests import approval_requests
from toolchat.service.protocols.pages import PageStream
from toolchat.service.protocols.wire import ToolDescription
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted, parse_arguments
from toolchat.tool_calling.results import json_or_text

_DONE = b"data: [DONE]\n\n"
_REASONS = {
    "length": "length",
    "content_filter": "content-filter",
    "incomplete": "other",
    "approval_required": "tool-calls",
}
"""Finish reasons in the SDK's terms; all others become ``stop``."""


class PartWriter(StreamWriter):
    """Writes text and reasoning as they arrive, and every call with its result; each round of calls is a step."""

    def __init__(self, resumed: frozenset[str], client_tools: frozenset[str], active: ActiveRequest) -> None:
        super().__init__(active)
        self._known = set(resumed)
        self._client_tools = client_tools
        self._has_started = self._in_step = self._has_text = False
        self._finished_round = 0
        """The round of the step's calls, once one of them has finished; until then 0."""
        self._open = ""
        """``text`` or ``reasoning`` while such a part is open."""
        self._part_number = 0

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._delta("text", event.text)
        if isinstance(event, Progress):
            return self._delta("reasoning", event.reasoning)
        if isinstance(event, ToolCallStarted):
            return self._on_call_started(event)
        if isinstance(event, ToolCallFinished):
            return self._on_call_finished(event)
        return self._on_notice(event) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        pieces = [self._approval(self.active.pending) if self.active.pending else self._remaining_text(response)]
        calls = [call for call in response.message.tool_calls if call.name in self._client_tools]
        if calls:
            inputs = (_input(call.id, call.name, parse_arguments(call), is_of_page=True) for call in calls)
            pieces += [self._step(response.rounds), self._close_part(), *inputs]
        reason = _REASONS.get(response.finish_reason, "tool-calls" if calls else "stop")
        pieces += [self._start(), self._finish_step(), _part({"type": "finish", "finishReason": reason}), _DONE]
        return b"".join(pieces)

    def on_error(self, error: ToolchatError) -> bytes:
        return self._close_part() + _part({"type": "error", "errorText": error.detail}) + _DONE

    def _on_call_started(self, event: ToolCallStarted) -> bytes:
        # The page has shown this call already, as the one that it asked the user about.
        if event.call.id in self._known:
            return b""
        begin = self._step(event.round) + self._close_part()
        return begin + _input(event.call.id, event.call.name, parse_arguments(event.call))

    def _on_call_finished(self, event: ToolCallFinished) -> bytes:
        if event.call.id in self._known:
            self._known.remove(event.call.id)  # a later call may have the same id
        else:
            self._finished_round = event.round
            self.text_frame = None  # text after it belongs to the next step
        return self._start() + _part({**_outcome(event), "toolCallId": event.call.id})

    def _on_notice(self, notice: Notice) -> bytes:
        # Transient: the page must not send it back with every later request.
        return self._start() + _part({"type": f"data-{notice.name}", "data": notice.data, "transient": True})

    def _approval(self, pending: Mapping[str, Any]) -> bytes:
        inputs = (_input(call["id"], call["name"], call["arguments"]) for call in pending["calls"])
        return b"".join((self._step(), self._close_part(), *inputs, *map(_part, approval_requests(pending))))

    def _remaining_text(self, response: ChatResponse) -> bytes:
        """Text that was not streamed: an answer that no model wrote."""
        return b"" if self._has_text else self._delta("text", response.message.text)

    def _delta(self, kind: str, text: str) -> bytes:
        if not text:
            return b""
        self._has_text |= kind == "text"
        begin = self._step() + (b"" if self._open == kind else self._open_part(kind))
        return begin + _part({"type": f"{kind}-delta", "id": str(self._part_number), "delta": text})

    def _open_part(self, kind: str) -> bytes:
        closed = self._close_part()
        self._open, self._part_number = kind, self._part_number + 1
        if kind == "text":
            self.text_frame = b'data: {"type":"text-delta","id":"%d","delta":' % self._part_number, b"}\n\n"
        return closed + _part({"type": f"{kind}-start", "id": str(self._part_number)})

    def _close_part(self) -> bytes:
        kind, self._open, self.text_frame = self._open, "", None
        return _part({"type": f"{kind}-end", "id": str(self._part_number)}) if kind else b""

    def _start(self) -> bytes:
        has_started, self._has_started = self._has_started, True
        return b"" if has_started else _part({"type": "start"})

    def _step(self, of_round: int = 0) -> bytes:
        """Start a step, unless the open one still accepts the event: calls of one round share a step."""
        if self._in_step and self._finished_round in (0, of_round):
            return b""
        begin = self._start() + self._finish_step() + _part({"type": "start-step"})
        self._in_step, self._finished_round = True, 0
        return begin

    def _finish_step(self) -> bytes:
        was_in_step, self._in_step = self._in_step, False
        return self._close_part() + (_part({"type": "finish-step"}) if was_in_step else b"")


class MessageStream(PageStream):
    """Server-sent events with one part each, ended by ``[DONE]``."""

    documentation: ClassVar = {"schema": {"type": "string"}}

    def __init__(
        self,
        resumed: frozenset[str] = frozenset(),
        client_tools: Sequence[ToolDescription] = (),
        *,
        in_session: bool = False,
    ) -> None:
        super().__init__(client_tools, in_session=in_session)
        self.writer = partial(PartWriter, resumed, self.context.client_tools)

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        return super().headers(active, response) | {"x-vercel-ai-ui-message-stream": "v1"}


def error_response(error: ToolchatError, request_id: str) -> Response:  # noqa: ARG001
    """Answer with the error's message, which ``useChat`` shows unchanged."""
    return Response(error.detail, error.status, error_headers(error), "text/plain")


def _part(part: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % to_json(part, inf_nan_mode="strings")


def _input(identifier: str, name: str, arguments: object, *, is_of_page: bool = False) -> bytes:
    part = {"type": "tool-input-available", "toolCallId": identifier, "toolName": name, "input": arguments}
    # Dynamic, because the page does not know the tools; executed by the provider, so that the page does not run them.
    return _part(part if is_of_page else {**part, "dynamic": True, "providerExecuted": True})


def _outcome(event: ToolCallFinished) -> dict[str, Any]:
    if event.error_kind == "rejected":
        return {"type": "tool-output-denied"}
    result = json_or_text(event.result) if event.result.startswith(("{", "[")) else event.result
    if event.outcome == "ok":
        return {"type": "tool-output-available", "output": result}
    error = result.get("error") if isinstance(result, dict) else None
    text = error.get("message") if isinstance(error, dict) else None
    return {"type": "tool-output-error", "errorText": text if isinstance(text, str) else event.result}
