"""The file of MCP servers, ``MCP_SERVERS_FILE``, and the tool modules made of it, one for each server."""

import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_settings import SettingsConfigDict

from toolchat.chat.tool_module import Components, ToolModule
from toolchat.errors import ConfigurationError, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.service.access.principals import ROLE_PATTERN
from toolchat.service.settings.base import EnvironmentSettings, describe_faults, read_settings
from toolchat.service.settings.service_settings import Tuning
from toolchat.service.settings.typos import suggest

_KEY = "mcpServers"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_CREDENTIAL_HEADERS = {"authorization", "x-api-key", "proxy-authorization", "x-approval-token"}
"""Headers in which clients send keys of this service."""
_TRANSPORT_HEADERS = re.compile(
    r"(?i)host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|accept(-.*)?|content-.*|mcp-.*"
)
"""Headers of the connection or of the protocol, which the HTTP client and the SDK set themselves."""


def _value_of(variables: set[str], match: re.Match[str]) -> str:
    """The value of a variable of the environment, whose name is added to those that the file refers to."""
    name, default = match.groups()
    variables.add(name)
    if value := os.environ.get(name) or default:
        return value
    if default is None:
        is_empty = f"is empty; write ${{{name}:-}} if it may be"
        raise ValueError(f"the variable {name} {is_empty if name in os.environ else 'is not set'}")
    return ""


