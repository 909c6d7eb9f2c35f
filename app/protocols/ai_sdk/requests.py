"""A request as ``useChat`` sends it; what is not named here is left alone, as pages add fields of their own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from toolchat.chat.request import Approval
from toolchat.errors import InvalidRequest
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)

__all__ = ["ChatRequest", "Part", "UIMessage", "approval_requests", "conversation", "decisions", "read_request"]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)


class ToolApproval(_Wire):
    """The user's decision about a call, once there is one."""

    id: str
    approved: StrictBool | None = None
    reason: str | None = Field(None, max_length=1000)


class Part(_Wire):
    """A piece of a message: text, a file, the beginning of a step, or a tool's call with what became of it."""

    type: str
    text: str = ""
    tool_name: str | None = None
    """Of a ``dynamic-tool``; a ``tool-NAME`` has it in its type."""
    tool_call_id: str = Field("", max_length=256)
    state: str | None = None
    input: Any = None
    output: Any = None
    error_text: str | None = None
    approval: ToolApproval | None = None


class UIMessage(_Wire):
    """One message of the conversation."""

    id: str = ""
    role: Literal["system", "user", "assistant"]
    parts: list[Part]


class ChatRequest(_Wire):
    """A conversation to go on with."""

    messages: list[UIMessage] = Field(min_length=1, max_length=4096)
    message_id: str | None = None
    """The message that was edited, or whose calls were decided."""

    def continued(self) -> UIMessage:
        """The message that the answer goes on with, if it goes on with one: the named one, else the last."""
        named = (each for each in self.messages if self.message_id and each.id == self.message_id)
        return next(named, self.messages[-1])


def read_request(body: bytes) -> ChatRequest:
    """Read a request's body.

    Raises:
        InvalidRequest: it is no JSON, or a field has another form; the detail names it.
    """
    try:
        return ChatRequest.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
    if fault["type"] == "json_invalid":
        raise InvalidRequest("the body is not JSON that can be read")
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in fault["loc"])
    raise InvalidRequest(f"{place.lstrip('.')}: {fault['msg']}" if place else str(fault["msg"]))


_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
"""What every provider takes as the name of a tool; a model may have made up another one."""


def conversation(sent: Sequence[UIMessage], instructions: str = "") -> tuple[Message, ...]:
    """Read the messages of a request.

    What they say as ``system`` stands below the service's own instructions. Each step of an answer becomes a message
    with its calls, and their results; calls without a result are left out, as is whatever else only pages show.

    Raises:
        InvalidRequest: a message holds what no model is given here, or there is none with a text.
    """
    texts = [instructions, *(_text(each, place) for place, each in enumerate(sent) if each.role == "system")]
    system = "\n\n".join(filter(None, texts))
    said = [message for place, each in enumerate(sent) for message in _said(each, place)]
    if not said:
        raise InvalidRequest("messages: none has a text")
    return (*([SystemMessage(system)] if system else ()), *said)


def _said(message: UIMessage, place: int) -> Iterator[Message]:
    if message.role == "user":
        text = _text(message, place)
        if text.strip():
            yield UserMessage(text)
    elif message.role == "assistant":
        for step in _steps(message.parts):
            yield from _turn(step)


def _steps(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """What the model said at once: pages mark where a step begins, and text behind a call is one, too."""
    step: list[Part] = []
    for part in parts:
        if part.type == "step-start" or (part.type == "text" and step and step[-1].type != "text"):
            yield step
            step = []
        if part.type == "text" or _name_of(part):
            step.append(part)
    yield step


def _turn(step: Sequence[Part]) -> Iterator[Message]:
    text = "\n".join(part.text for part in step if part.type == "text")
    ended = [part for part in step if part.type != "text"]
    calls = tuple(ToolCall(part.tool_call_id, _name_of(part), _json(part.input or {})) for part in ended)
    if text or calls:
        yield AssistantMessage(text, calls)
    if calls:
        results = (ToolResponse(part.tool_call_id, _name_of(part), _result(part)) for part in ended)
        yield ToolResponseMessage(tuple(results))


def _name_of(part: Part) -> str:
    """The name of the tool of a call that has ended; empty for all else."""
    if not part.tool_call_id or part.state not in ("output-available", "output-error", "output-denied"):
        return ""
    name = part.tool_name if part.type == "dynamic-tool" else part.type.removeprefix("tool-")
    return name if name and _NAME.fullmatch(name) else ""


def _result(part: Part) -> str:
    if part.state == "output-available":
        return _json(part.output)
    reason = part.approval.reason if part.approval else None
    return _json({"error": {"message": part.error_text or reason or "the user rejected this call"}})


def _json(value: Any) -> str:
    """A value as JSON, which it was; a text stays as it is."""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="strings").decode()


def _text(message: UIMessage, place: int) -> str:
    for number, part in enumerate(message.parts):
        if part.type == "file":
            raise InvalidRequest(
                f"messages[{place}].parts[{number}]: a file is not taken here; the models are given text only"
            )
    return "\n".join(part.text for part in message.parts if part.type == "text")


def approval_requests(pending: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts that ask for consent; each has an id of its own, since a page decides about calls one by one."""
    for call in pending["calls"]:
        yield {
            "type": "tool-approval-request",
            "approvalId": f"{pending['id']}/{call['id']}",
            "toolCallId": call["id"],
        }


def decisions(message: UIMessage) -> tuple[str, Mapping[str, Approval]] | None:
    """What the user has decided about the calls of a message.

    Returns:
        The id of the answer that waits, and the decisions by call id; ``None`` where no call was decided.

    Raises:
        InvalidRequest: a call beside them is not decided yet, or they are about several answers.
    """
    parts = message.parts if message.role == "assistant" else ()
    decided = {
        part.approval.id: part.approval for part in parts if part.approval and part.state == "approval-responded"
    }
    waiting = {identifier.partition("/")[0] for identifier in decided}
    if not decided:
        return None
    if len(waiting) > 1 or any(part.state == "approval-requested" for part in parts):
        raise InvalidRequest("messages: every call that waits for approval must be decided, and those of one answer")
    approvals = {
        identifier.partition("/")[2]: Approval(bool(each.approved), each.reason or "")
        for identifier, each in decided.items()
    }
    return waiting.pop(), approvals
