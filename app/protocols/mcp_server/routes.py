"""The one route of the protocol, ``POST /mcp``."""

import re
from typing import Any

from fastapi import APIRouter, Request, Response

from app.api.body_limits import body_of
from app.api.dependencies import refuse_cross_site, tenant_of
from app.api.fast_router import QuestionRoute
from app.api.problems import PROBLEM_MEDIA_TYPE
from app.api.responses.active_request import ActiveRequest
from app.api.responses.formats import EVENT_SCHEMA
from app.api.service import service_state
from app.api.sessions import conversation_of
from app.protocols.mcp_server.exchange import Exchange, checked_version, exchange_of
from app.protocols.mcp_server.jsonrpc import INVALID_REQUEST, Message, RpcError, read_message
from app.protocols.mcp_server.methods import perform
from app.protocols.mcp_server.replies import failure, refusal, reply
from app.protocols.mcp_server.results import TOOL_RESULT, made
from app.protocols.mcp_server.streaming import streamed_call
from toolchat.errors import ToolchatError
from toolchat.tool_calling.context import CONVERSATION_ID

__all__ = ["add_mcp"]

_JSON = re.compile(r"application/([\w.-]+\+)?json\s*(;|$)", re.IGNORECASE)
_EVENTS = "text/event-stream"
_MESSAGE = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {"jsonrpc": {"const": "2.0"}, "method": {"type": "string"}},
}
_EXAMPLE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_DESCRIPTION = """\
The Model Context Protocol, as Streamable HTTP without sessions: 2026-07-28, and 2025-11-25 and 2025-06-18 for clients
that begin with `initialize`. Errors are JSON-RPC errors; where the service itself failed, their `data` is its problem
document.
"""
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The response; as events where the client asked to be told of progress",
        "content": {"application/json": {"schema": {"type": "object"}}, _EVENTS: {"schema": EVENT_SCHEMA}},
    },
    202: {"description": "A notification was taken"},
    "default": {
        "description": "A JSON-RPC error; a problem document for what is refused before the message is read",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}},
        },
    },
}


def add_mcp(router: APIRouter) -> None:
    """Add the route to the application's router, where it can be called without the framework's detours."""
    body = {"content": {"application/json": {"schema": _MESSAGE, "example": _EXAMPLE}}, "required": True}
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
    """Answer one JSON-RPC message; raises ``ToolchatError`` for what is refused before it is read."""
    refuse_cross_site(request)
    headers, message, exchange = request.headers.getlist, None, None
    try:
        message = await _message(request)
        if message.id is None:
            checked_version(headers)
            return Response(status_code=202)
        exchange = exchange_of(message, headers)
        return await _answer(request, exchange)
    except RpcError as error:
        request.state.outcome = f"rpc-error{error.code}"
        status = exchange.status(error) if exchange else error.status
        return refusal(error, message.id if message else error.id, status)


async def _message(request: Request) -> Message:
    if not _JSON.match(request.headers.get("content-type", "")):
        raise RpcError(INVALID_REQUEST, "the message must be sent as application/json")
    return read_message(await body_of(request))


async def _answer(request: Request, exchange: Exchange) -> Response:
    service, token, context = service_state(request), exchange.progress_token, _context(request)
    try:
        done = await perform(service, exchange, context)
        if isinstance(done, bytes):
            return reply(exchange.response(done))
        if token is not None and done.tells and _EVENTS in request.headers.get("accept", ""):
            request.state.form = _EVENTS
            return streamed_call(request, service, exchange, done, token)
        request.state.form = done.form.media_type
        asked = ActiveRequest(request, service, done.prompt, done.taken)
        result = await made(asked, done.form)
        if done.form is TOOL_RESULT:
            del asked.headers["X-Chat-Model"]  # no model had a part in it
        return reply(exchange.response(result), asked.headers)
    except ToolchatError as error:
        request.state.outcome = error.code
        return failure(error, request.state.request_id, exchange)


def _context(request: Request) -> dict[str, Any]:
    """What tools are told behind the model's back: the tenant, and the conversation that the URL names, if it does."""
    context: dict[str, Any] = {"tenantId": tenant_of(request)}
    if request.scope["query_string"] and (sessions := request.query_params.getlist("sessionId")):
        context[CONVERSATION_ID] = conversation_of(sessions[-1])
    return context
