"""One server as the file names it."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = ["ServerEntry"]

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

    def headers_of(self, received: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
        """What the server is sent of the headers that a request to this service has."""
        if not self.forward_headers:
            return {}
        decoded = ((name.decode("latin-1").lower(), value) for name, value in received)
        found = {name: value.decode("latin-1") for name, value in decoded if name in self.forward_headers}
        return {self.forward_headers[name]: value for name, value in found.items()}


def _any_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
