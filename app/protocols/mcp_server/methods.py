"""What each method of the protocol answers."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from app.api.service import ServiceState
from app.protocols.mcp_server.ask_tool import ask_tool
from app.protocols.mcp_server.calling import prepare_call
from app.protocols.mcp_server.exchange import LEGACY_VERSIONS, MODERN_VERSION, SERVER, Exchange
from app.protocols.mcp_server.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from app.protocols.mcp_server.listing import listed_tools
from app.protocols.mcp_server.results import Call

__all__ = ["perform"]

_INSTRUCTIONS = (
    "Live tools: call one where you know its arguments. "
    "The tool ask takes a question in plain words, and answers it with the others."
)
_CAPABILITIES: Mapping[str, Any] = {"tools": {}}
"""No ``listChanged``: there is nobody to tell, since no connection is held open. A host asks again by itself."""
_FRESH_MS = 300_000
"""How long a host need not ask again for what hardly ever changes while the service runs."""


async def perform(service: ServiceState, exchange: Exchange, context: Mapping[str, Any]) -> Call | bytes:
    """Do what a request asks for, or get the call ready that it asks for.

    Args:
        service: the running service.
        exchange: the request.
        context: values for tools; see :func:`prepare_call`.

    Returns:
        The result as JSON, or a call that is to be made.

    Raises:
        RpcError: there is no such method in this lane, or it cannot be done; also as :func:`prepare_call`.
    """
    match exchange.message.method, exchange.is_modern:
        case "tools/call", _:
            return await prepare_call(service, exchange, context)
        case "tools/list", _:
            return to_json(_tools(service, exchange))
        case "server/discover", True:
            return to_json(_discovered())
        case "initialize", False:
            return to_json(_initialized(exchange))
        case "ping", False:
            return b"{}"
        case method, _:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:64]}")


def _tools(service: ServiceState, exchange: Exchange) -> Mapping[str, Any]:
    if exchange.message.params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "there are no further pages, so no cursor was handed out")
    tools = listed_tools(service, ask_tool())
    # Keys may have tools of their own: one caller's list is not for another one's cache.
    fresh = {"ttlMs": _FRESH_MS, "cacheScope": "private"} if exchange.is_modern else {}
    return {"tools": tools, **fresh}


def _discovered() -> Mapping[str, Any]:
    return {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": _CAPABILITIES,
        "instructions": _INSTRUCTIONS,
        "ttlMs": _FRESH_MS,
        "cacheScope": "public",
    }


def _initialized(exchange: Exchange) -> Mapping[str, Any]:
    asked = exchange.message.params.get("protocolVersion")
    if not isinstance(asked, str):
        raise RpcError(INVALID_PARAMS, "params.protocolVersion must be a text")
    return {
        "protocolVersion": asked if asked in LEGACY_VERSIONS else LEGACY_VERSIONS[0],
        "capabilities": _CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": _INSTRUCTIONS,
    }
