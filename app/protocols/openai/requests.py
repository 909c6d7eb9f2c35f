"""Requests of OpenAI's chat completions: their schema, their messages, and the tools that the client runs itself.

Unknown fields are ignored, because clients send fields that OpenAI does not define.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticSerializationError, from_json, to_json

from app.observability.message_content import LINK_FRAGMENT, without_tokens
from app.protocols.openai.errors import BadRequest
from app.settings.base import describe_faults
from toolchat.errors import InvalidRequest
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    immutable,
)
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition

__all__ = [
    "CalledFunction",
    "ChatCompletionRequest",
    "FieldNames",
    "Function",
    "NamedChoice",
    "Part",
    "Refused",
    "Wire",
    "WireCall",
    "WireMessage",
    "client_tools",
    "conversation",
    "read_request",
    "refuse_other_choices",
    "turn_starts",
    "without_link_tokens",
]

MAX_TOOLS_BYTES = 256 * 1024
"""Longest definitions of all tools of one request, as JSON."""
_SYSTEM_ROLES = ("system", "developer")
_TEXT_TYPES = ("text", "input_text", "output_text")

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_T = TypeVar("_T", bound=BaseModel)
_Penalty = Annotated[float, Field(ge=-2, le=2)]


class Wire(BaseModel):
    """An object of a request; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, protected_namespaces=())


class Part(Wire):
    """A part of a message's content."""

    type: str
    text: str | None = None
    refusal: str | None = None

    def plain(self) -> str | None:
        """The text of the part; ``None`` if it is an image or other content."""
        return self.refusal if self.type == "refusal" else self.text if self.type in _TEXT_TYPES else None


class CalledFunction(Wire):
    """The function that a tool call names, with its arguments as JSON."""

    name: str
    arguments: str = ""


class WireCall(Wire):
    """A tool call of an assistant message."""

    id: str = Field(min_length=1, max_length=256)
    type: Literal["function"] = "function"
    function: CalledFunction


class WireMessage(Wire):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


class Function(Wire):
    """The definition of a client's tool."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class WireTool(Wire):
    """A tool that the client runs itself."""

    type: Literal["function"] = "function"
    function: Function


class _Named(Wire):
    name: str


class NamedChoice(Wire):
    """A ``tool_choice`` that names the tool to call."""

    type: Literal["function"] = "function"
    function: _Named


class StreamOptions(Wire):
    """Options of a streamed response."""

    include_usage: bool | None = None


_REMEDIES = {
    "functions": "use tools",
    "function_call": "use tool_choice",
    "logprobs": "providers do not agree on them",
    "top_logprobs": "providers do not agree on them",
    "audio": "the models answer with text only",
    "background": "it is not available yet, use stream",
    "prompt": "send instructions and input",
}


def _refuse(value: object, info: ValidationInfo) -> object:
    """Refuse a field whose effect the client relies on; ``null``, ``false`` and empty values mean that it does not."""
    if value:
        raise ValueError(f"not supported; {_REMEDIES[info.field_name or '']}")
    return value


def refuse_other_choices(value: object) -> object:
    """Refuse a choice of several tools, or of another kind than functions."""
    if isinstance(value, dict) and value.get("type", "function") != "function":
        raise ValueError(f"{str(value['type'])[:32]} is not supported; send only tools that may be called, or name one")
    return value


Refused = Annotated[Any, AfterValidator(_refuse)]
ToolChoice = Annotated[Literal["none", "auto", "required"] | NamedChoice | None, BeforeValidator(refuse_other_choices)]


class ChatCompletionRequest(Wire):
    """The body of ``POST /v1/chat/completions``."""

    model: str
    messages: list[WireMessage] = Field(min_length=1, max_length=4096)
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    tools: list[WireTool] | None = Field(None, max_length=128)
    tool_choice: ToolChoice = None
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
    modalities: list[Literal["text"]] | None = None
    functions: Refused = None
    function_call: Refused = None
    logprobs: Refused = None
    top_logprobs: Refused = None
    audio: Refused = None


def read_request(kind: type[_T], body: bytes) -> _T:
    """Parse the body of a request.

    Raises:
        InvalidRequest: it is not valid JSON.
        BadRequest: a field is invalid; ``param`` names the first one in OpenAI's notation.
    """
    try:
        return kind.model_validate_json(without_link_tokens(body))
    except ValidationError as error:
        param, message, fault = describe_faults(error)[0]
    if fault == "json_invalid":
        raise InvalidRequest("the body is not valid JSON")
    raise BadRequest(f"{param}: {message}" if param else message, param or None)


def without_link_tokens(body: bytes) -> bytes:
    """Remove the tokens of approval links from a history: the model could open the link, and decide by itself."""
    if LINK_FRAGMENT.encode() not in body:
        return body
    return without_tokens(body.decode("latin-1")).encode("latin-1")


@immutable
class FieldNames:
    """The names of a request's fields in error messages."""

    messages: str = "messages"
    call_id: str = "tool_call_id"
    indexes: list[int] = field(default_factory=list)
    """The index of each message in the request, if one item of the request is not one message."""

    def place(self, index: int) -> str:
        """The field that a message comes from."""
        return f"{self.messages}[{self.indexes[index] if self.indexes else index}]"


