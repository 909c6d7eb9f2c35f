"""Tools of a Responses request as functions, which all providers have, and calls of these as the client's items."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from toolchat.messages import ToolCall
from toolchat.service.protocols.wire import SERVER_LABEL, ToolDescription, ToolName, Wire, model_name
from toolchat.tool_calling.events import parse_arguments

_KINDS = ("function", "custom", "local_shell", "namespace", "mcp")
_OF_PROVIDERS = re.compile(
    r"web_search(_preview)?(_[0-9_]+)?|file_search|image_generation|code_interpreter|computer(_use.*)?"
)
"""Tools that OpenAI runs itself; what is not known may be the client's, and is refused."""


class Format(Wire):
    """The form of a custom tool's text: any, or that of a grammar."""

    type: str
    syntax: str | None = None
    definition: str | None = None


def _read_allowed(value: object) -> object:
    """The names of the allowed tools, of which OpenAI's API has two forms."""
    if isinstance(value, dict) and value.get("read_only"):
        raise ValueError("read_only is not supported; send tool_names")
    return value.get("tool_names") if isinstance(value, dict) else value


def _refuse_approval(value: object) -> object:
    """Refuse what would let a call run that the client wants to decide about."""
    if value in (None, "never") or (isinstance(value, dict) and not value.get("always")):
        return value
    raise ValueError("only never is supported; the service decides which of its tools require approval")


class ResponsesTool(Wire):
    """A tool or a namespace of tools that the client runs, or, to restrict them, the service's own as an MCP server."""

    type: Literal["function", "custom", "local_shell", "namespace", "mcp"]
    name: ToolName | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: Format | None = None
    tools: list["ResponsesTool"] = Field([], max_length=128)
    server_label: str | None = None
    allowed_tools: Annotated[list[str] | None, BeforeValidator(_read_allowed)] = None
    require_approval: Annotated[Any, AfterValidator(_refuse_approval)] = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_others(cls, value: object) -> object:
        if isinstance(value, dict) and (kind := value.get("type")) not in _KINDS:
            raise ValueError(f"{str(kind)[:32]} is not supported; send tools of the type function, custom or namespace")
        return value

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if self.type == "mcp" and self.server_label != SERVER_LABEL:
            raise ValueError(f"other MCP servers than {SERVER_LABEL}, the service itself, are not supported")
        if self.type in ("function", "custom", "namespace") and self.name is None:
            raise ValueError("name is missing")
        if any(each.type not in ("function", "custom") for each in self.tools):
            raise ValueError("a namespace has tools of the type function or custom only")
        return self


def without_provider_tools(value: object) -> object:
    # Agents always send both; without a tool of its own a client counts on such a tool, and gets an error.
    if not isinstance(value, list):
        return value
    others = [each for each in value if not _is_of_provider(each)]
    is_agent = any(isinstance(each, dict) and each.get("type") != "mcp" for each in others)
    return others if is_agent else value


def _is_of_provider(tool: object) -> bool:
    if not isinstance(tool, dict):
        return False
    kind = tool.get("type")
    is_connector = kind == "mcp" and "connector_id" in tool
    return is_connector or (isinstance(kind, str) and _OF_PROVIDERS.fullmatch(kind) is not None)


class ClientTool(NamedTuple):
    """A tool that the client runs."""

    kind: str
    """``function``, ``custom`` or ``local_shell``."""
    name: str
    namespace: str | None = None

    @property
    def model_name(self) -> str:
        """The name of the function that the model sees."""
        return model_name(self.name, self.namespace)

    def item(self, call: ToolCall) -> dict[str, Any]:
        """A call of the tool as an item without its id and status."""
        names = {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {})
        if self.kind == "function":
            return {"type": "function_call", "call_id": call.id, **names, "arguments": call.arguments or "{}"}
        if self.kind == "custom":
            return {"type": "custom_tool_call", "call_id": call.id, **names, "input": _input(call)}
        return {"type": "local_shell_call", "call_id": call.id, "action": _action(call)}


def offered(tools: Sequence[ResponsesTool]) -> Iterator[tuple[ClientTool, ToolDescription]]:
    """The tools that the client runs, and the functions that the model is offered for them."""
    for tool in tools:
        if tool.type == "namespace":
            for number, inner in enumerate(tool.tools):
                about = f"\n\nThe tools of {tool.name}: {tool.description}" if tool.description and not number else ""
                yield _offered(inner, ClientTool(inner.type, inner.name or "", tool.name), about)
        elif tool.type != "mcp":
            yield _offered(tool, ClientTool(tool.type, tool.name or tool.type))


def _offered(tool: ResponsesTool, offered: ClientTool, about: str = "") -> tuple[ClientTool, ToolDescription]:
    description, parameters = tool.description or "", tool.parameters
    if tool.type == "custom":
        parameters = _TEXT
        if tool.format and tool.format.definition:
            about = f"\n\nThe input follows this grammar:\n{tool.format.definition}{about}"
    elif tool.type == "local_shell":
        description, parameters = "Run a command on the user's machine.", _COMMAND
    return offered, (offered.model_name, f"{description}{about}", parameters)


_TEXT = {"properties": {"input": {"type": "string"}}, "required": ["input"]}
_COMMAND = {
    "properties": {
        "command": {"type": "array", "items": {"type": "string"}, "description": "The program and its arguments"},
        "working_directory": {"type": "string"},
        "timeout_ms": {"type": "integer"},
    },
    "required": ["command"],
}


def _input(call: ToolCall) -> str:
    """The text that a custom tool gets; what is no object may be that text itself."""
    arguments = parse_arguments(call)
    text = arguments.get("input") if isinstance(arguments, dict) else None
    return text if isinstance(text, str) else call.arguments


def _action(call: ToolCall) -> dict[str, Any]:
    arguments = parse_arguments(call)
    fields = arguments if isinstance(arguments, dict) else {}
    command = fields.get("command", [])
    words = [str(each) for each in command] if isinstance(command, list) else ["sh", "-c", str(command)]
    known = {name: fields[name] for name in ("working_directory", "timeout_ms") if name in fields}
    return {"type": "exec", "command": words, "env": {}, **known}
