"""Answers as OpenAI's Responses: a document, or a stream of semantic events."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.service.api.dependencies import scoped_key
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter, frame_of
from toolchat.service.api.responses.formats import BufferedFormat
from toolchat.service.protocols.answers import Outcome, ResponseContext, new_identifier
from toolchat.service.protocols.openai.answers import OpenAIFormat, usage_document
from toolchat.service.protocols.openai.errors import error_document
from toolchat.service.protocols.openai.responses.requests import Item, ResponsesRequest
from toolchat.service.protocols.openai.responses.store import ResponseStore
from toolchat.service.protocols.partial_turns import save_turn
from toolchat.service.protocols.wire import CHOICES, SERVER_LABEL
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted, parse_arguments

Event = dict[str, Any]
"""An event of a stream without its sequence number."""
_CLIENT_CALLS = {
    "function_call": ("fc", "arguments", "function_call_arguments"),
    "custom_tool_call": ("ctc", "input", "custom_tool_call_input"),
    "local_shell_call": ("lsh", "", ""),
}
"""By type of item: the prefix of its id, the field whose text is streamed, and the name of the events for it."""


class Output:
    """The items of a response; each method adds to them, and in a stream to the events that show the change."""

    def __init__(self, identifier: str, approvals: Mapping[str, str], *, is_streamed: bool) -> None:
        self.items: list[dict[str, Any]] = []
        self.has_text = False
        self._identifier = identifier
        self._approvals = approvals
        self._is_streamed = is_streamed
        self._events: list[Event] = []
        self._message: int | None = None
        """The index of the message whose text still grows."""
        self.texts: list[str] = []
        """The pieces of that text."""
        self._running: dict[str, int] = {}
        """Indexes of items by call id."""

    def take_events(self) -> list[Event]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    def text(self, text: str) -> None:
        """Add text to the open message, or to a new one."""
        if (index := self._message) is None:
            item = {"type": "message", "status": "in_progress", "role": "assistant", "content": []}
            index = self._message = self._add("msg", item)
            self._emit("content_part.added", index, content_index=0, part=_part(""))
        self.texts.append(text)
        self.has_text = True
        self._emit("output_text.delta", index, content_index=0, delta=text, logprobs=[])

    def close_message(self, status: str = "completed") -> None:
        """Complete the open message, if there is one."""
        if (index := self._message) is None:
            return
        text = "".join(self.texts)
        self._message, self.texts = None, []
        self._emit("output_text.done", index, content_index=0, text=text, logprobs=[])
        self._emit("content_part.done", index, content_index=0, part=_part(text))
        self._finish(index, status=status, content=[_part(text)])

    def start_call(self, call: ToolCall) -> None:
        """Add a call of one of the service's tools."""
        self.close_message()
        approval = {"approval_request_id": self._approvals.get(call.id)}
        item = {"type": "mcp_call", "status": "in_progress", "name": call.name, "server_label": SERVER_LABEL}
        index = self._add("mcp", {**item, "arguments": "", "output": None, "error": None, **approval})
        self._running[call.id] = index
        self._emit("mcp_call.in_progress", index)
        # Clients parse them, so what is no object is not shown.
        is_object = isinstance(parse_arguments(call), dict)
        self._write("mcp_call_arguments", index, "arguments", call.arguments if is_object else "{}")

    def finish_call(self, execution: ToolCallFinished) -> None:
        """Add the result of a call, which the model has seen as well."""
        if execution.call.id not in self._running:  # not streamed
            self.start_call(execution.call)
        index, status = self._running.pop(execution.call.id), "completed" if execution.outcome == "ok" else "failed"
        self._emit(f"mcp_call.{status}", index)
        self._finish(index, status=status, output=execution.result)

    def client_call(self, item: dict[str, Any], status: str) -> None:
        """Add a call that the client must run."""
        prefix, field, event = _CLIENT_CALLS[item["type"]]
        index = self._add(prefix, {**item, "status": "in_progress"} | ({field: ""} if field else {}))
        if field:
            self._write(event, index, field, item[field])
        self._finish(index, status=status)

    def approval_request(self, identifier: str, name: str, arguments: str) -> None:
        """Add a request for approval; its id names the pending answer and the call."""
        item = {"type": "mcp_approval_request", "name": name, "server_label": SERVER_LABEL, "arguments": arguments}
        self._finish(self._add("mcpr", {"id": identifier, **item}))

    def _add(self, prefix: str, item: dict[str, Any]) -> int:
        index = len(self.items)
        self.items.append({"id": f"{prefix}_{self._identifier}_{index}", **item})
        self._emit_item("added", index)
        return index

    def _write(self, event: str, index: int, field: str, text: str) -> None:
        """Add a field that models write piece by piece, here in one piece."""
        self.items[index][field] = text
        self._emit(f"{event}.delta", index, delta=text)
        self._emit(f"{event}.done", index, **{field: text})

    def _finish(self, index: int, **fields: Any) -> None:
        self.items[index] |= fields
        self._emit_item("done", index)

    def _emit_item(self, kind: str, index: int) -> None:
        if self._is_streamed:
            # A copy: the item changes before the event is written.
            item = self.items[index].copy()
            self._events.append({"type": f"response.output_item.{kind}", "output_index": index, "item": item})

    def _emit(self, kind: str, index: int, **fields: Any) -> None:
        if self._is_streamed:
            place = {"output_index": index, "item_id": self.items[index]["id"]}
            self._events.append({"type": f"response.{kind}", **place, **fields})


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class ResponsesAnswer(OpenAIFormat):
    """The answer to one request, while it grows; its two formats differ in when they send it."""

    def __init__(
        self,
        sent: ResponsesRequest,
        items: Sequence[Item],
        previous: str,
        store: ResponseStore,
        approvals: Mapping[str, str],
        background: str = "",
    ) -> None:
        self._client_tools = sent.client_tools if sent.tools else {}
        client_tools = frozenset(self._client_tools)
        identifier = background or new_identifier()
        context = ResponseContext(sent.model, client_tools, in_session=bool(sent.conversation), identifier=identifier)
        super().__init__(context)
        self.output = Output(identifier, approvals, is_streamed=bool(sent.stream))
        self.status = "in_progress"
        self.body = b""
        """The complete response as JSON."""
        self._items, self._previous, self._store = items, previous, store
        self._is_stored = sent.store is not False
        self._session = scoped_key(sent.conversation) if sent.conversation else ""
        self._service_tools = sent.service_tools
        self._echo = _echo(sent) | {"background": bool(background or sent.background), "store": self._is_stored}

    async def finish(self, active: ActiveRequest, response: ChatResponse) -> ChatResponse:
        """Complete the output, and store the response unless the client forbids it."""
        if names := self.context.client_tools:
            # Not a stored response, so `store` does not forbid it: what ran in the service, until the results arrive.
            identifier = self.context.identifier if self._is_stored else ""
            response = await save_turn(active.service.store, response, names, identifier)
        outcome = self._complete(active, response)
        self.status = "incomplete" if outcome.cut else "completed"
        reason = "content_filter" if outcome.cut == "content_filter" else "max_output_tokens"
        details = {"reason": reason} if outcome.cut else None
        self.body = self.document(incomplete_details=details, usage=usage_document(outcome.usage, "input", "output"))
        if self._is_stored:
            identifier, session = f"resp_{self.context.identifier}", self._session
            await self._store.save(identifier, self.body, self._items, self._previous, session)
        return response

    def _complete(self, active: ActiveRequest, response: ChatResponse) -> Outcome:
        output = self.output
        for each in () if output.items else response.executions:  # not streamed
            output.finish_call(each)
        outcome = self.context.outcome(active, response, has_text=output.has_text)
        text, status = outcome.text, "incomplete" if outcome.cut else "completed"
        if self._service_tools and active.confirmation:  # the items below request the approval
            text = text.removesuffix(active.notice).removesuffix("\n\n")
        if text:
            output.text(text)
        output.close_message(status)
        for call in outcome.calls:
            output.client_call(self._client_tools[call.name].item(call), status)
        if self._service_tools and (asked := active.confirmation):
            for pending in asked["calls"]:
                identifier = f"mcpr_{asked['id']}/{pending['id']}"
                output.approval_request(identifier, pending["name"], to_json(pending["arguments"]).decode())
        return outcome

    def document(self, **changed: Any) -> bytes:
        """The response so far as JSON."""
        context = self.context
        own = {
            "id": f"resp_{context.identifier}",
            "object": "response",
            "created_at": context.created,
            "status": self.status,
            "error": None,
            "incomplete_details": None,
            "model": context.model,
            "output": self.output.items,
            "usage": None,
        }
        return to_json(own | self._echo | changed, inf_nan_mode="strings")


