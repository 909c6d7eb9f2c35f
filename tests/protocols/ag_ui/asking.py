"""Runs in AG-UI's format, and the events of their streams."""

from typing import Any

import httpx
from pydantic_core import from_json

from tests.protocols.ai_sdk.asking import SHIP_FOLDERS, asks, says
from tests.protocols.openai.asking import call, played

__all__ = [
    "ROLL",
    "RUN",
    "SHIP_FOLDERS",
    "Page",
    "asks",
    "call",
    "events_of",
    "kinds",
    "played",
    "says",
    "sent",
    "user",
]

RUN = "/ag-ui"
ROLL = {
    "name": "roll",
    "description": "Roll a die",
    "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}},
}
"""A tool of the page."""


def user(content: Any) -> dict[str, Any]:
    return {"id": "m-1", "role": "user", "content": content}


async def sent(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    """Send messages as ``HttpAgent`` does."""
    headers = fields.pop("headers", {})
    rest = {"state": {}, "tools": [], "context": [], "forwardedProps": {}, "protocolVersion": "1.0"}
    body = {"threadId": "t-1", "runId": "r-1", "messages": messages, **rest, **fields}
    return await client.post(RUN, json=body, headers={"Accept": "text/event-stream", **headers})


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream, which begins and ends as the protocol demands."""
    assert answer.status_code == 200, answer.text
    *blocks, rest = answer.text.split("\n\n")
    events = [from_json(block.removeprefix("data: ")) for block in blocks if not block.startswith(":")]
    assert rest == ""
    assert events[0] == {"type": "RUN_STARTED", "threadId": "t-1", "runId": "r-1"}
    assert events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
    return events


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in events]


class Page:
    """A page that keeps its messages as ``HttpAgent`` does, and sends all of them with each run."""

    def __init__(self, client: httpx.AsyncClient, **fields: Any) -> None:
        self._client, self._fields = client, fields
        self.messages: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    async def run(self, *added: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Add messages, run, apply the events, and return the last one."""
        self.messages += added
        self.events = events_of(await sent(self._client, *self.messages, **self._fields, **fields))
        for event in self.events:
            self._apply(event)
        return self.events[-1]

    @property
    def interrupts(self) -> list[str]:
        return [each["id"] for each in self.events[-1]["outcome"]["interrupts"]]

    def _apply(self, event: dict[str, Any]) -> None:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            message = self._message(event["messageId"])
            message["content"] = message.get("content", "") + event["delta"]
        elif event["type"] == "TOOL_CALL_START":
            function = {"name": event["toolCallName"], "arguments": ""}
            called = {"id": event["toolCallId"], "type": "function", "function": function}
            self._message(event["parentMessageId"]).setdefault("toolCalls", []).append(called)
        elif event["type"] == "TOOL_CALL_ARGS":
            self._owner(event["toolCallId"])["toolCalls"][-1]["function"]["arguments"] += event["delta"]
        elif event["type"] == "TOOL_CALL_RESULT":
            place = self.messages.index(self._owner(event["toolCallId"])) + 1
            result = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
            self.messages.insert(place, {**result, "content": event["content"]})

    def _message(self, identifier: str) -> dict[str, Any]:
        found = [each for each in self.messages if each["id"] == identifier]
        if not found:
            found = [{"id": identifier, "role": "assistant"}]
            self.messages += found
        return found[0]

    def _owner(self, call_id: str) -> dict[str, Any]:
        """The first message with the call, as in ``HttpAgent``, which therefore needs unique ids."""
        return next(each for each in self.messages if call_id in [call["id"] for call in each.get("toolCalls", ())])
