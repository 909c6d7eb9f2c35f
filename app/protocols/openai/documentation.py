"""What the routes of OpenAI's APIs share in OpenAPI."""

from typing import Any

from app.api.responses.event_stream import EVENT_SCHEMA

__all__ = ["ANSWER_RESPONSES", "DOCUMENT_RESPONSES", "TAG"]

TAG = "OpenAI"

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in ("message", "type", "param", "code")},
        }
    },
}
_ERROR_RESPONSE = {"description": "An error in OpenAI's format", "content": {"application/json": {"schema": _ERROR}}}
DOCUMENT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A document in OpenAI's format",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    "default": _ERROR_RESPONSE,
}
ANSWER_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A document, or with `stream` its events",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": EVENT_SCHEMA},
        },
    },
    "default": _ERROR_RESPONSE,
}
