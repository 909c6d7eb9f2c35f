"""Requests of OpenAI's Responses: their schema, and their input items as messages.

Unknown fields are ignored, as in chat completions.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StringConstraints, model_validator

from app.protocols.openai.errors import BadRequest
from app.protocols.openai.requests import (
    CalledFunction,
    FieldNames,
    Function,
    Part,
    Refused,
    Wire,
    WireCall,
    WireMessage,
    refuse_other_choices,
)
from toolchat.chat.request import Approval

__all__ = ["SERVER_LABEL", "Item", "NamedFunction", "ResponsesRequest", "decisions", "wire_messages"]

SERVER_LABEL = "toolchat"
"""The MCP server that clients see as the owner of the service's tools."""
_REQUIRED = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name"),
    "function_call_output": ("call_id", "output"),
    "mcp_call": ("id", "name"),
    "mcp_approval_response": ("approval_request_id", "approve"),
    "item_reference": ("id",),
}
_PASSED_OVER = ("reasoning", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "item_reference")
"""Items of earlier responses that the model does not need again."""


class Item(Wire):
    """An input item: a message, a call with its result, or a part of an earlier response."""

    type: str = "message"
    id: str | None = Field(None, max_length=256)
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[Part] | None = None
    call_id: str | None = Field(None, min_length=1, max_length=256)
    name: str | None = None
    arguments: str | None = None
    output: str | list[Part] | None = None
    approval_request_id: str | None = Field(None, max_length=512)
    approve: StrictBool | None = None
    reason: str | None = Field(None, max_length=1000)

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if self.type not in _REQUIRED and self.type not in _PASSED_OVER:
            raise ValueError(f"{self.type[:32]} is not supported; send messages, function calls and their outputs")
        for name in _REQUIRED.get(self.type, ()):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is missing")
        return self


class FunctionTool(Function):
    """A tool that the client runs itself."""

    type: Literal["function"]
    strict: bool | None = None


class ServiceTools(Wire):
    """The service's own tools, named by a client that wants to decide about their approvals."""

    type: Literal["mcp"]
    server_label: Literal["toolchat"]
    allowed_tools: list[str] | None = None


def _refuse_other_tools(value: object) -> object:
    kind = str(value.get("type"))[:32] if isinstance(value, dict) else "function"
    if kind == "mcp" and isinstance(value, dict) and value.get("server_label") != SERVER_LABEL:
        raise ValueError(f"other MCP servers than {SERVER_LABEL}, the service itself, are not supported")
    if kind not in ("function", "mcp"):
        raise ValueError(f"{kind} is not supported; send tools of the type function")
    return value


def _refuse_logprobs(value: list[str] | None) -> list[str] | None:
    if value and "message.output_text.logprobs" in value:
        raise ValueError("message.output_text.logprobs is not supported; providers do not agree on them")
    return value


class NamedFunction(Wire):
    """A ``tool_choice`` that names the tool to call."""

    type: Literal["function"]
    name: str


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
        return self


class TextOptions(Wire):
    """Options of the answer's text."""

    format: TextFormat | None = None


class Reasoning(Wire):
    """Options of reasoning models."""

    effort: str | None = None