def _echo(sent: ResponsesRequest) -> dict[str, Any]:
    """The fields of a request that its response repeats."""
    form, choice = sent.text.format if sent.text else None, sent.tool_choice or "auto"
    return {
        "conversation": {"id": sent.conversation} if sent.conversation else None,
        "instructions": sent.instructions,
        "max_output_tokens": sent.max_output_tokens,
        "max_tool_calls": sent.max_tool_calls,
        "metadata": sent.metadata or {},
        "parallel_tool_calls": sent.parallel_tool_calls is not False,
        "previous_response_id": sent.previous_response_id,
        "reasoning": {"effort": sent.reasoning.effort if sent.reasoning else None, "summary": None},
        "temperature": sent.temperature,
        "text": {"format": form.model_dump(by_alias=True, exclude_none=True) if form else {"type": "text"}},
        "tool_choice": choice if choice in CHOICES else {"type": "function", "name": choice},
        "tools": [each.model_dump(exclude_unset=True) for each in sent.tools or ()],
        "top_p": sent.top_p,
        "truncation": "disabled",
    }


class ResponseDocument(ResponsesAnswer, BufferedFormat):
    """A response: the calls of the service's tools, the text, the calls that the client must run, and the usage."""

    media_type = "application/json"

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:  # noqa: ARG002
        return self.body


