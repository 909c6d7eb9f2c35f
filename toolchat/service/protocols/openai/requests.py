"""Requests of OpenAI's chat completions: their schema and their messages."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool

from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.service.protocols.messages import FieldNames, check_question, conversation, images_of, text_of
from toolchat.service.protocols.wire import (
    ModelRequest,
    Part,
    Refused,
    ToolDescription,
    ToolName,
    Wire,
)

_NAMES = FieldNames("messages", "tool_call_id")
_Penalty = Annotated[float, Field(ge=-2, le=2)]


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


class StreamOptions(Wire):
    """Options of a streamed response."""

    include_usage: bool | None = None


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_format(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return value
    if (kind := value.get("type")) not in ("text", "json_object", "json_schema"):
        raise ValueError("type must be text, json_object or json_schema")
    form = value.get("json_schema")
    if kind == "json_schema" and not (isinstance(form, dict) and form.get("name") and form.get("schema")):
        raise ValueError("a json_schema needs name and schema")
    return value


class ChatCompletionRequest(ModelRequest):
    """The body of ``POST /v1/chat/completions``."""

    messages: list[WireMessage] = Field(min_length=1, max_length=4096)
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    tools: list[WireTool] | None = Field(None, max_length=128)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: Annotated[list[str] | None, Field(max_length=16), BeforeValidator(_as_list)] = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    reasoning_effort: str | None = None
    response_format: Annotated[dict[str, Any] | None, AfterValidator(_check_format)] = None
    n: int | None = Field(None, ge=1, le=1)
    modalities: list[Literal["text"]] | None = None
    functions: Refused = None
    function_call: Refused = None
    logprobs: Refused = None
    top_logprobs: Refused = None
    audio: Refused = None
    web_search_options: Refused = None
    prediction: Refused = None

    def functions_of_client(self) -> list[ToolDescription]:
        functions = [each.function for each in self.tools or ()]
        return [(each.name, each.description, each.parameters) for each in functions]

    def options(self) -> dict[str, Any]:
        """See :meth:`ModelRequest.options`; OpenAI renamed ``max_tokens``, and many clients send the old name."""
        limit = self.max_completion_tokens or self.max_tokens
        return super().options() | ({"max_tokens": limit} if limit else {})

    def conversation(self, instructions: str) -> tuple[Message, ...]:
        """The conversation below the service's instructions."""
        check_question(self.messages, "messages")
        sent = [(index, to_message(each, text_of(each.content))) for index, each in enumerate(self.messages)]
        return conversation(sent, instructions, _NAMES)


def to_message(sent: WireMessage, text: str) -> Message:
    """A message of a request as the engine's, with its text."""
    if (role := sent.role) == "user":
        return UserMessage(text, images_of(sent.content))
    if role == "tool":
        result = ToolResponse(sent.tool_call_id or "", "", text, images=images_of(sent.content))
        return ToolResponseMessage((result,))
    if role != "assistant":
        return SystemMessage(text)
    # DeepSeek rejects a turn whose calls come back without their reasoning.
    extra = {} if sent.reasoning_content is None else {"reasoning_content": sent.reasoning_content}
    calls = tuple([ToolCall(each.id, each.function.name, each.function.arguments) for each in sent.tool_calls or ()])
    return AssistantMessage(text, calls, extra)
