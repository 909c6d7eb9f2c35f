"""Requests of ``useChat``: their schema, their messages, and the user's decisions about tool calls."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from toolchat.chat.request import Approval
from toolchat.errors import InvalidRequest
from toolchat.messages import (
    MAX_IMAGES,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    is_image,
)
from toolchat.service.protocols.decisions import TurnDecisions, decisions_of
from toolchat.service.protocols.wire import ToolDescription, ToolName, Wire

_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
"""Tool names that every provider accepts; a model may have invented others."""


class _Wire(Wire):
    model_config = ConfigDict(alias_generator=to_camel)


class ToolApproval(_Wire):
    """The approval of a tool call; ``approved`` is missing until the user has decided."""

    id: str
    approved: StrictBool | None = None
    reason: str | None = Field(None, max_length=1000)


class UIPart(_Wire):
    """A part of a message: text, a file, the start of a step, or a tool call with its state."""

    type: str
    text: str = ""
    tool_name: str | None = None
    """The name in a ``dynamic-tool`` part; a ``tool-NAME`` part has it in its type."""
    tool_call_id: str = Field("", max_length=256)
    state: str | None = None
    input: Any = None
    output: Any = None
    error_text: str | None = None
    approval: ToolApproval | None = None
    url: str = ""

    @property
    def is_image(self) -> bool:
        """Whether it is a file that models with images take."""
        return self.type == "file" and is_image(self.url)


class UIMessage(_Wire):
    """One message of the conversation."""

    id: str = ""
    role: Literal["system", "user", "assistant"]
    parts: list[UIPart]


class PageTool(_Wire):
    """A tool that the page runs, as assistant-ui sends it."""

    description: str | None = None
    parameters: dict[str, Any] | None = None


class UIChatRequest(_Wire):
    """The body of ``POST /ai-sdk/chat``."""

    messages: list[UIMessage] = Field(min_length=1, max_length=4096)
    system: str | None = None
    tools: dict[ToolName, PageTool] | None = Field(None, max_length=128)
    message_id: str | None = None
    """The message that was edited, or whose calls were decided about."""

    def functions_of_page(self) -> list[ToolDescription]:
        """The tools that the page runs itself."""
        return [(name, each.description, each.parameters) for name, each in (self.tools or {}).items()]

    def continued_message(self) -> UIMessage:
        """The message that a resumed answer continues: the one of ``message_id``, else the last."""
        named = (each for each in self.messages if self.message_id and each.id == self.message_id)
        return next(named, self.messages[-1])


def conversation(sent: Sequence[UIMessage], instructions: str = "") -> tuple[Message, ...]:
    """Convert the messages of a request; calls without a result are dropped, and parts that only pages display."""
    if sent[-1].role == "user":
        _require_readable(sent[-1], len(sent) - 1)
    texts = [instructions, *(_text(each) for each in sent if each.role == "system")]
    system = "\n\n".join(filter(None, texts))
    messages = [message for each in sent for message in _converted(each)]
    if not messages:
        raise InvalidRequest("messages: none has a text")
    return (*([SystemMessage(system)] if system else ()), *messages)


def _converted(message: UIMessage) -> Iterator[Message]:
    if message.role == "user":
        text, images = _text(message), tuple([part.url for part in message.parts if part.is_image])
        if text.strip() or images:
            yield UserMessage(text, images)
    elif message.role == "assistant":
        for step in _steps(message.parts):
            yield from _step_messages(step)


def _steps(parts: Sequence[UIPart]) -> Iterator[list[UIPart]]:
    """Split an answer into model calls: at the marks that pages set, and before text that follows a tool call."""
    step: list[UIPart] = []
    for part in parts:
        if part.type == "step-start" or (part.type == "text" and step and step[-1].type != "text"):
            yield step
            step = []
        if part.type == "text" or _finished_tool(part):
            step.append(part)
    yield step


def _step_messages(step: Sequence[UIPart]) -> Iterator[Message]:
    text = "\n".join(part.text for part in step if part.type == "text")
    calls_of_step = [part for part in step if part.type != "text"]
    calls = tuple(ToolCall(part.tool_call_id, _finished_tool(part), _json(part.input or {})) for part in calls_of_step)
    if text or calls:
        yield AssistantMessage(text, calls)
    if calls:
        results = (ToolResponse(part.tool_call_id, _finished_tool(part), _result(part)) for part in calls_of_step)
        yield ToolResponseMessage(tuple(results))


def _finished_tool(part: UIPart) -> str:
    """The tool's name if the part is a finished call, else an empty string."""
    if not part.tool_call_id or part.state not in ("output-available", "output-error", "output-denied"):
        return ""
    name = part.tool_name if part.type == "dynamic-tool" else part.type.removeprefix("tool-")
    return name if name and _NAME.fullmatch(name) else ""


def _result(part: UIPart) -> str:
    if part.state == "output-available":
        return _json(part.output)
    reason = part.approval.reason if part.approval else None
    return _json({"error": {"message": part.error_text or reason or "the user rejected this call"}})


def _json(value: Any) -> str:
    """A value as JSON; strings are left as they are."""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="strings").decode()


def _require_readable(message: UIMessage, index: int) -> None:
    for number, part in enumerate(message.parts):
        if part.type == "file" and not part.is_image:
            raise InvalidRequest(f"messages[{index}].parts[{number}]: must be a png, jpeg, gif or webp image by URL")
    if len([part for part in message.parts if part.is_image]) > MAX_IMAGES:
        raise InvalidRequest(f"messages[{index}].parts: has more than {MAX_IMAGES} images")


def _text(message: UIMessage) -> str:
    texts = {"file": "[file left out: it is no image]"}
    parts = [part for part in message.parts if part.type in ("text", "file") and not part.is_image]
    return "\n".join([texts.get(part.type, part.text) for part in parts])


def decisions(message: UIMessage) -> TurnDecisions | None:
    """The user's decisions about the calls of a message; ``None`` without any."""
    parts = message.parts if message.role == "assistant" else ()
    decided = {
        part.approval.id: Approval(bool(part.approval.approved), part.approval.reason or "")
        for part in parts
        if part.approval and part.state == "approval-responded"
    }
    return decisions_of(decided) if decided else None
