"""Requests of OpenAI's Responses: their schema, and their input items as messages."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StringConstraints, model_validator
from pydantic_core import to_json

from toolchat.chat.request import Approval
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.service.protocols.decisions import TurnDecisions, decisions_of
from toolchat.service.protocols.messages import (
    SYSTEM_ROLES,
    FieldNames,
    check_question,
    conversation,
    images_of,
    text_of,
)
from toolchat.service.protocols.openai.responses.tools import (
    ClientTool,
    ResponsesTool,
    offered,
    without_provider_tools,
)
from toolchat.service.protocols.wire import (
    BadRequest,
    ModelRequest,
    Part,
    Refused,
    ToolDescription,
    Wire,
    model_name,
    require_shallow,
)

_NAMES = FieldNames("input", "call_id")
CALLS = {
    "function_call": ("call_id", "name"),
    "custom_tool_call": ("call_id", "name"),
    "local_shell_call": ("call_id",),
}
"""Calls that the client runs, with the fields that they must have."""
OUTPUTS = {
    "function_call_output": ("call_id", "output"),
    "custom_tool_call_output": ("call_id", "output"),
    "local_shell_call_output": ("call_id", "output"),
}
_FOR_MODELS = {"message": ("role", "content"), "mcp_call": ("id", "name"), **CALLS, **OUTPUTS}
_FOR_THE_SERVICE = {"mcp_approval_response": ("approval_request_id", "approve"), "item_reference": ("id",)}
_REQUIRED = _FOR_MODELS | _FOR_THE_SERVICE


def _shallow(value: dict[str, Any] | None) -> dict[str, Any] | None:
    require_shallow(to_json(value))
    return value


class Item(Wire):
    """An input item; of the kinds of other providers, which the model does not need, only the kind is read."""

    type: str = "message"
    id: str | None = Field(None, max_length=256)
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[Part] | None = None
    call_id: str | None = Field(None, min_length=1, max_length=256)
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    input: str | None = None
    action: Annotated[dict[str, Any] | None, AfterValidator(_shallow)] = None
    output: str | list[Part] | None = None
    approval_request_id: str | None = Field(None, max_length=512)
    approve: StrictBool | None = None
    reason: str | None = Field(None, max_length=1000)

    @model_validator(mode="before")
    @classmethod
    def _read_kind(cls, value: object) -> object:
        if not isinstance(value, dict) or not isinstance(kind := value.get("type", "message"), str):
            return value
        if kind not in _REQUIRED:
            return {"type": kind}
        # OpenAI's documentation has no call id in this output: its id is the call's.
        if kind.startswith("local_shell_call"):
            return {**value, "call_id": value.get("call_id") or value.get("id")}
        return value

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for name in _REQUIRED.get(self.type, ()):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is missing")
        return self

    def call(self) -> ToolCall:
        """The call of the item, as a call of the function that stands for its tool."""
        arguments = self.arguments or ""
        if self.type == "custom_tool_call":
            arguments = to_json({"input": self.input or ""}).decode()
        elif self.type == "local_shell_call":
            arguments = to_json({**(self.action or {}), "type": "exec"}).decode()
        return ToolCall(self.called, model_name(self.name or "local_shell", self.namespace), arguments)

    @property
    def called(self) -> str:
        """The id that a call shares with its result."""
        return (self.id if self.type == "mcp_call" else self.call_id) or ""


def _refuse_logprobs(value: list[str] | None) -> list[str] | None:
    if value and "message.output_text.logprobs" in value:
        raise ValueError("message.output_text.logprobs is not supported; providers do not agree on them")
    return value


class TextFormat(Wire):
    """The format of the answer's text; a JSON schema has a name."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = None
    description: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None

    @model_validator(mode="after")
    def _require_schema(self) -> Self:
        if self.type == "json_schema" and not (self.name and self.schema_):
            raise ValueError("a json_schema needs name and schema")
        require_shallow(to_json(self.schema_))
        return self


class TextOptions(Wire):
    """Options of the answer's text."""

    format: TextFormat | None = None


class Reasoning(Wire):
    """Options of reasoning models."""

    effort: str | None = None


