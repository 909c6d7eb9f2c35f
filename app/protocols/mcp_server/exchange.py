"""One request and how it is to be answered: its protocol version, what its client can do, and how a response looks."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic_core import to_json

from app.protocols.mcp_server.jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION, Id, Message, RpcError
from toolchat import __version__

__all__ = ["LEGACY_VERSIONS", "MODERN_VERSION", "SERVER", "Exchange", "Headers", "checked_version", "exchange_of"]

MODERN_VERSION = "2026-07-28"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18")
"""Versions with a handshake, the newest first."""
SERVER = {"name": "toolchat", "title": "toolchat", "version": __version__}

_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES = f"{_PREFIX}protocolVersion", f"{_PREFIX}clientCapabilities"
_COMPLETE = to_json({"resultType": "complete", "_meta": {f"{_PREFIX}serverInfo": SERVER}})[:-1]

_T = TypeVar("_T")

Headers = Callable[[str], Sequence[str]]
"""Gives every value of a header of a name, in any case."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that has been understood, and what is known of its client."""

    message: Message
    id: Id
    is_modern: bool
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """What the client can do for the server; says nothing in the legacy lane, where no request tells."""

    @property
    def progress_token(self) -> Id | None:
        """By what the client wants to be told of progress, if it does.

        Raises:
            RpcError: it is neither a text nor an integer.
        """
        token = self.message.meta.get("progressToken")
        if token is not None and (isinstance(token, bool) or not isinstance(token, str | int)):
            raise RpcError(INVALID_PARAMS, "progressToken must be a text or an integer")
        return token

    def response(self, result: bytes) -> bytes:
        """The response with a result, which is a JSON object that is not empty in the modern lane."""
        if self.is_modern and not result.startswith(b'{"resultType"'):
            result = b"%b,%b" % (_COMPLETE, result[1:])
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(self.id), result)

    def error(self, error: RpcError) -> bytes:
        """The response with an error."""
        return error.response(self.id)

    def status(self, error: RpcError) -> int:
        """The HTTP status of an error: clients of the legacy lane take any but 200 for the end of the connection."""
        return error.status if self.is_modern else 200


def exchange_of(message: Message, headers: Headers | None) -> Exchange:
    """Find out how a request is to be answered.

    Args:
        message: a request.
        headers: those of its HTTP request, which must say the same as its body; ``None`` where there are none.

    Raises:
        RpcError: it does not say what it must, the headers say something else, or the version is not known.
    """
    if message.id is None:
        raise TypeError("a notification is not answered")
    if not _is_modern(message, headers):
        return Exchange(message, message.id, is_modern=False)
    version, capabilities = _said(message, _VERSION, str), _said(message, _CAPABILITIES, dict)
    if headers is not None:
        _check_headers(message, version, headers)
    if version != MODERN_VERSION:
        raise _unsupported(version)
    return Exchange(message, message.id, True, capabilities)


def checked_version(headers: Headers) -> str | None:
    """The version that the headers name, where they name one; raises :class:`RpcError` for one that is not known."""
    version = _one(headers, "MCP-Protocol-Version")
    if version is not None and version != MODERN_VERSION and version not in LEGACY_VERSIONS:
        raise _unsupported(version)
    return version


def _unsupported(version: str) -> RpcError:
    # As `server/discover` has them: those that a request may name by itself. The others are agreed on by a handshake.
    data = {"supported": [MODERN_VERSION], "requested": version[:100]}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _is_modern(message: Message, headers: Headers | None) -> bool:
    if _VERSION in message.meta:
        return True
    return headers is not None and checked_version(headers) == MODERN_VERSION


def _said(message: Message, name: str, kind: type[_T]) -> _T:
    value = message.meta.get(name)
    if not isinstance(value, kind):
        raise RpcError(INVALID_PARAMS, f"params._meta must have {name}")
    return value


def _check_headers(message: Message, version: str, headers: Headers) -> None:
    expected: dict[str, Any] = {"MCP-Protocol-Version": version, "Mcp-Method": message.method}
    if message.method == "tools/call":
        expected["Mcp-Name"] = message.params.get("name")
    for name, value in expected.items():
        given = _one(headers, name)
        if given is None:
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing")
        if (_decoded(given) if name == "Mcp-Name" else given) != value:
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} says something else than the body")


def _one(headers: Headers, name: str) -> str | None:
    values = headers(name)
    if len(values) > 1:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is given more than once")
    return values[0].strip() if values else None


def _decoded(value: str) -> str | None:
    """A header's value without the disguise of what no header can carry; ``None`` where that is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
