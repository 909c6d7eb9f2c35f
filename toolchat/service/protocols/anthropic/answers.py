"""Answers in Anthropic's formats: a message, or a stream of the events that build it."""

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall, Usage
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter, frame_of
from toolchat.service.api.responses.formats import BufferedFormat
from toolchat.service.protocols.answers import Outcome, ResponseContext, SavedTurns
from toolchat.service.protocols.anthropic.errors import REQUEST_ID, error_document
from toolchat.service.protocols.anthropic.requests import MessagesRequest
from toolchat.service.protocols.wire import SERVER_LABEL
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted, parse_arguments

_Fields = dict[str, Any]


class AnthropicAnswer(SavedTurns):
    """What both formats share."""

    def __init__(self, sent: MessagesRequest) -> None:
        self.names = sent.client_tools
        self.shows_thinking = sent.shows_thinking
        self.context = ResponseContext(sent.model, frozenset(self.names))

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        """See :meth:`AnswerFormat.headers`; with the request's id where clients look for it."""
        return super().headers(active, response) | {REQUEST_ID: active.request_id}

    def client_call(self, call: ToolCall) -> _Fields:
        """A call that the client must run."""
        return {"type": "tool_use", "id": call.id, "name": self.names[call.name], "input": _input(call)}

    def message(self, content: Sequence[_Fields], stop_reason: str | None, usage: Usage) -> _Fields:
        """A message; when it begins, it has nothing of the three."""
        return {
            "id": f"msg_{self.context.identifier}",
            "type": "message",
            "role": "assistant",
            "model": self.context.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": _usage(usage),
        }


class MessageDocument(AnthropicAnswer, BufferedFormat):
    """A message: the calls of the service's tools with their results, what the model says, and the client's calls."""

    media_type = "application/json"

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        outcome = self.context.outcome(active, response)
        content = [block for each in response.executions for block in (_call(each.call), _result(each))]
        content += [_said("thinking", outcome.reasoning)] if outcome.reasoning and self.shows_thinking else []
        content += [_said("text", outcome.text)] if outcome.text else []
        content += map(self.client_call, outcome.calls)
        return _json(self.message(content, _stop_reason(outcome), outcome.usage) | {**outcome.approval})


class MessageEvents(AnthropicAnswer, StreamFormat):
    """Server-sent events, each with a change of the message."""

    def writer(self, active: ActiveRequest) -> StreamWriter:
        """See :attr:`StreamFormat.writer`."""
        return AnthropicEventWriter(self, active)


class AnthropicEventWriter(StreamWriter):
    """Writes text and thinking as they arrive, the service's calls with their results, and the client's calls."""

    def __init__(self, answer: AnthropicAnswer, active: ActiveRequest) -> None:
        super().__init__(active)
        self._answer = answer
        self._blocks = 0
        self._has_started = self._has_text = False
        self._said = ""
        """``text`` or ``thinking`` while such a block is open."""

    def keep_alive(self) -> bytes:
        """See :meth:`StreamWriter.keep_alive`; clients that measure the silence know this event."""
        return self._start() + _event("ping")

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._piece("text", event.text)
        if isinstance(event, Progress):
            return self._piece("thinking", event.reasoning) if self._answer.shows_thinking else b""
        if isinstance(event, ToolCallStarted):
            return self._block(_call(event.call))
        return self._block(_result(event)) if isinstance(event, ToolCallFinished) else b""

    def done(self, response: ChatResponse) -> bytes:
        outcome = self._answer.context.outcome(self.active, response, has_text=self._has_text)
        pieces = [self._piece("text", outcome.text), *map(self._client_call, outcome.calls)]
        delta = {"stop_reason": _stop_reason(outcome), "stop_sequence": None}
        usage = _usage(outcome.usage)
        pieces += [self._start(), self._close_said()]
        pieces += [_event("message_delta", delta=delta, usage=usage, **outcome.approval), _event("message_stop")]
        return b"".join(pieces)

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; without ``message_stop``, because the message is incomplete."""
        return _event(**error_document(error, self.active.request_id))

    def _start(self) -> bytes:
        has_started, self._has_started = self._has_started, True
        return b"" if has_started else _event("message_start", message=self._answer.message([], None, Usage()))

    def _piece(self, kind: str, text: str) -> bytes:
        """A piece of what the model says, in a block of its kind."""
        if not text:
            return b""
        opened = b""
        if self._said != kind:
            opened = self._open(_said(kind, ""))
            self._said = kind
            if kind == "text":
                self._has_text = True
                self.text_frame = frame_of(lambda text: self._delta(type="text_delta", text=text))
        return opened + self._delta(**{"type": f"{kind}_delta", kind: text})

    def _client_call(self, call: ToolCall) -> bytes:
        block = self._answer.client_call(call)
        opened = self._open({**block, "input": {}})
        return opened + self._delta(type="input_json_delta", partial_json=_json(block["input"]).decode()) + self._stop()

    def _block(self, block: _Fields) -> bytes:
        """A block in one piece: clients collect the pieces of an input for tools of their own only."""
        return self._open(block) + self._stop()

    def _open(self, block: _Fields) -> bytes:
        before = self._start() + self._close_said()
        self._blocks += 1
        return before + _event("content_block_start", index=self._blocks - 1, content_block=block)

    def _delta(self, **delta: Any) -> bytes:
        return _event("content_block_delta", index=self._blocks - 1, delta=delta)

    def _close_said(self) -> bytes:
        was_open, self._said, self.text_frame = self._said, "", None
        return self._stop() if was_open else b""

    def _stop(self) -> bytes:
        return _event("content_block_stop", index=self._blocks - 1)


def _event(type: str, **fields: Any) -> bytes:  # noqa: A002 - the name of the field
    return b"event: %b\ndata: %b\n\n" % (type.encode(), _json({"type": type, **fields}))


def _json(document: object) -> bytes:
    return to_json(document, inf_nan_mode="strings")


def _said(kind: str, text: str) -> _Fields:
    """A block of text or thinking; nobody but Anthropic can sign thinking, and clients expect the field."""
    return {"type": kind, kind: text} | ({"signature": ""} if kind == "thinking" else {})


def _call(call: ToolCall) -> _Fields:
    """A call of one of the service's tools, which clients show and do not run."""
    return {
        "type": "mcp_tool_use",
        "id": call.id,
        "name": call.name,
        "server_name": SERVER_LABEL,
        "input": _input(call),
    }


def _result(execution: ToolCallFinished) -> _Fields:
    """The result of such a call, which the model has seen as well."""
    content, is_error = [_said("text", execution.result)], execution.outcome != "ok"
    return {"type": "mcp_tool_result", "tool_use_id": execution.call.id, "is_error": is_error, "content": content}


def _input(call: ToolCall) -> Any:
    arguments = parse_arguments(call)
    # Clients take nothing but an object.
    return arguments if isinstance(arguments, dict) else {}


def _stop_reason(outcome: Outcome) -> str:
    """The reason as one of Anthropic's; an approval ends the turn, since clients repeat a paused one at once."""
    return _CUT.get(outcome.cut) or ("tool_use" if outcome.calls else "end_turn")


_CUT = {"length": "max_tokens", "content_filter": "refusal", "incomplete": "max_tokens"}


def _usage(usage: Usage) -> _Fields:
    return {
        "input_tokens": max(usage.input_tokens - usage.cached_tokens, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }
