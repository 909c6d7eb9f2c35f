"""What requests of several wires share: parts of their schema, their parsing, and the tools of the client."""

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from fastapi import Request
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_serializer,
)
from pydantic_core import from_json, to_json

from toolchat.errors import InvalidRequest
from toolchat.messages import is_image
from toolchat.models.base import ChatOptions
from toolchat.service.api.body_limits import body_of
from toolchat.service.api.dependencies import reject_prefetch
from toolchat.service.api.parameters import require_json
from toolchat.service.settings.base import describe_faults
from toolchat.tool_calling.callback import ClientToolCallback, ToolSet
from toolchat.tool_calling.definition import ToolDefinition

SERVER_LABEL = "toolchat"
"""The MCP server that clients see as the owner of the service's tools."""
MAX_BODY_BYTES = 8 * 1024 * 1024
"""Clients send the whole conversation with every request, its images and their tools included."""
MAX_TOOLS_BYTES = 256 * 1024
"""Longest definitions of all tools of one request, as JSON."""
_LONGEST_NAME = 64
_RECORD_LEVELS = 32
"""Levels of a record above a part of a request; most are fewer than ten."""
TEXT_TYPES = ("text", "input_text", "output_text")
IMAGE_TYPES = ("image_url", "input_image", "image")

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_T = TypeVar("_T", bound=BaseModel)


class BadRequest(InvalidRequest):
    """The request is invalid; ``param`` names the field."""

    code = "invalid-value"

    def __init__(self, detail: str, param: str | None = None) -> None:
        super().__init__(detail)
        self.param = param


class Wire(BaseModel):
    """An object of a request; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, protected_namespaces=(), defer_build=True)


class Part(Wire):
    """A part of a message's content."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: Any = None
    """A URL, in chat completions within an object."""

    def plain(self) -> str | None:
        """The text of the part; ``None`` if it is an image or other content."""
        return self.refusal if self.type == "refusal" else self.text if self.type in TEXT_TYPES else None

    def image(self) -> str | None:
        """The URL of the part's image; ``None`` if it is none that models take."""
        url = self.image_url.get("url") if isinstance(self.image_url, dict) else self.image_url
        is_one = self.type in IMAGE_TYPES and isinstance(url, str) and is_image(url)
        return url if is_one else None

    @field_serializer("image_url")
    def _stored(self, value: object) -> object:
        """Without the bytes of an image: a stored response is read again with a note in their place."""
        return None if (url := self.image()) and url.startswith("data:") else value


_REMEDIES = {
    "functions": "use tools",
    "function_call": "use tool_choice",
    "logprobs": "providers do not agree on them",
    "top_logprobs": "providers do not agree on them",
    "audio": "the models answer with text only",
    "web_search_options": "add a tool that searches the web to the service",
    "prediction": "the models get no predicted text",
    "prompt": "send instructions and input",
    "mcp_servers": "add the servers to the service",
}


def _refuse(value: object, info: ValidationInfo) -> object:
    """Refuse a field whose effect the client relies on; ``null``, ``false`` and an empty list mean that it does not."""
    if value or value == {}:
        raise ValueError(f"not supported; {_REMEDIES[info.field_name or '']}")
    return value


def _read_choice(value: object) -> object:
    """A choice of tools, or the name of the tool that must be called; the two APIs write it differently."""
    if isinstance(value, dict):
        kind, named = value.get("type", "function"), value.get("function", value)
        name = named.get("name") if isinstance(named, dict) else None
        is_named = kind in ("function", "custom") or (kind == "mcp" and value.get("server_label") == SERVER_LABEL)
        if not is_named or not isinstance(name, str):
            raise ValueError(f"{str(kind)[:32]} is not supported; send only tools that may be called, or name one")
        return name
    if value not in (None, *CHOICES):
        raise ValueError(f"must be {', '.join(CHOICES)}, or name a tool")
    return value


