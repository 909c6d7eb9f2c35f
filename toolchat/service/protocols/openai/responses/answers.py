"""Answers as OpenAI's Responses: a document, or a stream of semantic events."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.messages import ToolCall, Usage
from toolchat.models.base import CUT, ChatResponse, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import StreamFormat, StreamWriter
from toolchat.service.api.responses.formats import BufferedFormat
from toolchat.service.protocols.openai.answers import OpenAIFormat, ResponseContext, new_identifier
from toolchat.service.protocols.openai.errors import error_document
from toolchat.service.protocols.openai.partial_turns import save_turn
from toolchat.service.protocols.openai.responses.requests import Item, ResponsesRequest
from toolchat.service.protocols.openai.responses.store import ResponseStore
from toolchat.service.protocols.openai.responses.tools import SERVER_LABEL
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted, parse_arguments

Event = dict[str, Any]
"""An event of a stream without its sequence number."""
_NO_FIELDS: Mapping[str, Any] = {}
_CLIENT_CALLS = {
    "function_call": ("fc", "arguments", "function_call_arguments"),
    "custom_tool_call": ("ctc", "input", "custom_tool_call_input"),
    "local_shell_call": ("lsh", "", ""),
}
"""By type of item: the prefix of its id, the field whose text is streamed, and the name of the events for it."""


class Output:
    """The items of a response; each method adds to them, and for a stream the events that show the change.

    Args:
        identifier: the part that the ids of the response and of its items share.
        approvals: by call id, the request for approval that a call of a resumed answer had.
        streamed: whether events are needed.
    """

    def __init__(self, identifier: str, approvals: Mapping[str, str], *, streamed: bool) -> None:
        self.items: list[dict[str, Any]] = []
        self.message: int | None = None
        """The index of the message whose text still grows."""
        self.has_text = False
        self._identifier = identifier
        self._approvals = approvals
        self._streamed = streamed
        self._events: list[Event] = []
        self._texts: list[str] = []
        self._running: dict[str, int] = {}
        """Indexes of items by call id."""

    def take_events(self) -> list[Event]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    def text(self, text: str) -> None:
        """Add text to the open message, or to a new one."""
        if self.message is None:
            item = {"type": "message", "status": "in_progress", "role": "assistant", "content": []}
            self.message = self._add("msg", item)
            self._emit_item("added", self.message)
            if self._streamed:
                self._emit("content_part.added", self.message, {"content_index": 0, "part": _part("")})
        self.append(text)
        if self._streamed:
            self._emit("output_text.delta", self.message, {"content_index": 0, "delta": text, "logprobs": []})

    def append(self, text: str) -> None:
        """Add text to the open message, for a caller that writes the event itself."""
        self._texts.append(text)
        self.has_text = True

    def close_message(self, status: str = "completed") -> None:
        """Complete the open message, if there is one."""
        if (index := self.message) is None:
            return
        text = "".join(self._texts)
        part = _part(text)
        self.items[index] |= {"status": status, "content": [part]}
        if self._streamed:
            self._emit("output_text.done", index, {"content_index": 0, "text": text, "logprobs": []})
            self._emit("content_part.done", index, {"content_index": 0, "part": part})
            self._emit_item("done", index)
        self.message, self._texts = None, []

    def start_call(self, call: ToolCall) -> None:
        """Add a call of one of the service's tools."""
        self.close_message()
        index = self._running[call.id] = self._add("mcp", self._call_item(call))
        self._emit_item("added", index)
        self._emit("mcp_call.in_progress", index)
        arguments = self.items[index]["arguments"] = _object(call)
        self._emit_text("mcp_call_arguments", index, "arguments", arguments)

    def finish_call(self, execution: ToolCallFinished) -> None:
        """Add the result of a call, which the model has seen as well."""
        call, is_ok = execution.call, execution.outcome == "ok"
        result = {"status": "completed" if is_ok else "failed", "output": execution.result}
        index = self._running.pop(call.id, None)
        if index is None:  # not streamed
            arguments = call.arguments if is_ok else _object(call)
            self._add("mcp", self._call_item(call) | result | {"arguments": arguments})
            return
        self.items[index] |= result
        self._emit(f"mcp_call.{result['status']}", index)
        self._emit_item("done", index)

    def client_call(self, item: dict[str, Any], status: str) -> None:
        """Add a call that the client must run."""
        prefix, written, event = _CLIENT_CALLS[item["type"]]
        begin = {**item, "status": "in_progress"} | ({written: ""} if written else {})
        index = self._add(prefix, begin)
        self._emit_item("added", index)
        if written:
            self._emit_text(event, index, written, item[written])
        self.items[index] |= {**item, "status": status}
        self._emit_item("done", index)

    def approval_request(self, identifier: str, name: str, arguments: str) -> None:
        """Add a request for approval; its id names the pending answer and the call."""
        item = {"type": "mcp_approval_request", "name": name, "server_label": SERVER_LABEL, "arguments": arguments}
        index = self._add("mcpr", item)
        self.items[index]["id"] = identifier
        self._emit_item("added", index)
        self._emit_item("done", index)

    def _call_item(self, call: ToolCall) -> dict[str, Any]:
        item = {"type": "mcp_call", "status": "in_progress", "name": call.name, "server_label": SERVER_LABEL}
        approval = self._approvals.get(call.id)
        return item | {"arguments": "", "output": None, "error": None, "approval_request_id": approval}

    def _add(self, prefix: str, item: dict[str, Any]) -> int:
        index = len(self.items)
        item["id"] = f"{prefix}_{self._identifier}_{index}"
        self.items.append(item)
        return index

    def _emit_text(self, kind: str, index: int, field: str, text: str) -> None:
        self._emit(f"{kind}.delta", index, {"delta": text})
        self._emit(f"{kind}.done", index, {field: text})

    def _emit_item(self, kind: str, index: int) -> None:
        if self._streamed:
            # A copy: the item changes before the event is written.
            item = self.items[index].copy()
            self._events.append({"type": f"response.output_item.{kind}", "output_index": index, "item": item})

    def _emit(self, kind: str, index: int, fields: Mapping[str, Any] = _NO_FIELDS) -> None:
        if self._streamed:
            place = {"output_index": index, "item_id": self.items[index]["id"]}
            self._events.append({"type": f"response.{kind}", **place, **fields})


