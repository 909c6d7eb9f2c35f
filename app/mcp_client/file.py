"""The ``MCP_SERVERS_FILE``: read and validated once at start, with one line for every fault."""

import codecs
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json
from pydantic_settings import SettingsConfigDict

from app.settings.base import EnvironmentSettings, describe_faults
from app.settings.typos import suggest
from toolchat.errors import ConfigurationError

__all__ = ["McpServersSettings", "ServerEntry", "ServerFile", "read_file"]

MAX_FILE_BYTES = 1024 * 1024
_KEY = "mcpServers"
_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CREDENTIAL_HEADERS = {"authorization", "x-api-key", "proxy-authorization", "x-approval-token"}
"""Headers in which clients send keys of this service."""
_TRANSPORT_HEADERS = re.compile(
    r"(?i)host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|accept(-.*)?|content-.*|mcp-.*"
)
"""Headers of the connection or of the protocol, which the HTTP client and the SDK set themselves."""


def _supported_transport(value: Any) -> Any:
    if isinstance(value, str) and value.lower() == "sse":
        raise ValueError('SSE is not supported; use streamable HTTP: "type": "http", with the url of that transport')
    return value


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or not value.isascii() or not value.isprintable():
        raise ValueError("must be a URL that starts with http:// or https://")
    if parts.username or parts.password:
        raise ValueError("must have no user or password; put them into headers")
    return value


def _header_values(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        _check_header_name(name)
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"{name} must be printable ASCII without line breaks")
    return headers


def _check_header_name(name: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name[:64]!r} is not a valid header name")
    if _TRANSPORT_HEADERS.fullmatch(name):
        raise ValueError(f"{name} is set by the service itself")


def _as_mapping(value: Any) -> Any:
    """Accept a list of header names as a mapping of each name to itself."""
    return {name: name for name in value} if isinstance(value, list) else value


def _forwarded_names(headers: Mapping[str, str]) -> Mapping[str, str]:
    for source, sent in headers.items():
        _check_header_name(source)
        _check_header_name(sent)
        if source.lower() in _CREDENTIAL_HEADERS:
            raise ValueError(
                f"{source} carries keys of this service, which are never forwarded; let clients send another header, "
                f'and write {{"X-Their-Token": "Authorization"}}'
            )
    return {source.lower(): sent for source, sent in headers.items()}


