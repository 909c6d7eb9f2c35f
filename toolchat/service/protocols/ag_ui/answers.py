"""Answers as AG-UI's events."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from toolchat.chat.request import Notice
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.protocols.ag_ui.requests import InterruptDecision
from toolchat.service.protocols.answers import Outcome, ResponseContext, new_identifier
from toolchat.service.protocols.pages import PageWriter
from toolchat.tool_calling.events import ToolCallFinished

_DECISION = InterruptDecision.model_json_schema()


class RunWriter(PageWriter):
    """Writes events; the calls of a step are parts of its message."""

    def __init__(
        self, context: ResponseContext, ids: Mapping[str, str], shown: Mapping[str, str], active: ActiveRequest
    ) -> None:
        super().__init__(context, shown, active)
        self._ids, self._shown = ids, dict(shown)
        """The ids of the run, and those under which the page knows calls, by the model's."""
        self._steps = 0
        self._message = self._part = ""
        """The ids of the message that has the step's calls, and of the open part."""

    def begin_answer(self) -> bytes:
        return self.write("RUN_STARTED", **self._ids)

    def begin_step(self) -> bytes:
        self._steps += 1
        self._message = new_identifier()
        return self.write("STEP_STARTED", stepName=f"round {self._steps}")

    def end_step(self) -> bytes:
        return self.write("STEP_FINISHED", stepName=f"round {self._steps}")

    def begin_part(self, kind: str) -> bytes:
        self._part = new_identifier()
        if kind == "text":
            self._message = self._part
            return self.write("TEXT_MESSAGE_START", messageId=self._part, role="assistant")
        span = self.write("REASONING_START", messageId=self._part)
        return span + self.write("REASONING_MESSAGE_START", messageId=self._part, role="reasoning")

    def write_piece(self, kind: str, text: str) -> bytes:
        return self.write(f"{kind.upper()}_MESSAGE_CONTENT", messageId=self._part, delta=text)

    def end_part(self, kind: str) -> bytes:
        ended = self.write(f"{kind.upper()}_MESSAGE_END", messageId=self._part)
        return ended if kind == "text" else ended + self.write("REASONING_END", messageId=self._part)

    def write_call(self, call: ToolCall) -> bytes:
        shown = self._shown[call.id] = f"{self._message}:{call.id}"
        write = partial(self.write, toolCallId=shown)
        start = write("TOOL_CALL_START", toolCallName=call.name, parentMessageId=self._message)
        return start + write("TOOL_CALL_ARGS", delta=call.arguments or "{}") + write("TOOL_CALL_END")

    def write_result(self, event: ToolCallFinished) -> bytes:
        ids = {"messageId": new_identifier(), "toolCallId": self._shown.pop(event.call.id)}
        return self.write("TOOL_CALL_RESULT", **ids, content=event.result, role="tool")

    def write_notice(self, notice: Notice) -> bytes:
        return self.write("CUSTOM", name=notice.name, value=notice.data)

    def write_end(self, outcome: Outcome, calls: Sequence[ToolCall]) -> bytes:
        # Without the ids of the page's calls, which the page has seen: versions before 1.0 fail on fields of 1.0.
        pending = self.active.confirmation
        end = self._interrupts(pending, calls) if pending else {"type": "success"}
        result = {"result": {"finishReason": outcome.cut}} if outcome.cut else {}
        return self.finish_step() + self.write("RUN_FINISHED", **self._ids, outcome=end, **result)

    def on_error(self, error: ToolchatError) -> bytes:
        return self.write("RUN_ERROR", message=error.detail, code=error.code)

    def _interrupts(self, pending: Mapping[str, Any], calls: Sequence[ToolCall]) -> dict[str, Any]:
        expires = (datetime.now(UTC) + timedelta(seconds=pending["expires_in"])).isoformat()
        interrupts = [
            {
                "id": f"{pending['id']}/{self._shown[call.id]}",
                "reason": "tool_call",
                "message": f"Approve the call of {call.name}?",
                "toolCallId": self._shown[call.id],
                "responseSchema": _DECISION,
                "expiresAt": expires,
            }
            for call in calls
        ]
        return {"type": "interrupt", "interrupts": interrupts}