Refused = Annotated[Any, AfterValidator(_refuse)]
CHOICES = ("none", "auto", "required")
"""The values of ``tool_choice`` that name no tool."""
ToolDescription = tuple[str, str | None, dict[str, Any] | None]
"""Name, description and parameters of a client's tool."""


class ModelRequest(Wire):
    """The part of a request that chat completions, Responses and Messages share."""

    model: str
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    parallel_tool_calls: bool | None = None
    tool_choice: Annotated[str | None, BeforeValidator(_read_choice)] = None

    def functions_of_client(self) -> list[ToolDescription]:
        """The tools that the client runs itself."""
        raise NotImplementedError

    def chosen_tool(self) -> str | None:
        """The choice of a tool as an option of the model call."""
        return self.tool_choice

    def options(self) -> dict[str, Any]:
        """The options that the client has set, without the choice of a tool; ``None``: the service's default."""
        # Most requests set none.
        is_plain = self.model_fields_set.isdisjoint(_OPTIONS)
        return {} if is_plain else self.model_dump(include=_OPTIONS, exclude_unset=True)


_OPTIONS = {field.name for field in fields(ChatOptions)} - {"model", "tool_choice"}


async def json_body(request: Request) -> bytes:
    """The body of a request, unless a page of another site sends it."""
    reject_prefetch(request)
    require_json(request)
    return await body_of(request)


def read_request(kind: type[_T], body: bytes) -> _T:
    """Parse the body of a request."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        param, message, fault = describe_faults(error)[0]
    if fault == "json_invalid":
        if "hex escape" in message:
            raise InvalidRequest("the body has an incomplete \\u escape, such as a lone surrogate (half a character)")
        raise InvalidRequest("the body is not valid JSON")
    raise BadRequest(f"{param}: {message}" if param else message, param or None)


def model_name(name: str, namespace: str | None) -> str:
    """The name of a client's tool as the model sees it; providers take no names longer than 64 characters."""
    full = f"{namespace.rstrip('_')}__{name}" if namespace else name
    if len(full) <= _LONGEST_NAME:
        return full
    return f"{full[: _LONGEST_NAME - 9]}_{hashlib.sha256(full.encode()).hexdigest()[:8]}"


def client_tools(sent: Sequence[ToolDescription]) -> tuple[ClientToolCallback, ...]:
    """Create the callbacks for the client's tools; the same definitions give the same objects, which models cache."""
    names = [name for name, _, _ in sent]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"tools: the name {repeated} occurs twice", "tools")
    try:
        text = to_json(sent)
        if len(text) > MAX_TOOLS_BYTES:
            raise BadRequest(f"tools: longer than {MAX_TOOLS_BYTES} bytes as JSON", "tools")
        return _client_tools(text)
    except ValueError as error:
        raise BadRequest(f"tools: {error}", "tools") from None


def with_client_tools(tools: ToolSet, own: Sequence[ClientToolCallback]) -> ToolSet:
    """The service's tools and those of the client, each of which replaces the service's tool of its name."""
    names = {each.definition.name for each in own}
    return ToolSet([*(tool for name, tool in tools.by_name.items() if name not in names), *own]) if own else tools


def require_shallow(text: bytes) -> None:
    """Raise ``ValueError`` for JSON that could not be read again from a record, since parsers limit the depth."""
    try:
        from_json(b"[" * _RECORD_LEVELS + text + b"]" * _RECORD_LEVELS)
    except ValueError:
        raise ValueError("nested too deeply") from None


@lru_cache(maxsize=64)
def _client_tools(text: bytes) -> tuple[ClientToolCallback, ...]:
    require_shallow(text)
    return tuple(
        ClientToolCallback(
            ToolDefinition(
                name,
                (description or "").strip() or name,
                # OpenAI lets a function without parameters omit them; other providers require an object.
                {"type": "object", "properties": {}} | (parameters or {}),
            )
        )
        for name, description, parameters in from_json(text)
    )