def _as_items(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


_Key = Annotated[str, StringConstraints(max_length=64)]
_Value = Annotated[str, StringConstraints(max_length=512)]
Metadata = Annotated[dict[_Key, _Value], Field(max_length=16)]


class ResponsesRequest(ModelRequest):
    """The body of ``POST /v1/responses``."""

    input: Annotated[list[Item], Field(max_length=4096), BeforeValidator(_as_items)]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: Annotated[str | None, BeforeValidator(lambda it: it.get("id") if isinstance(it, dict) else it)] = None
    stream: StrictBool | None = None
    store: StrictBool | None = None
    tools: Annotated[list[ResponsesTool] | None, Field(max_length=128), BeforeValidator(without_provider_tools)] = None
    max_output_tokens: int | None = Field(None, ge=1)
    max_tool_calls: int | None = Field(None, ge=1)
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    metadata: Metadata | None = None
    include: Annotated[list[str] | None, AfterValidator(_refuse_logprobs)] = None
    background: bool | None = None
    prompt: Refused = None
    top_logprobs: Refused = None

    def functions_of_client(self) -> list[ToolDescription]:
        return [function for _, function in offered(self.tools or ())]

    @property
    def client_tools(self) -> dict[str, ClientTool]:
        """The tools that the client runs, by the name that the model sees."""
        return {tool.model_name: tool for tool, _ in offered(self.tools or ())}

    @property
    def service_tools(self) -> ResponsesTool | None:
        """The service's tools, if the client names them."""
        return next((each for each in self.tools or () if each.type == "mcp"), None)

    def chosen_tool(self) -> str | None:
        # The client knows a tool in a namespace by its own name.
        return next(
            (each for each, tool in self.client_tools.items() if tool.name == self.tool_choice), self.tool_choice
        )

    def options(self) -> dict[str, Any]:
        sent = super().options() | {"max_tokens": self.max_output_tokens}
        if self.reasoning:
            sent["reasoning_effort"] = self.reasoning.effort
        if self.text and self.text.format:
            sent["response_format"] = _response_format(self.text.format)
        return sent


def _response_format(sent: TextFormat) -> dict[str, Any] | None:
    """The format as chat completions write it."""
    if sent.type != "json_schema":
        return None if sent.type == "text" else {"type": sent.type}
    schema = sent.model_dump(by_alias=True, exclude={"type"}, exclude_none=True)
    return {"type": "json_schema", "json_schema": schema}


def conversation_of_items(
    earlier: Sequence[Item], items: Sequence[Item], *instructions: str, names: FieldNames = _NAMES
) -> tuple[Message, ...]:
    """The conversation of earlier responses and of a request."""
    end = len(items)
    while end and items[end - 1].type not in _FOR_MODELS:
        end -= 1
    check_question(items[:end], names.messages)
    sent = [*_messages([*earlier, *items], -len(earlier))]
    if not sent:
        raise BadRequest(f"{names.messages}: has no message", names.messages)
    return conversation(sent, "\n\n".join(filter(None, instructions)), names)


def _messages(items: Iterable[Item], start: int) -> Iterator[tuple[int, Message]]:
    for index, item in enumerate(items, start):
        if item.type == "message":
            yield index, _message(item)
        if item.type in CALLS or item.type == "mcp_call":
            yield index, AssistantMessage("", (item.call(),))
        if item.type in OUTPUTS or item.type == "mcp_call":
            result = ToolResponse(item.called, "", text_of(item.output), images=images_of(item.output))
            yield index, ToolResponseMessage((result,))


def _message(item: Item) -> Message:
    text = text_of(item.content)
    if item.role == "assistant":
        return AssistantMessage(text)
    return SystemMessage(text) if item.role in SYSTEM_ROLES else UserMessage(text, images_of(item.content))


def decisions(items: Sequence[Item]) -> TurnDecisions | None:
    """The user's decisions at the end of the input; ``None`` without any."""
    said = takewhile(lambda item: item.type not in _FOR_MODELS, reversed(items))
    decided = {
        (item.approval_request_id or "").removeprefix("mcpr_"): Approval(bool(item.approve), item.reason or "")
        for item in said
        if item.type == "mcp_approval_response"
    }
    return decisions_of(decided) if decided else None