def _object(call: ToolCall) -> str:
    """The arguments of a call, if they are an object: clients parse them."""
    return call.arguments if isinstance(parse_arguments(call), dict) else "{}"


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter", "incomplete": "max_output_tokens"}


class Answer(OpenAIFormat):
    """The answer to one request, while it grows; its two formats differ in when they send it.

    Args:
        previous: the id of the response that it continues.
        approvals: by call id, the ids of the requests for approval that a resumed answer continues with.
        background: the id that the response was accepted with, if it is answered in the background.
    """

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
        self.output = Output(identifier, approvals, streamed=bool(sent.stream))
        self.status = "in_progress"
        self.body = b""
        """The complete response as JSON."""
        self._items, self._previous, self._store = items, previous, store
        self._is_stored = sent.store is not False
        self._service_tools = sent.service_tools
        self._echo = _PLAIN_ECHO if sent.model_fields_set.isdisjoint(_ECHOED) else _echo(sent)
        self._is_background = bool(background or sent.background)

    async def finish(self, active: ActiveRequest, response: ChatResponse) -> ChatResponse:
        """Complete the output, and store the response unless the client forbids it."""
        if names := self.context.client_tools:
            # Not a stored response, so `store` does not forbid it: what ran in the service, until the results arrive.
            identifier = self.context.identifier if self._is_stored else ""
            response = await save_turn(active.service.store, response, names, identifier)
        self._complete(active, response)
        reason = _INCOMPLETE.get(response.finish_reason)
        self.status = "incomplete" if reason else "completed"
        details = {"reason": reason} if reason else None
        self.body = self.document(incomplete_details=details, usage=_usage(self.context.usage_of(response)))
        if self._is_stored:
            await self._store.save(f"resp_{self.context.identifier}", self.body, self._items, self._previous)
        return response

    def _complete(self, active: ActiveRequest, response: ChatResponse) -> None:
        output = self.output
        if not output.items:  # not streamed
            for each in response.executions:
                output.finish_call(each)
        status = "incomplete" if response.finish_reason in CUT else "completed"
        if text := self._remaining_text(active, response):
            output.text(text)
        output.close_message(status)
        for call in response.message.tool_calls:
            if tool := self._client_tools.get(call.name):
                output.client_call(tool.item(call), status)
        if self._service_tools and active.pending:
            for pending in active.pending["calls"]:
                identifier = f"mcpr_{active.pending['id']}/{pending['id']}"
                output.approval_request(identifier, pending["name"], to_json(pending["arguments"]).decode())

    def _remaining_text(self, active: ActiveRequest, response: ChatResponse) -> str:
        """Text that was not streamed; the notice of an approval only if the client does not request approvals."""
        notice, text = active.notice, response.message.text
        if notice and self._service_tools:
            notice, text = "", text.removesuffix(notice).removesuffix("\n\n")
        if self.output.has_text:
            return f"\n\n{notice}" if notice else ""
        return text

    def document(self, **changed: Any) -> bytes:
        """The response so far as JSON."""
        context = self.context
        own = {
            "id": f"resp_{context.identifier}",
            "object": "response",
            "created_at": context.created,
            "status": self.status,
            "background": self._is_background,
            "error": None,
            "incomplete_details": None,
            "model": context.model,
            "output": self.output.items,
            "store": self._is_stored,
            "usage": None,
            **changed,
        }
        return b"%b,%b" % (to_json(own, inf_nan_mode="strings")[:-1], self._echo)


