"""A request as it comes over the wire; what is not named here is left alone, as clients send more than OpenAI knows."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from app.protocols.openai.errors import BadRequest
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
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition

__all__ = [
    "ChatCompletionRequest",
    "NamedChoice",
    "WireMessage",
    "WireTool",
    "caller_tools",
    "conversation",
    "read_request",
    "running_turn",
]


ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_Penalty = Annotated[float, Field(ge=-2, le=2)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, protected_namespaces=())


class Part(_Wire):
    """A piece of a message's content."""

    type: str
    text: str | None = None
    refusal: str | None = None


class CalledFunction(_Wire):
    """What a call of a tool names."""

    name: str
    arguments: str = ""


class WireCall(_Wire):
    """A call of a tool that the client offers."""

    id: str = Field(min_length=1, max_length=256)
    type: Literal["function"] = "function"
    function: CalledFunction


class WireMessage(_Wire):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


class Function(_Wire):
    """What a tool of the client is."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class WireTool(_Wire):
    """A tool that the client offers and runs."""

    type: Literal["function"] = "function"
    function: Function


class _Named(_Wire):
    name: str


class NamedChoice(_Wire):
    """The one tool that must be called."""

    type: Literal["function"] = "function"
    function: _Named


class StreamOptions(_Wire):
    """What a stream tells beside the answer."""

    include_usage: bool | None = None


class ChatCompletionRequest(_Wire):
    """A conversation to go on with."""

    model: str
    messages: list[WireMessage] = Field(min_length=1, max_length=4096)
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    tools: list[WireTool] | None = Field(None, max_length=128)
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = None
    n: int | None = Field(None, ge=1, le=1)


def read_request(body: bytes) -> ChatCompletionRequest:
    """Read a request's body.

    Raises:
        InvalidRequest: it is no JSON.
        BadRequest: a field has another form; the error names it as OpenAI does.
    """
    try:
        return ChatCompletionRequest.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
    if fault["type"] == "json_invalid":
        raise InvalidRequest("the body is not JSON that can be read")
    param = _place(fault["loc"])
    raise BadRequest(f"{param}: {fault['msg']}" if param else str(fault["msg"]), param or None)


def _place(location: Iterable[int | str]) -> str:
    """``messages[0].content``; the names of a union's members say nothing to a client."""
    place = ""
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isidentifier() and part.islower() and part not in ("str", "literal"):
            place += f".{part}" if place else part
    return place


def conversation(sent: Sequence[WireMessage], instructions: str = "") -> tuple[Message, ...]:
    """Read the messages of a request.

    What the client says first as ``system`` or ``developer`` stands below the service's own instructions in one
    message: some models refuse a second one. Results of tools that follow each other become one message.

    Raises:
        BadRequest: a message holds what no model is given here, or calls and results do not belong together.
    """
    leading = next((place for place, each in enumerate(sent) if each.role not in _SYSTEM), len(sent))
    texts = [instructions, *(_text(each, place) for place, each in enumerate(sent[:leading]))]
    system = "\n\n".join(filter(None, texts))
    messages: list[Message] = [SystemMessage(system)] if system else []
    waiting: dict[str, str] = {}
    """The names of the calls, by id, whose results must come next."""
    for place, each in enumerate(sent[leading:], leading):
        if each.role == "tool":
            _add_result(messages, each, waiting, place)
            continue
        _refuse_missing(waiting)
        messages.append(_message(each, place))
        waiting = {call.id: call.function.name for call in each.tool_calls or () if each.role == "assistant"}
    _refuse_missing(waiting)
    return tuple(messages)


def running_turn(messages: Sequence[Message]) -> int:
    """Where the messages after the last question begin."""
    return max((place for place, each in enumerate(messages, 1) if isinstance(each, UserMessage)), default=0)


_SYSTEM = ("system", "developer")


def _message(sent: WireMessage, place: int) -> Message:
    text = _text(sent, place)
    if sent.role == "user":
        return UserMessage(text)
    if sent.role == "assistant":
        calls = tuple(ToolCall(each.id, each.function.name, each.function.arguments) for each in sent.tool_calls or ())
        return AssistantMessage(text, calls, {"reasoning_content": it} if (it := sent.reasoning_content) else {})
    return SystemMessage(text)


def _add_result(messages: list[Message], sent: WireMessage, waiting: dict[str, str], place: int) -> None:
    name = waiting.pop(sent.tool_call_id or "", None)
    if name is None:
        raise BadRequest(
            f"messages[{place}]: a message of the role 'tool' must answer a call of the assistant's message before it",
            f"messages[{place}].tool_call_id",
        )
    response = ToolResponse(sent.tool_call_id or "", name, _text(sent, place))
    last = messages[-1]
    if isinstance(last, ToolResponseMessage):
        messages[-1] = ToolResponseMessage((*last.responses, response))
    else:
        messages.append(ToolResponseMessage((response,)))


def _refuse_missing(waiting: Iterable[str]) -> None:
    if missing := ", ".join(waiting):
        raise BadRequest(f"tool calls without a message of the role 'tool' that answers them: {missing}", "messages")


def _text(sent: WireMessage, place: int) -> str:
    if sent.content is None or isinstance(sent.content, str):
        return sent.content or ""
    texts: list[str] = []
    for number, part in enumerate(sent.content):
        text = part.refusal if part.type == "refusal" else part.text if part.type == "text" else None
        if text is None:
            param = f"messages[{place}].content[{number}]"
            raise BadRequest(f"{param}: {part.type[:32]} is not taken here; the models are given text only", param)
        texts.append(text)
    return "\n".join(texts)


MAX_BYTES = 256 * 1024
"""Longest definitions of all tools of one request, as JSON."""


def caller_tools(sent: Sequence[WireTool]) -> tuple[ClientToolCallback, ...]:
    """Make the tools of a request; the same definitions give the same objects.

    Clients send their tools with every question, and whoever writes them for a provider remembers them by identity.

    Raises:
        BadRequest: two have one name, or there is too much of them.
    """
    names = [each.function.name for each in sent]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"tools: two have the name {repeated}", "tools")
    try:
        text = to_json([each.function.model_dump() for each in sent])
    except PydanticSerializationError:
        raise BadRequest("tools: cannot be sent on as JSON", "tools") from None
    if len(text) > MAX_BYTES:
        raise BadRequest(f"tools: longer than {MAX_BYTES} bytes as JSON", "tools")
    return _made(text)


@lru_cache(maxsize=64)
def _made(text: bytes) -> tuple[ClientToolCallback, ...]:
    return tuple(
        ClientToolCallback(
            ToolDefinition(
                each["name"],
                (each["description"] or "").strip() or each["name"],
                {"type": "object", "properties": {}} | (each["parameters"] or {}),
            )
        )
        for each in from_json(text)
    )
