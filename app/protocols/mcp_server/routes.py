"""The route of MCP, ``POST /mcp``: Streamable HTTP without sessions."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from app.api import problems
from app.api.body_limits import body_of
from app.api.dependencies import refuse_cross_site, tenant_of
from app.api.fast_router import QuestionRoute
from app.api.headers import answer_headers
from app.api.problems import ERROR_RESPONSE, PROBLEM_MEDIA_TYPE
from app.api.responses.active_request import ActiveRequest
from app.api.responses.event_stream import EVENT_SCHEMA
from app.api.service import service_state
from app.api.sessions import conversation_of
from app.protocols.mcp_server.jsonrpc import (
    INVALID_REQUEST,
    Exchange,
    Message,
    RpcError,
    header_version,
    open_exchange,
    read_message,
)
from app.protocols.mcp_server.methods import perform
from app.protocols.mcp_server.streaming import streamed_call
from app.protocols.mcp_server.tools import execute_call
from toolchat.errors import ToolchatError
from toolchat.tool_calling.context import CONVERSATION_ID

__all__ = ["add_mcp"]

_JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json\s*(;|$)", re.IGNORECASE)
_JSON, _EVENTS = "application/json", "text/event-stream"
_NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store"}
_MESSAGE = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {"jsonrpc": {"const": "2.0"}, "method": {"type": "string"}},
}
_EXAMPLE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_DESCRIPTION = """\
The Model Context Protocol, as Streamable HTTP without sessions: 2026-07-28, and 2025-11-25 and 2025-06-18 for clients
that begin with `initialize`. Errors are JSON-RPC errors; if the service itself failed, their `data` is its problem
document.
"""
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The response; as events if the client requested progress notifications",
        "content": {_JSON: {"schema": {"type": "object"}}, _EVENTS: {"schema": EVENT_SCHEMA}},
    },
    202: {"description": "A notification was accepted"},
    "default": {
        "description": "A JSON-RPC error; a problem document if the request was rejected before its message was read",
        "content": {
            _JSON: {"schema": {"type": "object"}},
            PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}},
        },
    },
}


def add_mcp(router: APIRouter) -> None:
    """Add the route to the application's router itself, which lets the fast router call it."""
    body = {"content": {_JSON: {"schema": _MESSAGE, "example": _EXAMPLE}}, "required": True}
    router.add_api_route(
        "/mcp",
        answer_message,
        methods=["POST"],
        response_class=Response,
        responses=_RESPONSES,
        route_class_override=QuestionRoute,
        tags=["MCP"],
        summary="Speak MCP: list and call the tools",
        description=_DESCRIPTION,
        openapi_extra={"requestBody": body},
    )


async def answer_message(request: Request) -> Response:
    """Answer one JSON-RPC message.

    Raises:
        ToolchatError: the request was rejected, or the service failed. The exception handlers answer with a problem
            document, or with a JSON-RPC error once the request is valid.
    """
    refuse_cross_site(request)
    headers, message, exchange = request.headers.getlist, None, None
    try:
        message = await _read(request)
        if message.id is None:
            header_version(headers)
            return Response(status_code=202)
        exchange = open_exchange(message, headers)
        return await _answer(request, exchange)
    except RpcError as error:
        request.state.outcome = f"rpc-error{error.code}"
        status = exchange.status(error) if exchange else error.status
        # Without an id if the request's id could not be read.
        return _json_response(error.response(message.id if message else error.id), status=status)


async def _read(request: Request) -> Message:
    if not _JSON_TYPE.match(request.headers.get("content-type", "")):
        raise RpcError(INVALID_REQUEST, "the message must be sent as application/json")
    return read_message(await body_of(request))


async def _answer(request: Request, exchange: Exchange) -> Response:
    service, token, context = service_state(request), exchange.progress_token, _context(request)
    # From here on the client waits for a response with its id, so every error must become one.
    request.scope["state"][ERROR_RESPONSE] = partial(_error_response, exchange)
    call = await perform(service, exchange, context)
    if isinstance(call, bytes):
        return _json_response(exchange.response(call))
    if token is not None and call.reports_progress and _EVENTS in request.headers.get("accept", ""):
        request.state.form = _EVENTS
        return streamed_call(request, service, exchange, call, token)
    request.state.form = call.form.media_type
    active = ActiveRequest(request, service, call.prompt, call.taken)
    result = await execute_call(active, call.form)
    return _json_response(exchange.response(result), answer_headers(active))


def _context(request: Request) -> dict[str, Any]:
    """Values for tools that the model does not see: the tenant, and the conversation if the URL names one."""
    context: dict[str, Any] = {"tenantId": tenant_of(request)}
    if request.scope["query_string"] and (sessions := request.query_params.getlist("sessionId")):
        context[CONVERSATION_ID] = conversation_of(sessions[-1])
    return context


def _json_response(body: bytes, headers: Mapping[str, str] = _NO_STORE, status: int = 200) -> Response:
    return Response(body, status, headers, _JSON)


def _error_response(exchange: Exchange, error: ToolchatError, request_id: str) -> Response:
    """Answer an error of the service as a JSON-RPC error, with the headers of its problem document."""
    rpc_error = RpcError.from_error(error, problems.problem(error, request_id))
    return _json_response(exchange.error(rpc_error), problems.error_headers(error), exchange.status(rpc_error))