def _as_items(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _as_id(value: object) -> object:
    return value.get("id") if isinstance(value, dict) else value


_Tool = Annotated[FunctionTool | ServiceTools, Field(discriminator="type"), BeforeValidator(_refuse_other_tools)]
_Choice = Literal["none", "auto", "required"] | NamedFunction | None
_Key = Annotated[str, StringConstraints(max_length=64)]
_Value = Annotated[str, StringConstraints(max_length=512)]


class ResponsesRequest(Wire):
    """The body of ``POST /v1/responses``."""

    model: str
    input: Annotated[list[Item], Field(max_length=4096), BeforeValidator(_as_items)]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: Annotated[str | None, BeforeValidator(_as_id)] = None
    stream: StrictBool | None = None
    store: StrictBool | None = None
    tools: list[_Tool] | None = Field(None, max_length=128)
    tool_choice: Annotated[_Choice, BeforeValidator(refuse_other_choices)] = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    max_output_tokens: int | None = Field(None, ge=1)
    max_tool_calls: int | None = Field(None, ge=1)
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    metadata: dict[_Key, _Value] | None = Field(None, max_length=16)
    include: Annotated[list[str] | None, AfterValidator(_refuse_logprobs)] = None
    background: Refused = None
    prompt: Refused = None
    top_logprobs: Refused = None

    @property
    def functions(self) -> Sequence[FunctionTool]:
        """The tools that the client runs itself."""
        return [each for each in self.tools or () if isinstance(each, FunctionTool)]

    @property
    def service_tools(self) -> ServiceTools | None:
        """The service's tools, if the client names them."""
        return next((each for each in self.tools or () if isinstance(each, ServiceTools)), None)

    def options(self) -> dict[str, Any]:
        """The options of the model calls; ``None`` where the client sends none."""
        return {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_output_tokens,
            "max_tool_calls": self.max_tool_calls,
            "parallel_tool_calls": self.parallel_tool_calls,
            "reasoning_effort": self.reasoning.effort if self.reasoning else None,
            "response_format": _response_format(self.text.format) if self.text and self.text.format else None,
        }


def _response_format(sent: TextFormat) -> dict[str, Any] | None:
    """The format as chat completions write it."""
    if sent.type != "json_schema":
        return None if sent.type == "text" else {"type": sent.type}
    schema = sent.model_dump(by_alias=True, exclude={"type"}, exclude_none=True)
    return {"type": "json_schema", "json_schema": schema}


def wire_messages(items: Sequence[Item], earlier: int) -> tuple[list[WireMessage], FieldNames]:
    """Convert items to the messages of chat completions.

    Args:
        items: the items of earlier responses, then those of the request.
        earlier: how many of them are of earlier responses.

    Returns:
        The messages, and the names of the request's fields for error messages.
    """
    sent: list[WireMessage] = []
    indexes: list[int] = []
    for index, item in enumerate(items, -earlier):
        if item.type == "message":
            sent.append(WireMessage.model_construct(role=item.role or "user", content=item.content))
        elif item.type == "function_call":
            _add_call(sent, item, item.call_id or "")
        elif item.type == "function_call_output":
            sent.append(_result(item, item.call_id or ""))
        elif item.type == "mcp_call":
            _add_call(sent, item, item.id or "")
            sent.append(_result(item, item.id or ""))
        indexes += [index] * (len(sent) - len(indexes))
    return sent, FieldNames("input", "call_id", indexes)


def _add_call(sent: list[WireMessage], item: Item, identifier: str) -> None:
    """Add a call to the assistant's message before it: parallel calls are one message."""
    function = CalledFunction.model_construct(name=item.name or "", arguments=item.arguments or "")
    call = WireCall.model_construct(id=identifier, function=function)
    if not sent or sent[-1].role != "assistant":
        sent.append(WireMessage.model_construct(role="assistant"))
    sent[-1].tool_calls = [*(sent[-1].tool_calls or ()), call]


def _result(item: Item, identifier: str) -> WireMessage:
    return WireMessage.model_construct(role="tool", tool_call_id=identifier, content=item.output or "")


def decisions(items: Sequence[Item]) -> tuple[str, Mapping[str, Approval]] | None:
    """Read the user's decisions at the end of the input; earlier ones belong to answers that are known.

    Returns:
        The id of the pending answer, and the decisions by call id; ``None`` without any decision.

    Raises:
        BadRequest: the decisions belong to several answers.
    """
    decided: dict[str, Approval] = {}
    pending: set[str] = set()
    for item in reversed(items):
        if item.type not in _PASSED_OVER:
            break
        if item.type == "mcp_approval_response":
            identifier, _, call = (item.approval_request_id or "").removeprefix("mcpr_").partition("/")
            pending.add(identifier)
            decided[call] = Approval(bool(item.approve), item.reason or "")
    if len(pending) > 1:
        raise BadRequest("input: decide about the calls of one answer at a time", "input")
    return (pending.pop(), decided) if decided else None
