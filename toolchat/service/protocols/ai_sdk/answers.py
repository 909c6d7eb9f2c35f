"""Answers as the AI SDK's UI message stream, and errors as plain text."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from fastapi import Response

from toolchat.chat.request import Notice
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse
from toolchat.service.api.problems import error_headers
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.protocols.answers import Outcome
from toolchat.service.protocols.pages import PageStream, PageWriter
from toolchat.service.protocols.wire import ToolDescription
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments
from toolchat.tool_calling.results import json_or_text

_DONE = b"data: [DONE]\n\n"
_REASONS = {"length": "length", "content_filter": "content-filter", "incomplete": "other"}
"""Why an answer was cut, in the SDK's terms."""


class PartWriter(PageWriter):
    """Writes each event as a part of the message."""

    _part_number = 0

    def begin_answer(self) -> bytes:
        return self.write("start")

    def begin_step(self) -> bytes:
        return self.write("start-step")

    def end_step(self) -> bytes:
        return self.write("finish-step")

    def begin_part(self, kind: str) -> bytes:
        self._part_number += 1
        return self.write(f"{kind}-start", id=str(self._part_number))

    def write_piece(self, kind: str, text: str) -> bytes:
        return self.write(f"{kind}-delta", id=str(self._part_number), delta=text)

    def end_part(self, kind: str) -> bytes:
        return self.write(f"{kind}-end", id=str(self._part_number))

    def write_call(self, call: ToolCall) -> bytes:
        # Dynamic, because the page does not know the service's tools; the provider's, so that it does not run them.
        is_own = call.name in self.context.client_tools
        of_service = {} if is_own else {"dynamic": True, "providerExecuted": True}
        fields = {"toolName": call.name, "input": parse_arguments(call), **of_service}
        return self.write("tool-input-available", toolCallId=call.id, **fields)

    def write_result(self, event: ToolCallFinished) -> bytes:
        return self.write(**_outcome(event), toolCallId=event.call.id)

    def write_notice(self, notice: Notice) -> bytes:
        # Transient: the page must not send it back with every later request.
        return self.write(f"data-{notice.name}", data=notice.data, transient=True)

    def write_end(self, outcome: Outcome, calls: Sequence[ToolCall]) -> bytes:
        pending = self.active.confirmation
        asked = [self._request(pending["id"], call.id) for call in calls] if pending else []
        reason = _REASONS.get(outcome.cut) or ("tool-calls" if calls else "stop")
        return b"".join((*asked, self.finish_step(), self.write("finish", finishReason=reason), _DONE))

    def on_error(self, error: ToolchatError) -> bytes:
        return self.close_part() + self.write("error", errorText=error.detail) + _DONE

    def _request(self, pending: str, call: str) -> bytes:
        """Request an approval; each has an id of its own, because pages decide about calls one by one."""
        return self.write("tool-approval-request", approvalId=f"{pending}/{call}", toolCallId=call)


class MessageStream(PageStream):
    """Server-sent events with one part each, ended by ``[DONE]``."""

    def __init__(self, known: Iterable[str], client_tools: Sequence[ToolDescription], *, in_session: bool) -> None:
        super().__init__(client_tools, in_session=in_session)
        self.writer = partial(PartWriter, self.context, known)

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        return super().headers(active, response) | {"x-vercel-ai-ui-message-stream": "v1"}


def error_response(error: ToolchatError, request_id: str) -> Response:  # noqa: ARG001
    """Answer with the error's message, which ``useChat`` shows unchanged."""
    return Response(error.detail, error.status, error_headers(error), "text/plain")


def _outcome(event: ToolCallFinished) -> dict[str, Any]:
    if event.error_kind == "rejected":
        return {"kind": "tool-output-denied"}
    result = json_or_text(event.result) if event.result.startswith(("{", "[")) else event.result
    if event.outcome == "ok":
        return {"kind": "tool-output-available", "output": result}
    error = result.get("error") if isinstance(result, dict) else None
    text = error.get("message") if isinstance(error, dict) else None
    return {"kind": "tool-output-error", "errorText": text if isinstance(text, str) else event.result}
