"""The service as a server of the official SDK: it validates messages and results, and knows the protocol's versions."""

from mcp.server import CacheHint, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, PaginatedRequestParams
from pydantic import ValidationError

from toolchat import __version__
from toolchat.errors import NotConfigured, NotFound, ValidationFailed
from toolchat.service.api.service import ServiceState
from toolchat.service.observability import tracing
from toolchat.service.observability.semantic_conventions import mcp_attributes
from toolchat.service.protocols.mcp_server.ask_tool import ASK, ask_tool, prepare_question
from toolchat.service.protocols.mcp_server.calls import (
    Call,
    Context,
    Origin,
    Result,
    error_result,
    run_call,
    takes_any_structure,
)
from toolchat.service.protocols.mcp_server.tools import list_tools, prepare_tool_call
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError

_INSTRUCTIONS = (
    "Live tools: call one directly if you know its arguments. "
    "The tool ask takes a question in natural language and answers it with the other tools."
)
LIST_TTL_MS = 300_000
"""How long a host may cache the list of tools, which hardly ever changes while the service runs."""


async def _list_tools(ctx: Context, params: PaginatedRequestParams) -> Result:
    if params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "unknown cursor: the list has a single page")
    return {
        "resultType": "complete",
        "tools": list_tools(ctx.lifespan_context, ask_tool(), takes_any=takes_any_structure(ctx)),
    }


async def _call_tool(ctx: Context, params: CallToolRequestParams) -> Result:
    """Run a call; invalid arguments become a result, so that the host's model can correct them."""
    if ctx.request is None:
        raise TypeError("a transport must say where a request comes from")
    try:
        prepared = await _prepare(ctx, ctx.request, params)
    except ToolExecutionError as error:
        prepared = error_result(error)
    except ValidationFailed as error:
        prepared = error_result(ToolArgumentsError(error.detail))
    result = await run_call(ctx, ctx.request, prepared) if isinstance(prepared, Call) else prepared
    return {"resultType": "complete", **result}


async def _prepare(ctx: Context, origin: Origin, params: CallToolRequestParams) -> Call | Result:
    tool = _find_tool(ctx.lifespan_context, params.name)
    if tool is not None:
        return await prepare_tool_call(ctx, tool, params, origin.context)
    if params.name == ASK:
        return await prepare_question(ctx, params, origin.context)
    raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:64]}")


def _find_tool(service: ServiceState, name: str) -> ToolCallback | None:
    try:
        return service.tools.tool(name)
    except NotFound:
        return None
    except NotConfigured as error:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:64]}: {error.detail}") from None


async def _traced(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Record the span of a request, while traces are on."""
    if tracing.observer is None:
        return await _validated(ctx, call_next)
    target = str((ctx.params or {}).get("name", ""))[:64] if ctx.method == "tools/call" else ""
    attributes = mcp_attributes(ctx.method, ctx.protocol_version, target)
    with tracing.observer.mcp_request(ctx.method, target, attributes, ctx.meta or {}) as request:
        result = await _validated(ctx, call_next)
        if isinstance(result, dict) and result.get("isError"):
            request.failure = "tool_error"
        return result


async def _validated(ctx: Context, call_next: CallNext) -> HandlerResult:
    try:
        return await call_next(ctx)
    except ValidationError:
        raise MCPError(INVALID_PARAMS, "Invalid request parameters") from None


# The list is private: it depends on the key, so a shared cache must not serve it to another caller.
SERVER = Server[ServiceState](
    "toolchat",
    title="toolchat",
    version=__version__,
    instructions=_INSTRUCTIONS,
    cache_hints={"tools/list": CacheHint(LIST_TTL_MS), "server/discover": CacheHint(LIST_TTL_MS, "public")},
)
"""Serves every running service: the one that answers a request is the request's ``lifespan_context``."""
SERVER.add_request_handler("tools/list", PaginatedRequestParams, _list_tools)
SERVER.add_request_handler("tools/call", CallToolRequestParams, _call_tool)
SERVER.middleware[:] = [_traced]  # instead of the SDK's, whose spans contain the messages of errors
