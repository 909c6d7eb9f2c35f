"""JSON-RPC 2.0 as MCP has it: one request or one notification at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.errors import ToolchatError

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "PARSE_ERROR",
    "UNSUPPORTED_VERSION",
    "Id",
    "Message",
    "RpcError",
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

Id = str | int
"""Pairs a response with its request."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or a notification, to which nothing is answered."""

    method: str
    params: Mapping[str, Any]
    id: Id | None = None
    """``None`` in a notification."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the request says about itself; empty where it says nothing."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class RpcError(Exception):
    """A request that is not answered with a result.

    Args:
        code: one of the codes above.
        message: one sentence for whoever writes the client.
        data: what programs need to know beside it.
        status: the HTTP status; by the code where none is given.
        identifier: the request's id, where it could be read and nothing else.
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
    def of(cls, error: ToolchatError, problem: Mapping[str, Any]) -> "RpcError":
        """An error of the service; its problem document is the data."""
        return cls(INTERNAL_ERROR, error.detail, problem, status=error.status)

    def to_dict(self) -> dict[str, Any]:
        """The member ``error`` of a response."""
        record: dict[str, Any] = {"code": self.code, "message": self.message}
        return record if self.data is None else record | {"data": self.data}

    def response(self, identifier: Id | None) -> bytes:
        """The whole response; without an id where the request's could not be read."""
        paired = {} if identifier is None else {"id": identifier}
        return to_json({"jsonrpc": "2.0", **paired, "error": self.to_dict()}, inf_nan_mode="strings")


def read_message(text: bytes) -> Message:
    """Read one message. Of a key that stands in an object twice, the last one counts.

    Raises:
        RpcError: it is no JSON, or no single request or notification.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"the body is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "the body must be one JSON-RPC request or notification, and no batch")
    identifier = _identifier(value)
    if fault := _fault(value):
        raise RpcError(INVALID_REQUEST, fault, identifier=identifier)
    return Message(value["method"], value.get("params", {}), identifier)


def _fault(value: Mapping[str, Any]) -> str:
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(value.get("method"), str):
        return "method must be a text; responses are not taken, since nothing is asked"
    return "" if isinstance(value.get("params", {}), dict) else "params must be an object"


def _identifier(value: Mapping[str, Any]) -> Id | None:
    if "id" not in value:
        return None
    identifier = value["id"]
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        raise RpcError(INVALID_REQUEST, "id must be a text or an integer")
    return identifier
