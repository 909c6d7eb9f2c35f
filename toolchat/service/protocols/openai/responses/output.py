"""The output of a response: its items, and the events of a stream in which they grow."""

from collections.abc import Mapping
from typing import Any

from toolchat.messages import ToolCall
from toolchat.service.protocols.openai.responses.requests import SERVER_LABEL
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments

Event = dict[str, Any]
"""An event of a stream without its sequence number."""
_NO_FIELDS: Mapping[str, Any] = {}


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
        self._emit_arguments("mcp_call_arguments", index, arguments)

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

    def function_call(self, call: ToolCall, status: str) -> None:
        """Add a call that the client must run."""
        item = {"type": "function_call", "status": "in_progress", "call_id": call.id, "name": call.name}
        index = self._add("fc", item | {"arguments": ""})
        arguments = call.arguments or "{}"
        self._emit_item("added", index)
        self._emit_arguments("function_call_arguments", index, arguments)
        self.items[index] |= {"arguments": arguments, "status": status}
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

    def _emit_arguments(self, kind: str, index: int, arguments: str) -> None:
        self._emit(f"{kind}.delta", index, {"delta": arguments})
        self._emit(f"{kind}.done", index, {"arguments": arguments})

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
