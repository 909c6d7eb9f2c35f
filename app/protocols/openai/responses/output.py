"""The output of a response: its items, and the events of a stream in which they grow."""

from collections.abc import Mapping
from typing import Any

from app.protocols.openai.responses.requests import SERVER_LABEL
from toolchat.messages import ToolCall
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments

__all__ = ["Event", "Output"]

Event = dict[str, Any]
"""An event of a stream without its sequence number."""


class Output:
    """The items of a response; each method adds to them and returns the events that show the change.

    Args:
        identifier: the part that the ids of the response and of its items share.
        approvals: by call id, the request for approval that a call of a resumed answer had.
    """

    def __init__(self, identifier: str, approvals: Mapping[str, str]) -> None:
        self.items: list[dict[str, Any]] = []
        self.message: dict[str, Any] | None = None
        """The message whose text still grows."""
        self.has_text = False
        self._identifier = identifier
        self._approvals = approvals
        self._texts: list[str] = []
        self._running: dict[str, dict[str, Any]] = {}
        """Items by call id."""

    def text(self, text: str) -> list[Event]:
        """Add text to the open message, or to a new one."""
        events = [] if self.message is not None else self._open_message()
        self._texts.append(text)
        self.has_text = True
        return [*events, self._part_event("output_text.delta", delta=text, logprobs=[])]

    def append(self, text: str) -> None:
        """Add text to the open message, for a caller that writes the event itself."""
        self._texts.append(text)

    def close_message(self, status: str = "completed") -> list[Event]:
        """Complete the open message, if there is one."""
        if self.message is None:
            return []
        text = "".join(self._texts)
        part = _part(text)
        self.message |= {"status": status, "content": [part]}
        events = [
            self._part_event("output_text.done", text=text, logprobs=[]),
            self._part_event("content_part.done", part=part),
            self._item_event("done", self.message),
        ]
        self.message, self._texts = None, []
        return events

    def start_call(self, call: ToolCall) -> list[Event]:
        """Add a call of one of the service's tools."""
        events = self.close_message()
        arguments = call.arguments if isinstance(parse_arguments(call), dict) else "{}"
        item = self._add("mcp", type="mcp_call", status="in_progress", name=call.name, server_label=SERVER_LABEL)
        item |= {"arguments": "", "output": None, "error": None, "approval_request_id": self._approvals.get(call.id)}
        self._running[call.id] = item
        events += [self._item_event("added", item), self._call_event("mcp_call.in_progress", item)]
        return events + self._arguments("mcp_call_arguments", item, arguments)

    def finish_call(self, execution: ToolCallFinished) -> list[Event]:
        """Add the result of a call, which the model has seen as well."""
        events = [] if execution.call.id in self._running else self.start_call(execution.call)
        item = self._running.pop(execution.call.id)
        status = "completed" if execution.outcome == "ok" else "failed"
        item |= {"status": status, "output": execution.result}
        return [*events, self._call_event(f"mcp_call.{status}", item), self._item_event("done", item)]

    def function_call(self, call: ToolCall, status: str) -> list[Event]:
        """Add a call that the client must run."""
        item = self._add("fc", type="function_call", status="in_progress", call_id=call.id, name=call.name)
        item["arguments"] = ""
        added = self._item_event("added", item)
        events = self._arguments("function_call_arguments", item, call.arguments or "{}")
        item["status"] = status
        return [added, *events, self._item_event("done", item)]

    def approval_request(self, identifier: str, name: str, arguments: str) -> list[Event]:
        """Add a request for approval; its id names the pending answer and the call."""
        item = self._add("mcpr", type="mcp_approval_request", name=name, server_label=SERVER_LABEL)
        item |= {"id": identifier, "arguments": arguments}
        return [self._item_event("added", item), self._item_event("done", item)]

    def _open_message(self) -> list[Event]:
        self.message = self._add("msg", type="message", status="in_progress", role="assistant", content=[])
        return [self._item_event("added", self.message), self._part_event("content_part.added", part=_part(""))]

    def _arguments(self, kind: str, item: dict[str, Any], arguments: str) -> list[Event]:
        item["arguments"] = arguments
        return [
            {**self._call_event(f"{kind}.delta", item), "delta": arguments},
            {**self._call_event(f"{kind}.done", item), "arguments": arguments},
        ]

    def _add(self, prefix: str, **fields: Any) -> dict[str, Any]:
        item = {"id": f"{prefix}_{self._identifier}_{len(self.items)}", **fields}
        self.items.append(item)
        return item

    def _item_event(self, kind: str, item: dict[str, Any]) -> Event:
        # A copy: the item changes before the event is written.
        return {"type": f"response.output_item.{kind}", "output_index": self._index(item), "item": {**item}}

    def _call_event(self, kind: str, item: dict[str, Any]) -> Event:
        return {"type": f"response.{kind}", "output_index": self._index(item), "item_id": item["id"]}

    def _part_event(self, kind: str, **fields: Any) -> Event:
        item = self.message or {}
        return {**self._call_event(kind, item), "content_index": 0, **fields}

    def _index(self, item: dict[str, Any]) -> int:
        return next(index for index in reversed(range(len(self.items))) if self.items[index] is item)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