_NAMES = FieldNames()


def conversation(
    sent: Sequence[WireMessage], instructions: str = "", names: FieldNames = _NAMES
) -> tuple[Message, ...]:
    """Convert the messages of a request.

    Leading ``system`` and ``developer`` messages are appended to the service's own instructions in one message, because
    some models reject a second one. Consecutive tool results become one message. A note replaces content that is not
    text, such as images of earlier messages: clients send the whole conversation with every request.

    Args:
        sent: the messages of the request.
        instructions: the service's system prompt.
        names: the names of fields in error messages.

    Raises:
        BadRequest: the question has content other than text, or tool calls and results do not match.
    """
    _require_text(sent, names)
    # "developer" is OpenAI's name of "system" for reasoning models; other providers know only "system".
    leading = next((index for index, each in enumerate(sent) if each.role not in _SYSTEM_ROLES), len(sent))
    texts = [instructions, *map(_text, sent[:leading])]
    system = "\n\n".join(filter(None, texts))
    messages: list[Message] = [SystemMessage(system)] if system else []
    unanswered: dict[str, str] = {}
    """Names by id of the calls whose results must come next."""
    for index, each in enumerate(sent[leading:], leading):
        if each.role == "tool":
            _add_result(messages, each, unanswered, names, index)
            continue
        _require_results(unanswered, names)
        messages.append(_message(each))
        unanswered = {call.id: call.function.name for call in each.tool_calls or () if each.role == "assistant"}
    _require_results(unanswered, names)
    return tuple(messages)


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """The indexes at which turns start: below the instructions, and after each user message."""
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    return [first, *(index for index, each in enumerate(messages, 1) if isinstance(each, UserMessage))]


def _message(sent: WireMessage) -> Message:
    text = _text(sent)
    if sent.role == "user":
        return UserMessage(text)
    if sent.role == "assistant":
        # DeepSeek rejects a turn whose calls come back without their reasoning.
        reasoning = sent.reasoning_content
        calls = tuple(ToolCall(each.id, each.function.name, each.function.arguments) for each in sent.tool_calls or ())
        return AssistantMessage(text, calls, {"reasoning_content": reasoning} if reasoning else {})
    return SystemMessage(text)


def _add_result(
    messages: list[Message], sent: WireMessage, unanswered: dict[str, str], names: FieldNames, index: int
) -> None:
    name = unanswered.pop(sent.tool_call_id or "", None)
    if name is None:
        place = names.place(index)
        raise BadRequest(f"{place}: must answer a call of the assistant before it", f"{place}.{names.call_id}")
    response = ToolResponse(sent.tool_call_id or "", name, _text(sent))
    last = messages[-1]
    if isinstance(last, ToolResponseMessage):
        messages[-1] = ToolResponseMessage((*last.responses, response))
    else:
        messages.append(ToolResponseMessage((response,)))


def _require_results(unanswered: Iterable[str], names: FieldNames) -> None:
    if missing := ", ".join(unanswered):
        raise BadRequest(f"tool calls without a result: {missing}", names.messages)


def _require_text(sent: Sequence[WireMessage], names: FieldNames) -> None:
    """Refuse other content in the question: if the newest message is the user's."""
    index = max((index for index, each in enumerate(sent) if each.role not in _SYSTEM_ROLES), default=0)
    parts = sent[index].content if sent[index].role == "user" else None
    for number, part in enumerate(parts if isinstance(parts, list) else ()):
        if part.plain() is None:
            param = f"{names.place(index)}.content[{number}]"
            raise BadRequest(f"{param}: {part.type[:32]} is not supported; the models accept text only", param)


def _text(sent: WireMessage) -> str:
    if sent.content is None or isinstance(sent.content, str):
        return sent.content or ""
    return "\n".join(_text_or_note(part) for part in sent.content)


def _text_or_note(part: Part) -> str:
    text = part.plain()
    return f"[{part.type[:32]} left out: the models accept text only]" if text is None else text


def client_tools(sent: Sequence[Function]) -> tuple[ClientToolCallback, ...]:
    """Create the callbacks for the client's tools; equal definitions give the same objects.

    Clients send their tools with every request, and the models cache the serialized form of a tool by its identity.

    Raises:
        BadRequest: a name occurs twice, or the definitions are too long.
    """
    names = [each.name for each in sent]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"tools: the name {repeated} occurs twice", "tools")
    try:
        text = to_json([each.model_dump() for each in sent])
    except PydanticSerializationError:
        raise BadRequest("tools: cannot be written as JSON", "tools") from None
    if len(text) > MAX_TOOLS_BYTES:
        raise BadRequest(f"tools: longer than {MAX_TOOLS_BYTES} bytes as JSON", "tools")
    return _client_tools(text)


@lru_cache(maxsize=64)
def _client_tools(text: bytes) -> tuple[ClientToolCallback, ...]:
    return tuple(
        ClientToolCallback(
            ToolDefinition(
                each["name"],
                (each["description"] or "").strip() or each["name"],
                # OpenAI lets a function without parameters omit them; other providers require an object.
                {"type": "object", "properties": {}} | (each["parameters"] or {}),
            )
        )
        for each in from_json(text)
    )
