"""The file that names other servers: read once at start, every fault one line with the key where it is."""

import codecs
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json
from pydantic_settings import SettingsConfigDict

from app.settings.base import EnvironmentSettings
from app.settings.typos import suggest
from toolchat.errors import ConfigurationError

__all__ = ["McpServersSettings", "ServerEntry", "ServerFile", "read_file"]


_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_KEYS = {"authorization", "x-api-key", "proxy-authorization"}
"""Where clients have keys of this service, which are nobody else's business."""
_OF_THE_WIRE = re.compile(
    r"(?i)host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|accept(-.*)?|content-.*|mcp-.*"
)
"""What belongs to one connection or to the protocol, and is written by whoever sends the request."""


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or not value.isascii() or not value.isprintable():
        raise ValueError("must be a URL that starts with http:// or https://")
    if parts.username or parts.password:
        raise ValueError("must have no user or password; put them into headers")
    return value


def _header_values(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        _check_sent(name)
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"{name} must be printable ASCII without line breaks")
    return headers


def _check_sent(name: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name[:64]!r} is no name of a header")
    if _OF_THE_WIRE.fullmatch(name):
        raise ValueError(f"{name} is written by the service itself")


def _by_name(value: Any) -> Any:
    """A list of names means headers that keep theirs."""
    return {name: name for name in value} if isinstance(value, list) else value


def _forwarded(headers: Mapping[str, str]) -> Mapping[str, str]:
    for source, sent in headers.items():
        _check_sent(source)
        _check_sent(sent)
        if source.lower() in _OWN_KEYS:
            raise ValueError(
                f"{source} bears keys of this service, which are never forwarded; let clients send another header, and "
                f'write {{"X-Their-Token": "Authorization"}}'
            )
    return {source.lower(): sent for source, sent in headers.items()}


