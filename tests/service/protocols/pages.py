"""Pages that keep their messages as ``useChat`` and ``HttpAgent`` do, and send all of them with each request."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic_core import from_json

from tests.players.openai_player import Answer, delta, finish, sse
from tests.service.protocols.openai.asking import call

CHAT, RUN = "/ai-sdk/chat", "/ag-ui"
SHIP_FOLDERS = "tests.service.protocols.openai.folders"
"""Tools, one of which requires approval."""
SHIP = call("ship", '{"number":1}')
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}')
ROLLED = call("roll", '{"sides":6}', "call_roll")
SIDES = {"type": "object", "properties": {"sides": {"type": "integer"}}}
"""The parameters of the page's own tool, ``roll``."""


def asks(*calls: dict[str, Any], **fields: Any) -> Answer:
    """A response of the played model with tool calls."""
    numbered = [{"index": number, **call} for number, call in enumerate(calls)]
    told = [delta(**fields)] if fields else []
    return sse(*told, delta(tool_calls=numbered), finish("tool_calls"))


def says(*pieces: str) -> Answer:
    return sse(*(delta(content=piece) for piece in pieces), finish("stop"))


class Page(ABC):
    """What both kinds of pages have in common."""

    result: str
    """The type of the event with the result of a call."""

    def __init__(self, client: httpx.AsyncClient, *, has_tool: bool = False, session: str = "") -> None:
        self._client, self._has_tool, self._headers = client, has_tool, {"X-Session-ID": session} if session else {}
        self.messages: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    @property
    def kinds(self) -> list[str]:
        return [each["type"] for each in self.events]

    @property
    def text(self) -> str:
        return "".join(each["delta"] for each in self.events if each["type"] in ("text-delta", "TEXT_MESSAGE_CONTENT"))

    async def ask(self, text: str, **fields: Any) -> httpx.Response:
        self.messages.append(self.user(text))
        return await self.send(**fields)

    @abstractmethod
    def user(self, text: str) -> dict[str, Any]:
        """A message of the user."""

    @abstractmethod
    async def send(self, **fields: Any) -> httpx.Response:
        """Send the messages, and add what comes back to them."""

    @property
    @abstractmethod
    def pending(self) -> list[str]:
        """The ids under which the user's consent is asked for."""

    @abstractmethod
    async def decide(self, decisions: Mapping[str, bool], **fields: Any) -> httpx.Response:
        """Send decisions, and those of before."""

    @abstractmethod
    async def roll(self) -> None:
        """Run the tool of the page, which must be called once, and send its result."""


def user(*texts: str) -> dict[str, Any]:
    return {"id": "m-1", "role": "user", "parts": [text(each) for each in texts]}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content, "state": "done"}


