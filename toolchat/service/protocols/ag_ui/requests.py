"""Requests of AG-UI: their schema, their messages, and the user's decisions about tool calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from toolchat.chat.request import Approval
from toolchat.errors import InvalidRequest
from toolchat.messages import AssistantMessage, Message
from toolchat.service.protocols.decisions import TurnDecisions, decisions_of
from toolchat.service.protocols.messages import FieldNames, check_question, conversation, text_of
from toolchat.service.protocols.openai.requests import Function, WireMessage, to_message
from toolchat.service.protocols.wire import ToolDescription, Wire

_NAMES = FieldNames("messages", "toolCallId")
_UNIQUE = re.compile("^[0-9a-f]{24}:")
"""What the page's id of a call has before the model's: it knows calls by their ids alone, and models repeat theirs."""


class PageMessage(WireMessage):
    """One message of the conversation, which has OpenAI's form but for its names and its images."""

    model_config = ConfigDict(alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _as_openai(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.get("role") in ("activity", "reasoning"):  # only pages show them
            return {"role": "assistant"}
        content = value.get("content")
        return {**value, "content": [*map(_part, content)] if isinstance(content, list) else content}


def _part(part: Any) -> Any:
    """An image with its URL where the other wires have it; any other part is left as it is."""
    if not isinstance(part, dict):
        return part
    source = part.get("source")
    if part.get("type") == "image" and isinstance(source, dict):
        data = source.get("value")
        url = data if source.get("type") == "url" else _data_url(source, data)
    elif part.get("type") == "binary" and str(part.get("mimeType")).startswith("image/"):  # of versions before 1.0
        url = part.get("url") or _data_url(part, part.get("data"))
    else:
        return part
    return {"type": "image", "image_url": url}


def _data_url(source: Mapping[str, Any], data: Any) -> str:
    return f"data:{source.get('mimeType')};base64,{data}"


class Context(Wire):
    """Something that the page shows, such as a selected row."""

    description: str
    value: str


class InterruptDecision(Wire):
    """The user's decision about one call."""

    approved: StrictBool
    reason: str | None = Field(None, max_length=1000)
    edited_args: dict[str, Any] | None = Field(None, alias="editedArgs")


class ResumeEntry(Wire):
    """The response to one interrupt."""

    interrupt_id: str = Field(alias="interruptId", max_length=512)
    status: Literal["resolved", "cancelled"]
    payload: InterruptDecision | None = None


class RunInput(Wire):
    """The body of ``POST /ag-ui`` (``RunAgentInput``)."""

    thread_id: str = Field(alias="threadId", max_length=256)
    run_id: str = Field(alias="runId", max_length=256)
    messages: list[PageMessage] = Field(max_length=4096)
    tools: list[Function] | None = Field(None, max_length=128)
    context: list[Context] | None = None
    state: Any = None
    """What the page and the agent share; the model reads it."""
    resume: list[ResumeEntry] | None = None

    def functions_of_page(self) -> list[ToolDescription]:
        """The tools that the page runs itself."""
        return [(each.name, each.description, each.parameters) for each in self.tools or ()]

    def conversation(self, instructions: str) -> tuple[Message, ...]:
        """The conversation below the service's instructions and the page's context."""
        check_question(self.messages, _NAMES.messages)
        context = [f"{each.description}:\n{each.value}" for each in self.context or ()]
        if self.state:
            context.append(f"The state of the page:\n{to_json(self.state, inf_nan_mode='strings').decode()}")
        sent = [(index, to_message(each, text_of(each.content))) for index, each in _paired(self.messages)]
        told = [each for each in sent if each[1] != AssistantMessage()]
        if not told:
            raise InvalidRequest("messages: none has a text")
        return conversation(told, "\n\n".join(filter(None, (instructions, *context))), _NAMES)

    def resumed(self) -> tuple[TurnDecisions, Mapping[str, str]] | None:
        """The decisions about a paused turn, and the page's ids of its calls; ``None`` if the user asks something."""
        entries = self.resume or ()
        is_left = self.messages[-1:] and self.messages[-1].role == "user"
        if not entries or (is_left and all(each.status == "cancelled" for each in entries)):
            return None
        turn_id, decided = decisions_of({each.interrupt_id: _approval(each) for each in entries})
        shown = {_UNIQUE.sub("", unique): unique for unique in decided}
        return TurnDecisions(turn_id, {_UNIQUE.sub("", unique): each for unique, each in decided.items()}), shown


def _paired(messages: Sequence[PageMessage]) -> Iterator[tuple[int, PageMessage]]:
    """The messages with the model's ids; calls that were never approved, and results without a call, are dropped."""
    answers = {each.tool_call_id: index for index, each in enumerate(messages) if each.role == "tool"}
    called = {call.id for each in messages for call in each.tool_calls or ()}
    for index, each in enumerate(messages):
        if each.role == "tool" and (each.tool_call_id not in called or answers[each.tool_call_id] != index):
            continue
        calls = [call for call in each.tool_calls or () if call.id in answers]
        renamed = [call.model_copy(update={"id": _UNIQUE.sub("", call.id)}) for call in calls]
        names = {"tool_calls": renamed, "tool_call_id": _UNIQUE.sub("", each.tool_call_id or "")}
        yield index, each.model_copy(update=names)


def _approval(entry: ResumeEntry) -> Approval:
    if entry.status == "cancelled":
        return Approval(approved=False)
    if entry.payload is None:
        raise InvalidRequest("resume: a resolved interrupt needs a payload")
    edited, reason = entry.payload.edited_args, entry.payload.reason or ""
    return Approval(entry.payload.approved, reason, None if edited is None else to_json(edited).decode())
