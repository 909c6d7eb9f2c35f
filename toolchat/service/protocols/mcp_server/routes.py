"""The route of MCP, ``POST /mcp``, and its metadata for OAuth clients (RFC 9728)."""

import asyncio
from importlib import import_module
from typing import Any

from fastapi import APIRouter, Request, Response

from toolchat.errors import NotFound
from toolchat.service.access.runtime import Access
from toolchat.service.api.dependencies import refuse_cross_site
from toolchat.service.api.fast_router import Ask, DirectRoute
from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.problems import PROBLEM_MEDIA_TYPE, problems
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA

METADATA = "/.well-known/oauth-protected-resource/mcp"

_DESCRIPTION = """\
The Model Context Protocol, as Streamable HTTP: 2026-07-28, and the versions that begin with `initialize`.
Errors are JSON-RPC errors; if the service itself failed, their `data` is its problem document.
"""
_OBJECT: dict[str, Any] = {"schema": {"type": "object"}}
_MESSAGE = {**_OBJECT, "example": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}
_PROBLEM = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The response; as events if anything comes before it, such as a question to the user",
        "content": {"application/json": _OBJECT, "text/event-stream": {"schema": EVENT_SCHEMA}},
    },
    202: {"description": "A notification or a response was accepted"},
    "default": {
        "description": "A JSON-RPC error; a problem document if the request was rejected before its message was read",
        "content": {"application/json": _OBJECT, **_PROBLEM},
    },
}
_answer: Ask | None = None


def add_mcp(router: APIRouter) -> None:
    """Add the route to the application's router itself, which lets the fast router call it."""
    router.add_api_route(
        "/mcp",
        answer_message,
        methods=["POST"],
        response_class=Response,
        responses=_RESPONSES,
        route_class_override=DirectRoute,
        tags=["MCP"],
        summary="MCP server: list and call the tools",
        description=_DESCRIPTION,
        openapi_extra={"requestBody": {"content": {"application/json": _MESSAGE}, "required": True}},
    )

    router.add_api_route(
        METADATA,
        resource_metadata,
        methods=["GET"],
        responses=problems(NotFound),
        tags=["MCP"],
        summary="Show how MCP hosts authenticate",
        openapi_extra={"security": []},
    )


async def resource_metadata(request: Request) -> dict[str, Any]:
    """The metadata of the protected resource `/mcp` (RFC 9728): which identity provider issues its tokens, if any does.

    Without `authorization_servers` only keys are accepted, in the header `Authorization: Bearer KEY`.
    """
    access: Access = request.app.state.access
    if not access.needs_key:
        raise NotFound("/mcp needs no key")
    metadata = {
        "resource": f"{access.own_address(request.scope)}/mcp",
        "resource_name": "toolchat",
        "bearer_methods_supported": ["header"],
    }
    return metadata | ({"authorization_servers": [access.issuer]} if access.issuer else {})


async def answer_message(request: Request) -> Response:
    """Answer one JSON-RPC message."""
    global _answer
    refuse_cross_site(request)
    if _answer is None:
        # In a thread: the import takes most of a second, in which other requests must be answered.
        _answer = (await asyncio.to_thread(import_module, f"{__package__}.transport")).answer
    return await _answer(request)


MCP = ProtocolAdapter("/mcp", add_mcp, resource_metadata=METADATA)