class ServerEntry(BaseModel):
    """One server: its address or command, and the policy for its tools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[
        Literal["stdio", "http", "streamable-http", "streamableHttp"] | None,
        BeforeValidator(_supported_transport),
        Field(validation_alias=AliasChoices("type", "transport")),
    ] = None
    """Accepted because MCP hosts write it; ``url`` or ``command`` already decides."""
    url: Annotated[str, AfterValidator(_http_url)] | None = None
    headers: Annotated[Mapping[str, str], AfterValidator(_header_values)] = {}
    command: Annotated[str, Field(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    include: tuple[str, ...] = ("*",)
    """Patterns (``fnmatch``) of the tools' own names, before any prefix."""
    exclude: tuple[str, ...] = ()
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    """Is put before the names of all its tools, followed by ``_``."""
    requires_approval: bool | tuple[str, ...] | None = None
    """All tools, no tool, or patterns of names; ``None``: the tools that the server marks as destructive."""
    timeout: Annotated[float, Field(gt=0, le=600)] | None = None
    """Seconds per call; ``None``: ``TOOL_TIMEOUT``."""
    forward_headers: Annotated[Mapping[str, str], BeforeValidator(_as_mapping), AfterValidator(_forwarded_names)] = {}
    """Headers of the current caller, in lower case, and the names under which they are sent to the server."""
    disabled: bool = False

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
        decoded = ((name.decode("latin-1").lower(), value) for name, value in received)
        found = {name: value.decode("latin-1") for name, value in decoded if name in self.forward_headers}
        return {self.forward_headers[name]: value for name, value in found.items()}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The contents of the file."""

    servers: Mapping[str, ServerEntry]
    """The enabled servers by name, in the order of the file."""
    variables: frozenset[str] = frozenset()
    """The environment variables that the file refers to."""


def read_file(path: Path) -> ServerFile:
    """Read the file; ``${VAR}`` and ``${VAR:-default}`` in its strings are replaced from the environment or ``.env``.

    Raises:
        ConfigurationError: the file is invalid; one line per fault, with the key but never the value: it may be secret.
    """
    values = _values(path)
    environment = _Environment()
    entries, faults = {}, []
    for name, value in values.items():
        try:
            entries[name] = _entry(name, value, environment)
        except _FaultError as fault:
            faults += [f"MCP_SERVERS_FILE: {path}: {_KEY}.{name[:64]}{line}" for line in fault.lines]
    if faults:
        raise ConfigurationError("\n".join(faults))
    servers = {name: entry for name, entry in entries.items() if not entry.disabled}
    return ServerFile(servers, frozenset(environment.names))


class _FaultError(Exception):
    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


class _Environment:
    """The variables of ``.env`` and of the environment, which takes precedence."""

    def __init__(self) -> None:
        in_file = dotenv_values(".env") if Path(".env").is_file() else {}
        self._values = {name: value for name, value in in_file.items() if value is not None} | os.environ
        self.names: set[str] = set()

    def substitute(self, value: Any, key: str) -> Any:
        """Replace the variables in a value, including the strings within lists and objects."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: self._value(match, key), value)
        if isinstance(value, list):
            return [self.substitute(each, f"{key}.{index}") for index, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: self.substitute(each, f"{key}.{name}") for name, each in value.items()}
        return value

    def _value(self, match: re.Match[str], key: str) -> str:
        name, default = match.groups()
        self.names.add(name)
        value = self._values.get(name) or default
        if value is None:
            raise _FaultError(f"{key}: the variable {name} is not set")
        return value


def _values(path: Path) -> Mapping[str, Any]:
    def invalid(reason: str) -> ConfigurationError:
        return ConfigurationError(f"MCP_SERVERS_FILE: {path}: {reason}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if repeated := [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]:
            raise invalid(f"{repeated[0][:64]}: duplicate key in one object")
        return dict(pairs)

    content = _content(path, invalid).removeprefix(codecs.BOM_UTF8)
    try:
        from_json(content)  # for its errors, which name line and column
        document = json.loads(content, object_pairs_hook=unique)
    except ValueError as error:
        raise invalid(f"is not valid JSON: {error}") from None
    servers = document.get(_KEY) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise invalid(f'must be an object with "{_KEY}", an object of servers by name')
    for key in document:
        if key != _KEY:
            raise invalid(f"{key[:64]}: unknown key; did you mean {_KEY}?")
    return servers


def _content(path: Path, invalid: Callable[[str], ConfigurationError]) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise invalid(f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise invalid(f"is longer than {MAX_FILE_BYTES} bytes")
    return content


def _entry(name: str, value: Any, environment: _Environment) -> ServerEntry:
    if not _SERVER_NAME.fullmatch(name):
        raise _FaultError(": a name must be 1–32 letters, digits, _ or -, starting with a letter or a digit")
    if isinstance(value, dict) and value.get("disabled") is True:  # checked first: its variables need not be set
        return ServerEntry(command="none", disabled=True)
    try:
        return ServerEntry.model_validate(environment.substitute(value, ""))
    except ValidationError as error:
        raise _FaultError(*_lines(error)) from None


def _lines(error: ValidationError) -> Iterator[str]:
    for place, message, kind in describe_faults(error):
        if kind == "extra_forbidden":
            suggestion = suggest(place, ServerEntry.model_fields)
            message = "unknown key" + (f"; did you mean {suggestion}?" if suggestion else "")
        yield f".{place[:200]}: {message}" if place else f": {message}"


class McpServersSettings(EnvironmentSettings):
    """Tools of MCP servers."""

    model_config = SettingsConfigDict(env_prefix="MCP_SERVERS_")

    file: Path | None = Field(
        None, description="JSON file with mcpServers, in the format of MCP hosts; without it no server is connected"
    )
