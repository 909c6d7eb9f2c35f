"""MCP messages: JSON-RPC 2.0 requests and notifications, the two protocol lanes, and how a response is written."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic_core import from_json, to_json

from toolchat import __version__
from toolchat.errors import ToolchatError

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LEGACY_VERSIONS",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "MODERN_VERSION",
    "PARSE_ERROR",
    "SERVER_INFO",
    "UNSUPPORTED_VERSION",
    "Exchange",
    "Headers",
    "Id",
    "Message",
    "RpcError",
    "header_version",
    "open_exchange",
    "read_message",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

MODERN_VERSION = "2026-07-28"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18")
"""Versions with a handshake, the newest first."""
SERVER_INFO = {"name": "toolchat", "title": "toolchat", "version": __version__}

_META_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES = f"{_META_PREFIX}protocolVersion", f"{_META_PREFIX}clientCapabilities"
_COMPLETE = to_json({"resultType": "complete", "_meta": {f"{_META_PREFIX}serverInfo": SERVER_INFO}})[:-1]

_T = TypeVar("_T")

Id = str | int
"""The id that pairs a response with its request."""
Headers = Callable[[str], Sequence[str]]
"""Returns all values of an HTTP header; the name is case-insensitive."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or a notification, which gets no response."""

    method: str
    params: Mapping[str, Any]
    id: Id | None = None
    """``None`` in a notification."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``; empty if it is missing."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class RpcError(Exception):
    """A JSON-RPC error response.

    Args:
        code: one of the codes above.
        message: one sentence for the developer of the client.
        data: details for programs.
        status: the HTTP status; derived from the code by default.
        identifier: the request's id, if the id could be read and the rest could not.
    """

    def __init__(
        self, code: int, message: str, data: object = None, *, status: int | None = None, identifier: Id | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status or (404 if code == METHOD_NOT_FOUND else 400)
        self.id = identifier

    @classmethod
    def from_error(cls, error: ToolchatError, problem: Mapping[str, Any]) -> "RpcError":
        """Wrap an error of the service, with its problem document as the data."""
        return cls(INTERNAL_ERROR, error.detail, problem, status=error.status)

    def to_dict(self) -> dict[str, Any]:
        """The ``error`` member of a response."""
        record: dict[str, Any] = {"code": self.code, "message": self.message}
        return record if self.data is None else record | {"data": self.data}

    def response(self, identifier: Id | None) -> bytes:
        """The response, without an id if the request's id could not be read."""
        paired = {} if identifier is None else {"id": identifier}
        return to_json({"jsonrpc": "2.0", **paired, "error": self.to_dict()}, inf_nan_mode="strings")


def read_message(text: bytes) -> Message:
    """Parse one message; of a repeated key the last value counts.

    Raises:
        RpcError: the text is not valid JSON, or not a single request or notification.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "the body must be one JSON-RPC request or notification, not a batch")
    identifier = _read_id(value)
    if fault := _fault(value):
        raise RpcError(INVALID_REQUEST, fault, identifier=identifier)
    return Message(value["method"], value.get("params", {}), identifier)


def _read_id(value: Mapping[str, Any]) -> Id | None:
    if "id" not in value:
        return None
    identifier = value["id"]
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer")
    return identifier


def _fault(value: Mapping[str, Any]) -> str:
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(value.get("method"), str):
        return "method must be a string; responses are not accepted, because the server sends no requests"
    return "" if isinstance(value.get("params", {}), dict) else "params must be an object"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request whose protocol lane is known, and the form of its response.

    Requests of the modern lane (2026-07-28) name their version and the client's capabilities themselves. Clients of
    the legacy lane send a handshake instead, whose contents are not stored: any replica can answer the next request.
    """

    message: Message
    id: Id
    is_modern: bool
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """The client's capabilities; empty in the legacy lane."""

    @property
    def progress_token(self) -> Id | None:
        """The client's token for progress notifications, if it requests them.

        Raises:
            RpcError: it is neither a string nor an integer.
        """
        token = self.message.meta.get("progressToken")
        if token is not None and (isinstance(token, bool) or not isinstance(token, str | int)):
            raise RpcError(INVALID_PARAMS, "progressToken must be a string or an integer")
        return token

    def response(self, result: bytes) -> bytes:
        """The response with a result, a JSON object that must not be empty in the modern lane."""
        if self.is_modern and not result.startswith(b'{"resultType"'):
            result = b"%b,%b" % (_COMPLETE, result[1:])
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(self.id), result)

    def error(self, error: RpcError) -> bytes:
        """The response with an error."""
        return error.response(self.id)

    def status(self, error: RpcError) -> int:
        """The HTTP status of an error: legacy clients treat every status but 200 as the end of the connection."""
        return error.status if self.is_modern else 200


def open_exchange(message: Message, headers: Headers | None) -> Exchange:
    """Determine the lane of a request and validate what the lane requires.

    Args:
        message: a request.
        headers: the headers of its HTTP request, which must agree with the body; ``None`` without HTTP.

    Raises:
        RpcError: required metadata is missing, the headers disagree, or the version is unknown.
    """
    if message.id is None:
        raise TypeError("a notification has no response")
    if not _is_modern(message, headers):
        return Exchange(message, message.id, is_modern=False)
    version, capabilities = _required_meta(message, _VERSION, str), _required_meta(message, _CAPABILITIES, dict)
    if headers is not None:
        _check_headers(message, version, headers)
    if version != MODERN_VERSION:
        raise _unsupported(version)
    return Exchange(message, message.id, True, capabilities)


def header_version(headers: Headers) -> str | None:
    """The protocol version in the headers, if any; raises :class:`RpcError` if it is unknown."""
    version = _single_value(headers, "MCP-Protocol-Version")
    if version is not None and version != MODERN_VERSION and version not in LEGACY_VERSIONS:
        raise _unsupported(version)
    return version


def _unsupported(version: str) -> RpcError:
    # As in `server/discover`: only the versions that a request may name by itself, not those of the handshake.
    data = {"supported": [MODERN_VERSION], "requested": version[:100]}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _is_modern(message: Message, headers: Headers | None) -> bool:
    if _VERSION in message.meta:
        return True
    return headers is not None and header_version(headers) == MODERN_VERSION


def _required_meta(message: Message, name: str, kind: type[_T]) -> _T:
    value = message.meta.get(name)
    if not isinstance(value, kind):
        raise RpcError(INVALID_PARAMS, f"params._meta must have {name}")
    return value


def _check_headers(message: Message, version: str, headers: Headers) -> None:
    """Reject headers that differ from the body: proxies route and authorise by the headers alone."""
    expected: dict[str, Any] = {"MCP-Protocol-Version": version, "Mcp-Method": message.method}
    if message.method == "tools/call":
        expected["Mcp-Name"] = message.params.get("name")
    for name, value in expected.items():
        received = _single_value(headers, name)
        if received is None:
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing")
        if (_decoded(received) if name == "Mcp-Name" else received) != value:
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} differs from the body")


def _single_value(headers: Headers, name: str) -> str | None:
    values = headers(name)
    if len(values) > 1:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} was sent more than once")
    return values[0].strip() if values else None


def _decoded(value: str) -> str | None:
    """Decode a header value in Base64, which carries names beyond ASCII; ``None`` if the encoding is invalid."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
