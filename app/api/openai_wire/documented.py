"""What OpenAPI says of OpenAI's wire: enough to try it; the whole is OpenAI's own documentation."""

from typing import Any

from app.api.answering.format import EVENT_SCHEMA
from app.api.sessions import SESSION_HEADER

__all__ = ["COMPLETION_RESPONSES", "MODEL_RESPONSES", "REQUEST_BODY"]

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in ("message", "type", "param", "code")},
        }
    },
}
_REFUSED = {"description": "An error in OpenAI's form", "content": {"application/json": {"schema": _ERROR}}}
_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "enum": ["system", "developer", "user", "assistant", "tool"]},
        "content": {"type": ["string", "array", "null"]},
    },
}
_REQUEST = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string"},
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "stream": {"type": ["boolean", "null"]},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}},
    },
    "example": {"model": "toolchat", "messages": [{"role": "user", "content": "What time is it in London?"}]},
}

REQUEST_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    "parameters": [
        SESSION_HEADER,
        {
            "name": "X-Toolchat-Progress",
            "in": "header",
            "required": False,
            "description": "`open-webui`: a stream tells what tools do, in events of Open WebUI",
            "schema": {"type": "string", "example": "open-webui"},
        },
    ],
}
MODEL_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "As OpenAI answers", "content": {"application/json": {"schema": {"type": "object"}}}},
    "default": _REFUSED,
}
COMPLETION_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A completion, or with `stream` its chunks",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": EVENT_SCHEMA},
        },
    },
    "default": _REFUSED,
}
