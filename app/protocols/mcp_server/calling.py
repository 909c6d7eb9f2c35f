"""``tools/call``: from the request to a question that the service can answer."""

from collections.abc import Mapping
from typing import Any

from app.api.dependencies import owned
from app.api.service import ServiceState
from app.protocols.mcp_server.ask_tool import ASK, asking_call
from app.protocols.mcp_server.consent import consent_to
from app.protocols.mcp_server.exchange import Exchange
from app.protocols.mcp_server.jsonrpc import INVALID_PARAMS, RpcError
from app.protocols.mcp_server.results import TOOL_RESULT, Call, failed
from toolchat.chat.advisors.idempotency import IdempotencyAdvisor, IdempotentRequest
from toolchat.chat.manual_execution import SessionLockAdvisor, manual_request
from toolchat.errors import NotConfigured, NotFound, ValidationFailed
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError

__all__ = ["prepare_call"]


async def prepare_call(service: ServiceState, exchange: Exchange, context: Mapping[str, Any]) -> Call | bytes:
    """Get a call ready.

    Args:
        service: the running service.
        exchange: the request.
        context: values for the tools behind the model's back: the tenant, and the conversation if there is one.

    Returns:
        The call, or the result where nothing is to be run: arguments that do not fit are told to the host's model.

    Raises:
        RpcError: the request is malformed, there is no such tool, or the user's consent cannot be asked for.
        ToolchatError: the service cannot do it just now.
    """
    name, arguments = _named(exchange)
    try:
        tool = _found(service, name)
        if tool is not None:
            return await _tool_call(service, exchange, tool, arguments, context)
        if name == ASK:
            return await asking_call(service, exchange, arguments, context)
    except ToolExecutionError as error:
        return failed(error)
    except ValidationFailed as error:
        return failed(ToolArgumentsError(error.detail))
    raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:64]}")


async def _tool_call(
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
        name, owner = tool.definition.name, owned(str(context.get("tenantId", "")))
        idempotent = await consent_to(exchange, service.store, owner, name, arguments)
        if not isinstance(idempotent, IdempotentRequest):
            return idempotent
        prompt = prompt.advisors(IdempotencyAdvisor(service.once, idempotent, await service.once.find(idempotent)))
    return Call(prompt, TOOL_RESULT, tells=tool.takes_context)


def _named(exchange: Exchange) -> tuple[str, Mapping[str, Any]]:
    params = exchange.message.params
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "params.name must be the name of a tool")
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object")
    return name, arguments


def _found(service: ServiceState, name: str) -> ToolCallback | None:
    try:
        return service.tools.tool(name)
    except NotFound:
        return None
    except NotConfigured as error:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:64]}: {error.detail}") from None