class ResponseEvents(ResponsesAnswer, StreamFormat):
    """Server-sent events with one change of the response each."""

    def writer(self, active: ActiveRequest) -> StreamWriter:
        """See :attr:`StreamFormat.writer`."""
        return ResponsesEventWriter(self, active)


_CODES = ("rate_limit_exceeded", "context_length_exceeded")
"""Codes of a failed response that clients act on; Codex ends its attempts at ``invalid_prompt``."""


class ResponsesEventWriter(StreamWriter):
    """Writes the response's begin, each change of its output as it happens, and the complete response."""

    def __init__(self, answer: ResponsesAnswer, active: ActiveRequest) -> None:
        super().__init__(active)
        self._answer = answer
        self._output = answer.output
        self._number = 0
        """The sequence number of the next event."""
        self._frame: tuple[bytes, bytes] | None = None
        """The bytes around the text of an event that adds to the open message, up to its sequence number."""

    def begin(self) -> bytes:
        document = self._answer.document(output=[], status="in_progress")
        return self._response("created", document) + self._response("in_progress", document)

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._text(event.text) if event.text else b""
        self._frame = None
        if isinstance(event, ToolCallStarted):
            self._output.start_call(event.call)
        elif isinstance(event, ToolCallFinished):
            self._output.finish_call(event)
        return self._changes()

    def _text(self, text: str) -> bytes:
        """The event for a piece of the text; only the text and the number of most differ from the one before."""
        if self._frame:
            self._output.texts.append(text)
            number, self._number = self._number, self._number + 1
            return b"%b%b%b%d}\n\n" % (self._frame[0], to_json(text), self._frame[1], number)
        self._output.text(text)
        events = self._output.take_events()
        encoded = b"".join(map(self._encoded, events))
        before, after = frame_of(lambda text: _written(events[-1] | {"delta": text}))
        self._frame = before, after[: after.rindex(b":") + 1]
        return encoded

    def done(self, response: ChatResponse) -> bytes:  # noqa: ARG002
        return self._changes() + self._response(self._answer.status, self._answer.body)

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; clients read either of the two events."""
        fault = error_document(error)["error"]
        code = fault["code"] if fault["code"] in _CODES else "server_error" if error.status >= 500 else "invalid_prompt"
        self._output.close_message("incomplete")
        changes = self._changes() + self._encoded({**fault, "type": "error"})
        self._answer.status = "failed"
        document = self._answer.document(error={"code": code, "message": fault["message"]})
        return changes + self._response("failed", document)

    def _changes(self) -> bytes:
        return b"".join(map(self._encoded, self._output.take_events()))

    def _response(self, kind: str, document: bytes) -> bytes:
        number, self._number = self._number, self._number + 1
        name = f"response.{kind}".encode()
        return b'event: %b\ndata: {"type":"%b","sequence_number":%d,"response":%b}\n\n' % (name, name, number, document)

    def _encoded(self, event: Event) -> bytes:
        event["sequence_number"], self._number = self._number, self._number + 1
        return _written(event)


def _written(event: Event) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), to_json(event))
