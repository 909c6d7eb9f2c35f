"""What the routes of all wires share: their answers in OpenAPI, and how they are added."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import APIRouter, Response

from toolchat.service.api.fast_router import Ask, DirectRoute
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA


class Documentation(NamedTuple):
    """The tag of an API's operations, and the responses to a question."""

    tag: str
    responses: Mapping[int | str, dict[str, Any]]


def documentation_of(tag: str, error: dict[str, Any]) -> Documentation:
    """Documentation of an API with documents and streams; ``error`` is the schema of its errors."""
    document = {"application/json": {"schema": {"type": "object"}}}
    answer = {
        "description": "A document, or with `stream` its events",
        "content": document | {"text/event-stream": {"schema": EVENT_SCHEMA}},
    }
    content = {"application/json": {"schema": error}}
    return Documentation(
        tag, {200: answer, "default": {"description": f"An error in {tag}'s format", "content": content}}
    )


def add_question(
    added: APIRouter,
    path: str,
    endpoint: Ask,
    summary: str,
    request: dict[str, Any],
    *more: Any,
    documentation: Documentation,
) -> None:
    """Add the route of a question: ``request`` is the schema of its body, and ``more`` are its parameters."""
    body = {"required": True, "content": {"application/json": {"schema": request}}}
    added.add_api_route(
        path,
        endpoint,
        methods=["POST"],
        tags=[documentation.tag],
        summary=summary,
        response_class=Response,
        responses={**documentation.responses},
        route_class_override=DirectRoute,
        openapi_extra={"requestBody": body} | ({"parameters": [*more]} if more else {}),
    )