def _substitute(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and info.context is not None:
        return _VARIABLE.sub(partial(_value_of, info.context), value)
    return value


_WITH_VARIABLES = BeforeValidator(_substitute)
_Text = Annotated[str, _WITH_VARIABLES]


def _supported_transport(value: Any) -> Any:
    if isinstance(value, str) and value.lower() == "sse":
        raise ValueError('SSE is not supported; use streamable HTTP: "type": "http", with the url of that transport')
    return value


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or not value.isascii() or not value.isprintable():
        raise ValueError("must be a URL in ASCII that starts with http:// or https://")
    if parts.username or parts.password:
        raise ValueError("must have no user or password; put them into headers")
    return value


def _as_mapping(value: Any) -> Any:
    return {name: name for name in value} if isinstance(value, list) else value


def _must(is_valid: Callable[[str], object], message: str) -> AfterValidator:
    def check(value: str) -> str:
        if not is_valid(value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


_ServerName = Annotated[
    str,
    _must(
        re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}").fullmatch,
        "a name must be 1–32 letters, digits, _ or -, starting with a letter or a digit",
    ),
]
_HeaderName = Annotated[
    str,
    _must(re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch, "is not a valid header name"),
    _must(lambda name: not _TRANSPORT_HEADERS.fullmatch(name), "is set by the service itself"),
]
_HeaderValue = Annotated[
    _Text,
    _must(lambda value: value.isascii() and value.isprintable(), "must be printable ASCII without line breaks"),
]
_ForwardedName = Annotated[
    _HeaderName,
    AfterValidator(str.lower),
    _must(
        lambda name: name not in _CREDENTIAL_HEADERS,
        "carries keys of this service, which are never forwarded; let clients send another header, "
        'and write {"X-Their-Token": "Authorization"}',
    ),
]


class ServerEntry(BaseModel):
    """One server: its address or command, and the policy for its tools."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    type: Annotated[
        Literal["stdio", "http", "streamable-http", "streamableHttp"] | None,
        BeforeValidator(_supported_transport),
        _WITH_VARIABLES,
        Field(validation_alias=AliasChoices("type", "transport")),
    ] = None
    """Accepted because MCP hosts write it; ``url`` or ``command`` already decides."""
    url: Annotated[_Text, AfterValidator(_http_url)] | None = None
    headers: Mapping[_HeaderName, _HeaderValue] = {}
    command: Annotated[_Text, Field(min_length=1)] | None = None
    args: tuple[_Text, ...] = ()
    env: Mapping[str, _Text] = {}
    cwd: _Text | None = None
    include: tuple[_Text, ...] = ("*",)
    """Patterns (``fnmatch``) of the tools' own names, before any prefix."""
    exclude: tuple[_Text, ...] = ()
    prefix: Annotated[_Text, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    """Is put before the names of all its tools, followed by ``_``."""
    requires_approval: Annotated[bool | tuple[_Text, ...] | None, _WITH_VARIABLES] = None
    """All tools, no tool, or patterns of names; ``None``: the tools that the server marks as destructive."""
    approver: Annotated[_Text, Field(pattern=f"^({ROLE_PATTERN})?$")] = ""
    """The role of who approves the calls that require approval; empty: who asked confirms them."""
    timeout: Annotated[float | None, Field(gt=0, le=600), _WITH_VARIABLES] = None
    """Seconds per call; ``None``: ``TOOL_TIMEOUT``."""
    forward_headers: Annotated[Mapping[_ForwardedName, _HeaderName], BeforeValidator(_as_mapping)] = {}
    """Headers of the current caller, in lower case, and the names under which they are sent to the server."""
    disabled: Annotated[bool, _WITH_VARIABLES] = False

    @model_validator(mode="after")
    def _check_transport(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise ValueError("must have either url or command")
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            raise ValueError("type does not fit: stdio goes with command, http with url")
        foreign = ("args", "env", "cwd") if self.url else ("headers", "forward_headers")
        for name in foreign:
            if getattr(self, name):
                raise ValueError(f"{name} does not go with {'url' if self.url else 'command'}")
        return self

    def includes(self, tool: str) -> bool:
        """Whether a tool is offered."""
        return _matches(tool, self.include) and not _matches(tool, self.exclude)

    def needs_approval(self, tool: str, *, is_destructive: bool) -> bool:
        """Whether calls of a tool require approval; ``is_destructive`` is the server's annotation."""
        if self.requires_approval is None:
            return is_destructive
        if isinstance(self.requires_approval, bool):
            return self.requires_approval
        return _matches(tool, self.requires_approval)

    def forwarded_headers(self, received: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
        """Select the received headers that are forwarded, under the names that the server expects."""
        if not self.forward_headers:
            return {}
        found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in received}
        return {sent: found[name] for name, sent in self.forward_headers.items() if name in found}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_SERVERS = TypeAdapter(Mapping[_ServerName, ServerEntry], config=ConfigDict(defer_build=True))


def read_file(path: Path) -> tuple[dict[str, ServerEntry], frozenset[str]]:
    """Read the enabled servers, in the order of the file, and the names of the variables that it refers to."""
    variables = set[str]()
    try:
        servers = _SERVERS.validate_python(_enabled_entries(path), context=variables)
    except ValidationError as error:  # a line per fault, with the key but never the value: it may be secret
        faults = [f"{_KEY}.{place[:200]}: {_sentence(place, *fault)}" for place, *fault in describe_faults(error)]
    except ValueError as error:
        faults = [str(error)]
    else:
        enabled = {name: entry for name, entry in servers.items() if not entry.disabled}
        return enabled, frozenset(variables)
    raise ConfigurationError("\n".join(f"MCP_SERVERS_FILE: {path}: {fault}" for fault in faults))


def _enabled_entries(path: Path) -> dict[str, Any]:
    """The entries as they are in the file, without those that are disabled: their variables need not be set."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not valid JSON: {error}") from None
    servers = document.get(_KEY) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f'must be an object with "{_KEY}", an object of servers by name')  # noqa: TRY004 - not an argument
    for key in document.keys() - {_KEY}:
        raise ValueError(f"{key[:64]}: unknown key; did you mean {_KEY}?")
    return {
        name: entry
        for name, entry in servers.items()
        if not (isinstance(entry, dict) and entry.get("disabled") is True)
    }


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{key[:64]}: duplicate key in one object")
        values[key] = value
    return values


def _sentence(place: str, message: str, kind: str) -> str:
    if kind != "extra_forbidden":
        return message
    suggestion = suggest(place.rpartition(".")[2], ServerEntry.model_fields)
    return "unknown key" + (f"; did you mean {suggestion}?" if suggestion else "")


class McpServersSettings(EnvironmentSettings):
    """Tools of MCP servers."""

    model_config = SettingsConfigDict(env_prefix="MCP_SERVERS_")

    file: Path | None = Field(
        None, description="JSON file with mcpServers, in the format of MCP hosts; without it no server is connected"
    )


if TYPE_CHECKING:
    from toolchat.service.mcp_client.server import RemoteServer

_QUERY = "你的工具能做什么？What can your tools do?"


@dataclass(frozen=True, slots=True)
class McpServers:
    """The configured servers as tool modules."""

    modules: tuple[ToolModule, ...] = ()
    variables: frozenset[str] = frozenset()
    """The variables that the file refers to, so that the start does not warn of them as unknown."""


def read_mcp_servers(tuning: Tuning) -> McpServers:
    """Read the configured servers, without connecting to any and without importing the SDK."""
    settings = read_settings(McpServersSettings)
    if settings.file is None:
        return McpServers()
    servers, variables = read_file(settings.file)
    return McpServers(tuple(_tool_module(*each, tuning) for each in servers.items()), variables)


def _tool_module(name: str, entry: ServerEntry, tuning: Tuning) -> ToolModule:
    """A server's tool module; the server itself exists only while the service runs."""
    server: RemoteServer | None = None

    @asynccontextmanager
    async def opened(components: Components) -> AsyncGenerator[Sequence[object], None]:
        nonlocal server
        from toolchat.service.mcp_client.server import RemoteServer  # imported late, because it imports the SDK

        proxies = (await components.get(OutboundHttp)).proxies
        async with RemoteServer(name, entry, tuning, proxies).running() as server:
            yield (server,)

    async def check(_: Components) -> str:
        if server is None:
            raise UpstreamUnavailable(f"the server {name} is not running")
        return await server.check()

    title, path = f"MCP {name}", f"/mcp/{name}"
    return ToolModule(name=f"mcp-{name}", title=title, path=path, default_query=_QUERY, tool_source=opened, check=check)
