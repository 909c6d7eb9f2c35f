"""A request as it comes over the wire; what is not named here is left alone, as clients send more than OpenAI knows."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, ValidationError

from app.api.openai_wire.errors import BadRequest
from app.errors import InvalidRequest

__all__ = ["ChatCompletionRequest", "NamedChoice", "WireMessage", "WireTool", "read_request"]

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
