"""JSON-RPC responses as HTTP responses."""

from collections.abc import Mapping

from fastapi import Response

from app.api.problems import error_response, problem
from app.protocols.mcp_server.exchange import Exchange
from app.protocols.mcp_server.jsonrpc import Id, RpcError
from toolchat.errors import ToolchatError

__all__ = ["failure", "refusal", "reply"]

_JSON = "application/json"
_NOT_STORED: Mapping[str, str] = {"Cache-Control": "no-store"}


def reply(body: bytes, headers: Mapping[str, str] = _NOT_STORED) -> Response:
    """A response with a result."""
    return Response(body, headers=headers, media_type=_JSON)


def refusal(error: RpcError, identifier: Id | None, status: int) -> Response:
    """A response with an error; without an id where nobody knows to which request."""
    return Response(error.response(identifier), status, _NOT_STORED, _JSON)


def failure(error: ToolchatError, request_id: str, exchange: Exchange) -> Response:
    """A response with an error of the service, and the headers that its problem document would have."""
    told = RpcError.of(error, problem(error, request_id))
    headers = dict(error_response(error, request_id).headers)
    kept = {name: value for name, value in headers.items() if name not in ("content-type", "content-length")}
    return Response(exchange.error(told), exchange.status(told), kept, _JSON)
