"""The answers of OpenAI's APIs in OpenAPI."""

from typing import Any

from fastapi import APIRouter, Response

from toolchat.service.api.fast_router import ReadRoute
from toolchat.service.protocols.documentation import documentation_of

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in ("message", "type", "param", "code")},
        }
    },
}
DOCUMENTATION = documentation_of("OpenAI", _ERROR)
_DOCUMENT: dict[str, Any] = {
    "description": "A document in OpenAI's format",
    "content": {"application/json": {"schema": {"type": "object"}}},
}


def documents_router() -> APIRouter:
    """A router for documents in OpenAI's format."""
    responses = {**DOCUMENTATION.responses, 200: _DOCUMENT}
    return APIRouter(tags=["OpenAI"], route_class=ReadRoute, default_response_class=Response, responses=responses)
