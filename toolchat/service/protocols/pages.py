"""What the protocols of pages share: a page sends the whole conversation with every request, and may run tools."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json

from toolchat.chat.request import ChatEvent, Notice
from toolchat.messages import Message, ToolCall
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter, frame_of
from toolchat.service.api.service import service_state
from toolchat.service.api.sessions import conversation_prompt
from toolchat.service.protocols.answers import Outcome, ResponseContext, SavedTurns
from toolchat.service.protocols.partial_turns import restore_turns
from toolchat.service.protocols.wire import ToolDescription, client_tools, with_client_tools
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted


class PageStream(SavedTurns, StreamFormat):
    """A stream for a page."""

    def __init__(self, client_tools: Sequence[ToolDescription], *, in_session: bool) -> None:
        self.context = ResponseContext("", frozenset([name for name, _, _ in client_tools]), in_session=in_session)


class PageWriter(StreamWriter):
    """Writes an answer in steps, one for each model call: text and reasoning as they arrive, and calls with results.

    Args:
        known: ids of the calls that the page has already, of a turn that is resumed; only their results are written.
    """

    def __init__(self, context: ResponseContext, known: Iterable[str], active: ActiveRequest) -> None:
        super().__init__(active)
        self.context = context
        self._known = set(known)
        self._has_started = self._in_step = self._has_text = False
        self._finished_round = 0
        """The round of the step's calls, once one of them has finished; until then 0."""
        self._open = ""
        """``text`` or ``reasoning`` while such a part is open."""

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._delta("text", event.text)
        if isinstance(event, Progress):
            return self._delta("reasoning", event.reasoning)
        if isinstance(event, ToolCallStarted):
            return b"" if event.call.id in self._known else self._call(event.call, event.round)
        if isinstance(event, ToolCallFinished):
            return self._on_call_finished(event)
        return self.write_notice(event) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        outcome = self.context.outcome(self.active, response, has_text=self._has_text)
        pending = self.active.confirmation
        # The page itself asks the user about the calls, so the notice for people is left out.
        said = b"" if pending else self._delta("text", outcome.text)
        waiting = [call["id"] for call in pending["calls"]] if pending else []
        calls = [call for call in response.message.tool_calls if call.id in waiting] or outcome.calls
        asked = [self._call(call, response.rounds) for call in calls]
        return b"".join((said, *asked, self.write_end(outcome, calls)))

    def _on_call_finished(self, event: ToolCallFinished) -> bytes:
        if event.call.id in self._known:
            self._known.remove(event.call.id)  # a later call may have the same id
        else:
            self._finished_round = event.round
            self.text_frame = None  # text after it belongs to the next step
        return self.write_result(event)

    def _call(self, call: ToolCall, of_round: int) -> bytes:
        return self._step(of_round) + self.close_part() + self.write_call(call)

    def _delta(self, kind: str, text: str) -> bytes:
        if not text:
            return b""
        self._has_text |= kind == "text"
        begin = self._step()
        if self._open != kind:
            begin += self.close_part() + self.begin_part(kind)
            self._open = kind
            if kind == "text":
                self.text_frame = frame_of(lambda text: self.write_piece("text", text))
        return begin + self.write_piece(kind, text)

    def close_part(self) -> bytes:
        """End the text or the reasoning that is open."""
        kind, self._open, self.text_frame = self._open, "", None
        return self.end_part(kind) if kind else b""

    def _step(self, of_round: int = 0) -> bytes:
        """Start a step, unless the open one still accepts the event: calls of one round share a step."""
        if self._in_step and self._finished_round in (0, of_round):
            return b""
        begin = self.finish_step() + self.begin_step()
        self._in_step, self._finished_round = True, 0
        return begin

    def finish_step(self) -> bytes:
        """End the step that is open."""
        was_in_step, self._in_step = self._in_step, False
        return self.close_part() + (self.end_step() if was_in_step else b"")

    def write(self, kind: str, **fields: Any) -> bytes:
        """An event as JSON, behind the one that begins every answer."""
        has_started, self._has_started = self._has_started, True
        begin = b"" if has_started else self.begin_answer()
        return begin + b"data: %b\n\n" % to_json({"type": kind, **fields}, inf_nan_mode="strings")

    @abstractmethod
    def begin_answer(self) -> bytes:
        """The first event."""

    @abstractmethod
    def begin_step(self) -> bytes:
        """The begin of a step."""

    @abstractmethod
    def end_step(self) -> bytes:
        """The end of a step."""

    @abstractmethod
    def begin_part(self, kind: str) -> bytes:
        """The begin of a part, ``text`` or ``reasoning``."""

    @abstractmethod
    def write_piece(self, kind: str, text: str) -> bytes:
        """A piece of the open part."""

    @abstractmethod
    def end_part(self, kind: str) -> bytes:
        """The end of a part."""

    @abstractmethod
    def write_call(self, call: ToolCall) -> bytes:
        """A call of the service's or the page's tool."""

    @abstractmethod
    def write_result(self, event: ToolCallFinished) -> bytes:
        """The result of a call."""

    @abstractmethod
    def write_notice(self, notice: Notice) -> bytes:
        """A notice of an advisor."""

    @abstractmethod
    def write_end(self, outcome: Outcome, calls: Sequence[ToolCall]) -> bytes:
        """The end of the answer, with the calls that wait for the page."""


async def answer_page(
    request: Request,
    messages: tuple[Message, ...],
    own: Sequence[ToolDescription],
    conversation_id: str,
    stream: StreamFormat,
) -> Response:
    """Answer a page's messages, with the tools of every conversation and those that the page runs."""
    service = service_state(request)
    messages = await restore_turns(service.store, messages)
    tools, advisors = service.tools.for_conversation(None)
    tools = with_client_tools(tools, client_tools(own))
    prompt = conversation_prompt(service, messages, conversation_id, tools=tools, advisors=advisors)
    return await answer_prompt(request, prompt, stream)