def _echo(sent: ResponsesRequest) -> bytes:
    """The fields of a request that its response repeats, as the end of a JSON object."""
    choice, form = sent.tool_choice or "auto", sent.text.format if sent.text else None
    fields = {
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
        "tool_choice": choice if isinstance(choice, str) else choice.model_dump(),
        "tools": [each.model_dump(exclude_unset=True) for each in sent.tools or ()],
        "top_p": sent.top_p,
        "truncation": "disabled",
    }
    return to_json(fields, inf_nan_mode="strings")[1:]


_ECHOED = frozenset(ResponsesRequest.model_fields) - {"model", "input", "store", "stream", "background"}
_PLAIN_ECHO = _echo(ResponsesRequest(model="", input=[]))
"""For the usual request, which sets none of these fields."""


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


class ResponseDocument(Answer, BufferedFormat):
    """A response: the calls of the service's tools, the text, the calls that the client must run, and the usage."""

    media_type = "application/json"

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:  # noqa: ARG002
        return self.body


class ResponseEvents(Answer, StreamFormat):
    """Server-sent events with one change of the response each."""

    def writer(self, active: ActiveRequest) -> StreamWriter:
        """See :attr:`StreamFormat.writer`."""
        return EventWriter(self, active)


_CODES = ("rate_limit_exceeded", "context_length_exceeded")
"""Codes of a failed response that clients act on; Codex ends its attempts at ``invalid_prompt``."""


class EventWriter(StreamWriter):
    """Writes the response's begin, each change of its output as it happens, and the complete response."""

    def __init__(self, answer: Answer, active: ActiveRequest) -> None:
        super().__init__(active)
        self._answer = answer
        self._output = answer.output
        self._number = 0
        """The sequence number of the next event."""
        self._delta = b""
        """The begin of the next text event, while the message stays the same."""

    def begin(self) -> bytes:
        document = self._answer.document(output=[], status="in_progress")
        return self._response("created", document) + self._response("in_progress", document)

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            return self._text(event.text)
        if isinstance(event, ToolCallStarted):
            self._output.start_call(event.call)
        elif isinstance(event, ToolCallFinished):
            self._output.finish_call(event)
        else:
            return b""
        return self._changes()

    def done(self, response: ChatResponse) -> bytes:  # noqa: ARG002
        answer = self._answer
        return self._changes() + self._response(answer.status, answer.body)

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; clients read either of the two events."""
        fault = error_document(error)["error"]
        code = fault["code"] if fault["code"] in _CODES else "server_error" if error.status >= 500 else "invalid_prompt"
        self._output.close_message("incomplete")
        changes = self._changes() + self._encoded({**fault, "type": "error"})
        self._answer.status = "failed"
        document = self._answer.document(error={"code": code, "message": fault["message"]})
        return changes + self._response("failed", document)

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        if self._output.message is None:
            self._output.text(text)
            index = len(self._output.items) - 1
            self._delta = (
                b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","output_index":%d,'
                b'"item_id":"%b","content_index":0,"logprobs":[],"sequence_number":%%d,"delta":%%b}\n\n'
            ) % (index, self._output.items[index]["id"].encode())
            return self._changes()
        # Most events are text, and differ in two values.
        self._output.append(text)
        self._number += 1
        return self._delta % (self._number - 1, to_json(text))

    def _changes(self) -> bytes:
        return b"".join(map(self._encoded, self._output.take_events()))

    def _response(self, kind: str, document: bytes) -> bytes:
        number, self._number = self._number, self._number + 1
        name = f"response.{kind}".encode()
        return b'event: %b\ndata: {"type":"%b","sequence_number":%d,"response":%b}\n\n' % (name, name, number, document)

    def _encoded(self, event: Event) -> bytes:
        event["sequence_number"], self._number = self._number, self._number + 1
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), to_json(event))
