"""Answers as AG-UI's events."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent, Notice
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamWriter
from toolchat.service.protocols.ag_ui.requests import Decision
from toolchat.service.protocols.answers import ResponseContext, new_identifier
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted

_DECISION = Decision.model_json_schema()


class RunWriter(StreamWriter):
    """Writes text and reasoning as they arrive, and every call with its result, as parts of the round's message."""

    def __init__(
        self, context: ResponseContext, ids: Mapping[str, str], shown: Mapping[str, str], active: ActiveRequest
    ) -> None:
        super().__init__(active)
        self._context, self._ids = context, ids
        self._shown = dict(shown)
        """The page's ids of the calls that it knows, by the model's."""
        self._has_started = self._has_text = False
        self._open = self._part = ""
        """What is open, ``TEXT`` or ``REASONING``, and its id."""
        self._message, self._round = new_identifier(), 0
        """The message that has the calls of a round; the round is 0 before them."""

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._delta("TEXT", event.text)
        if isinstance(event, Progress):
            return self._delta("REASONING", event.reasoning)
        if isinstance(event, ToolCallStarted):
            return b"" if event.call.id in self._shown else self._call(event.call, event.round)
        if isinstance(event, ToolCallFinished):
            return self._on_call_finished(event)
        return self._event("CUSTOM", name=event.name, value=event.data) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        outcome = self._context.outcome(self.active, response, has_text=self._has_text)
        pending = self.active.pending
        waiting = [call["id"] for call in pending["calls"]] if pending else []
        calls = [call for call in response.message.tool_calls if call.id in waiting] or outcome.calls
        # The page asks the user about the interrupts, so the notice for people is left out.
        pieces = [b"" if pending else self._delta("TEXT", outcome.text), self._close()]
        pieces += [self._call(call, response.rounds) for call in calls]
        # Without the ids of the page's calls, which the page has seen: versions before 1.0 fail on fields of 1.0.
        end = self._interrupts(pending, calls) if pending else {"type": "success"}
        result = {"result": {"finishReason": outcome.cut}} if outcome.cut else {}
        return b"".join((*pieces, self._event("RUN_FINISHED", **self._ids, outcome=end, **result)))

    def on_error(self, error: ToolchatError) -> bytes:
        return self._event("RUN_ERROR", message=error.detail, code=error.code)

    def _call(self, call: ToolCall, of_round: int) -> bytes:
        closed = self._close()
        if self._round not in (0, of_round):
            self._message = new_identifier()
        self._round = of_round
        shown = self._shown[call.id] = f"{self._message}:{call.id}"
        write = partial(self._event, toolCallId=shown)
        start = write("TOOL_CALL_START", toolCallName=call.name, parentMessageId=self._message)
        return closed + start + write("TOOL_CALL_ARGS", delta=call.arguments or "{}") + write("TOOL_CALL_END")

    def _on_call_finished(self, event: ToolCallFinished) -> bytes:
        shown = self._shown.pop(event.call.id)  # a later call may have the same id
        ids = {"messageId": new_identifier(), "toolCallId": shown}
        return self._event("TOOL_CALL_RESULT", **ids, content=event.result, role="tool")

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

    def _delta(self, kind: str, text: str) -> bytes:
        if not text:
            return b""
        self._has_text |= kind == "TEXT"
        begin = b"" if self._open == kind else self._open_part(kind)
        return begin + self._event(f"{kind}_MESSAGE_CONTENT", messageId=self._part, delta=text)

    def _open_part(self, kind: str) -> bytes:
        closed, identifier = self._close(), new_identifier()
        self._open, self._part = kind, identifier
        if kind == "REASONING":
            span = self._event("REASONING_START", messageId=identifier)
            return closed + span + self._event("REASONING_MESSAGE_START", messageId=identifier, role="reasoning")
        self._message, self._round = identifier, 0
        before = b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"%b","delta":' % identifier.encode()
        self.text_frame = before, b"}\n\n"
        return closed + self._event("TEXT_MESSAGE_START", messageId=identifier, role="assistant")

    def _close(self) -> bytes:
        kind, self._open, self.text_frame = self._open, "", None
        ends = {"TEXT": ["TEXT_MESSAGE_END"], "REASONING": ["REASONING_MESSAGE_END", "REASONING_END"]}
        return b"".join(self._event(end, messageId=self._part) for end in ends.get(kind, ()))

    def _start(self) -> bytes:
        has_started, self._has_started = self._has_started, True
        return b"" if has_started else self._event("RUN_STARTED", **self._ids)

    def _event(self, kind: str, **fields: Any) -> bytes:
        return self._start() + b"data: %b\n\n" % to_json({"type": kind, **fields}, inf_nan_mode="strings")