async def sent(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    """Send messages as the AI SDK's transport does."""
    headers = fields.pop("headers", {})
    body = {"id": "c-1", "messages": messages, "trigger": "submit-message", **fields}
    return await client.post(CHAT, json=body, headers=headers)


def parts_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The parts of a stream, which must end as one."""
    assert answer.status_code == 200, answer.text
    *blocks, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [from_json(block.removeprefix("data: ")) for block in blocks if not block.startswith(":")]


STATES = {
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
    "tool-approval-request": "approval-requested",
}
"""The state of a call after an event."""


class AiSdkPage(Page):
    result = "tool-output-available"

    def user(self, text: str) -> dict[str, Any]:
        return user(text)

    async def send(self, **fields: Any) -> httpx.Response:
        tools = {"tools": {"roll": {"description": "Roll a die", "parameters": SIDES}}} if self._has_tool else {}
        answer = await sent(self._client, *self.messages, headers=self._headers, **tools, **fields)
        if answer.is_success:
            self.events = parts_of(answer)
            if self.messages[-1]["role"] == "user":
                self.messages.append({"id": f"m-{len(self.messages) + 1}", "role": "assistant", "parts": []})
            for event in self.events:
                self._apply(event)
        return answer

    def _apply(self, event: dict[str, Any]) -> None:
        parts, kind = self.messages[-1]["parts"], event["type"]
        if kind == "start-step":
            parts.append({"type": "step-start"})
        elif kind == "text-start":
            parts.append(text(""))
        elif kind == "text-delta":
            parts[-1]["text"] += event["delta"]
        elif kind == "tool-input-available":
            named = {"type": "dynamic-tool"} if "dynamic" in event else {"type": f"tool-{event['toolName']}"}
            fields = {key: event[key] for key in ("toolCallId", "toolName", "input")}
            parts.append({**named, **fields, "state": "input-available"})
        elif kind in STATES:
            called = [each for each in parts if each.get("toolCallId") == event["toolCallId"]][-1]
            called.update({key: each for key, each in event.items() if key in ("output", "errorText")})
            called["state"] = STATES[kind]
            if "approvalId" in event:
                called["approval"] = {"id": event["approvalId"]}

    @property
    def pending(self) -> list[str]:
        parts = self.messages[-1]["parts"]
        return [each["approval"]["id"] for each in parts if each.get("state") == "approval-requested"]

    async def decide(self, decisions: Mapping[str, bool], **fields: Any) -> httpx.Response:
        for part in self.messages[-1]["parts"]:
            if (identifier := part.get("approval", {}).get("id")) in decisions:
                approval = {"id": identifier, "approved": decisions[identifier], **fields}
                part.update(state="approval-responded", approval=approval)
        return await self.send(messageId=self.messages[-1]["id"])

    async def roll(self) -> None:
        (called,) = [
            each for each in self.messages[-1]["parts"] if each["type"] == "tool-roll" and "output" not in each
        ]
        called.update(state="output-available", output=4)
        await self.send()


async def run(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    """Send messages as ``HttpAgent`` does."""
    headers = fields.pop("headers", {})
    rest = {"state": {}, "tools": [], "context": [], "forwardedProps": {}, "protocolVersion": "1.0"}
    body = {"threadId": "t-1", "runId": "r-1", "messages": messages, **rest, **fields}
    return await client.post(RUN, json=body, headers={"Accept": "text/event-stream", **headers})


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a run, which begins and ends as AG-UI demands."""
    assert answer.status_code == 200, answer.text
    *blocks, rest = answer.text.split("\n\n")
    events = [from_json(block.removeprefix("data: ")) for block in blocks if not block.startswith(":")]
    assert rest == ""
    assert events[0] == {"type": "RUN_STARTED", "threadId": "t-1", "runId": "r-1"}
    assert events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
    return events


class AgUiPage(Page):
    result = "TOOL_CALL_RESULT"
    _decided: Mapping[str, dict[str, Any]] = {}

    def user(self, text: str) -> dict[str, Any]:
        return {"id": "m-1", "role": "user", "content": text}

    async def send(self, **fields: Any) -> httpx.Response:
        tools = [{"name": "roll", "description": "Roll a die", "parameters": SIDES}] if self._has_tool else []
        answer = await run(self._client, *self.messages, headers=self._headers, **{"tools": tools, **fields})
        if answer.is_success:
            self.events, self._decided = events_of(answer), {}
            for event in self.events:
                self._apply(event)
        return answer

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

    @property
    def pending(self) -> list[str]:
        return [each["id"] for each in self.events[-1]["outcome"].get("interrupts", ())]

    async def decide(self, decisions: Mapping[str, bool], **fields: Any) -> httpx.Response:
        for each, approved in decisions.items():
            entry = {"interruptId": each, "status": "resolved", "payload": {"approved": approved, **fields}}
            self._decided = {**self._decided, each: entry}
        return await self.send(resume=[*self._decided.values()])

    async def roll(self) -> None:
        called = [each for each in self.events if each.get("toolCallName") == "roll"]
        (identifier,) = [each["toolCallId"] for each in called]
        self.messages.append({"id": "m-9", "role": "tool", "toolCallId": identifier, "content": "4"})
        await self.send()
