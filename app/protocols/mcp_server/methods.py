"""The methods of MCP: dispatch, discovery and handshake, ``tools/list``, and the preparation of ``tools/call``."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from app.api.dependencies import scoped_key
from app.api.service import ServiceState
from app.protocols.mcp_server.ask_tool import ASK, ask_tool, prepare_question
from app.protocols.mcp_server.consent import require_consent
from app.protocols.mcp_server.jsonrpc import (
    INVALID_PARAMS,
    LEGACY_VERSIONS,
    METHOD_NOT_FOUND,
    MODERN_VERSION,
    SERVER_INFO,
    Exchange,
    RpcError,
)
from app.protocols.mcp_server.tools import TOOL_RESULT, Call, error_result, list_tools
from toolchat.chat.advisors.idempotency import IdempotencyAdvisor, IdempotentRequest
from toolchat.chat.manual_execution import SessionLockAdvisor, manual_request
from toolchat.errors import NotConfigured, NotFound, ValidationFailed
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError

__all__ = ["perform"]

_INSTRUCTIONS = (
    "Live tools: call one directly if you know its arguments. "
    "The tool ask takes a question in natural language and answers it with the other tools."
)
_CAPABILITIES: Mapping[str, Any] = {"tools": {}}
"""No ``listChanged``: no connection is held open on which a host could be notified."""
LIST_TTL_MS = 300_000
"""How long a host may cache the list of tools, which hardly ever changes while the service runs."""


async def perform(service: ServiceState, exchange: Exchange, context: Mapping[str, Any]) -> Call | bytes:
    """Answer a request, or prepare the call that it makes.

    Args:
        service: the running service.
        exchange: the request.
        context: values for tools that the model does not see: the tenant, and the conversation if there is one.

    Returns:
        The result as JSON, or a call to run.

    Raises:
        RpcError: the lane has no such method, the parameters are malformed, there is no such tool, or its user cannot
            be asked for consent.
        ToolchatError: the service is unable to do it at present.
    """
    match exchange.message.method, exchange.is_modern:
        case "tools/call", _:
            return await _prepare_call(service, exchange, context)
        case "tools/list", _:
            return to_json(_tools(service, exchange))
        case "server/discover", True:
            return to_json(_discovery())
        case "initialize", False:
            return to_json(_initialization(exchange))
        case "ping", False:
            return b"{}"
        case method, _:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:64]}")


def _tools(service: ServiceState, exchange: Exchange) -> Mapping[str, Any]:
    if exchange.message.params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "unknown cursor: the list has a single page")
    tools = list_tools(service, ask_tool())
    # Private: the list depends on the key, so a shared cache must not serve it to another caller.
    caching = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"} if exchange.is_modern else {}
    return {"tools": tools, **caching}


def _discovery() -> Mapping[str, Any]:
    return {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": _CAPABILITIES,
        "instructions": _INSTRUCTIONS,
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
    }


def _initialization(exchange: Exchange) -> Mapping[str, Any]:
    requested = exchange.message.params.get("protocolVersion")
    if not isinstance(requested, str):
        raise RpcError(INVALID_PARAMS, "params.protocolVersion must be a string")
    return {
        "protocolVersion": requested if requested in LEGACY_VERSIONS else LEGACY_VERSIONS[0],
        "capabilities": _CAPABILITIES,
        "serverInfo": SERVER_INFO,
        "instructions": _INSTRUCTIONS,
    }


async def _prepare_call(service: ServiceState, exchange: Exchange, context: Mapping[str, Any]) -> Call | bytes:
    """Prepare a call; invalid arguments become a result, so that the host's model can correct them."""
    name, arguments = _call_params(exchange)
    try:
        tool = _find_tool(service, name)
        if tool is not None:
            return await _prepare_tool_call(service, exchange, tool, arguments, context)
        if name == ASK:
            return await prepare_question(service, exchange, arguments, context)
    except ToolExecutionError as error:
        return error_result(error)
    except ValidationFailed as error:
        return error_result(ToolArgumentsError(error.detail))
    raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:64]}")


async def _prepare_tool_call(
    service: ServiceState,
    exchange: Exchange,
    tool: ToolCallback,
    arguments: Mapping[str, Any],
    context: Mapping[str, Any],
) -> Call | bytes:
    prompt = manual_request(service.manual_client, tool, arguments, context)
    if CONVERSATION_ID in context:
        prompt = prompt.advisors(SessionLockAdvisor(service.memory))
    if tool.metadata.requires_approval:
        name, owner = tool.definition.name, scoped_key(str(context.get("tenantId", "")))
        consent = await require_consent(exchange, service.store, owner, name, arguments)
        if not isinstance(consent, IdempotentRequest):
            return consent
        prompt = prompt.advisors(
            IdempotencyAdvisor(service.idempotency, consent, await service.idempotency.find(consent))
        )
    return Call(prompt, TOOL_RESULT, reports_progress=tool.takes_context)


def _call_params(exchange: Exchange) -> tuple[str, Mapping[str, Any]]:
    params = exchange.message.params
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "params.name must be the name of a tool")
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object")
    return name, arguments


def _find_tool(service: ServiceState, name: str) -> ToolCallback | None:
    try:
        return service.tools.tool(name)
    except NotFound:
        return None
    except NotConfigured as error:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:64]}: {error.detail}") from None