class ServerEntry(BaseModel):
    """Where a server is, and what may be done with its tools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    """As hosts write it; what is meant is told by ``url`` or ``command``."""
    url: Annotated[str, AfterValidator(_http_url)] | None = None
    headers: Annotated[Mapping[str, str], AfterValidator(_header_values)] = {}
    command: Annotated[str, Field(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    include: tuple[str, ...] = ("*",)
    """Patterns (``fnmatch``) of the names that the server gives its tools."""
    exclude: tuple[str, ...] = ()
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    """Stands before the names of all its tools, with ``_`` between."""
    requires_approval: bool | tuple[str, ...] | None = None
    """For all its tools, none, or those of these names; unless it is said, for those that say they destroy."""
    timeout: Annotated[float, Field(gt=0, le=600)] | None = None
    """Seconds a call may take; none: ``TOOL_TIMEOUT``."""
    forward_headers: Annotated[Mapping[str, str], BeforeValidator(_by_name), AfterValidator(_forwarded)] = {}
    """Headers of whoever asks, in small letters, and the names under which the server is sent them."""
    disabled: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise ValueError("must have either url or command")
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            raise ValueError("type does not fit: stdio goes with command, http with url")
        foreign = ("args", "env", "cwd") if self.url else ("headers", "forward_headers")
        for name in foreign:
            if getattr(self, name):
                raise ValueError(f"{name} does not go with {'url' if self.url else 'command'}")
        return self

    def takes(self, tool: str) -> bool:
        """Whether a tool of the server is offered."""
        return _any_of(tool, self.include) and not _any_of(tool, self.exclude)

    def needs_approval(self, tool: str, *, destructive: bool) -> bool:
        """Whether a call of a tool waits for the user's consent, given what the server says of it."""
        if self.requires_approval is None:
            return destructive
        if isinstance(self.requires_approval, bool):
            return self.requires_approval
        return _any_of(tool, self.requires_approval)

    def forwarded_headers(self, received: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
        """What the server is sent of the headers that a request to this service has."""
        if not self.forward_headers:
            return {}
        decoded = ((name.decode("latin-1").lower(), value) for name, value in received)
        found = {name: value.decode("latin-1") for name, value in decoded if name in self.forward_headers}
        return {self.forward_headers[name]: value for name, value in found.items()}


def _any_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_MAX_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KEY = "mcpServers"


@dataclass(frozen=True, slots=True)
class ServerFile:
    """What the file says."""

    servers: Mapping[str, ServerEntry]
    """By name, in the order of the file, without those that are disabled."""
    variables: frozenset[str] = frozenset()
    """The variables that it takes values from."""


def read_file(path: Path) -> ServerFile:
    """Read the file; ``${VAR}`` and ``${VAR:-default}`` in its texts are variables of the environment or ``.env``.

    Raises:
        ConfigurationError: it cannot be used; one line for each fault, with the key, and never a value.
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
    if servers and find_spec("mcp") is None:
        raise ConfigurationError("MCP_SERVERS_FILE: needs the extra mcp: pip install '.[mcp]'")
    return ServerFile(servers, frozenset(environment.asked))


class _FaultError(Exception):
    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


class _Environment:
    """The variables that a text may name; the environment wins over ``.env``, as everywhere."""

    def __init__(self) -> None:
        in_file = dotenv_values(".env") if Path(".env").is_file() else {}
        self._values = {name: value for name, value in in_file.items() if value is not None} | os.environ
        self.asked: set[str] = set()

    def filled_in(self, value: Any, key: str) -> Any:
        """A value with its variables, in the texts of lists and objects, too."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._value(found, key), value)
        if isinstance(value, list):
            return [self.filled_in(each, f"{key}.{place}") for place, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: self.filled_in(each, f"{key}.{name}") for name, each in value.items()}
        return value

    def _value(self, found: re.Match[str], key: str) -> str:
        name, default = found.groups()
        self.asked.add(name)
        value = self._values.get(name) or default
        if value is None:
            raise _FaultError(f"{key}: the variable {name} is not set")
        return value


def _values(path: Path) -> Mapping[str, Any]:
    def refused(reason: str) -> ConfigurationError:
        return ConfigurationError(f"MCP_SERVERS_FILE: {path}: {reason}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if twice := [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]:
            raise refused(f"{twice[0][:64]}: this key stands twice in one object")
        return found

    content = _content(path, refused).removeprefix(codecs.BOM_UTF8)
    try:
        from_json(content)  # its errors say where
        document = json.loads(content, object_pairs_hook=unique)
    except ValueError as error:
        raise refused(f"is no JSON: {error}") from None
    servers = document.get(_KEY) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise refused(f'must be an object with "{_KEY}", an object of servers by name')
    for key in document:
        if key != _KEY:
            raise refused(f"{key[:64]}: there is no such key; did you mean {_KEY}?")
    return servers


def _content(path: Path, refused: Callable[[str], ConfigurationError]) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise refused(f"is longer than {_MAX_BYTES} bytes")
    return content


def _entry(name: str, value: Any, environment: _Environment) -> ServerEntry:
    if not _NAME.fullmatch(name):
        raise _FaultError(": a name has 1 to 32 letters, digits, _ or -, the first a letter or a digit")
    if isinstance(value, dict) and value.get("disabled") is True:  # its variables need not be set
        return ServerEntry(command="none", disabled=True)
    try:
        return ServerEntry.model_validate(environment.filled_in(value, ""))
    except ValidationError as error:
        raise _FaultError(*_lines(error)) from None


def _lines(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        key = "".join(f".{each}" for each in fault["loc"] if each not in ("bool", "tuple[str, ...]"))[:200]
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            near = suggest(str(fault["loc"][0]), ServerEntry.model_fields)
            message = "there is no such key" + (f"; did you mean {near}?" if near else "")
        yield f"{key}: {message}"


class McpServersSettings(EnvironmentSettings):
    """Tools of MCP servers."""

    model_config = SettingsConfigDict(env_prefix="MCP_SERVERS_")

    file: Path | None = Field(
        None, description="JSON file with mcpServers, in the format of MCP hosts; without it no server is connected"
    )
    start_timeout: float = Field(
        5,
        ge=0,
        le=600,
        description="Seconds to wait for the servers at start; slower servers are added once they connect",
    )
    refresh_seconds: float = Field(
        60, ge=0.1, le=86_400, description="Seconds between two requests for a server's list of tools"
    )
