"""Errors in Anthropic's format: types and status codes."""

from typing import Any

from fastapi import Response
from pydantic_core import to_json

from toolchat.errors import ContextTooLong, ToolchatError
from toolchat.service.api.problems import error_headers

REQUEST_ID = "request-id"
"""The header in which the official clients look for the request's id."""
_STATUSES = {"validation": 400, "context-too-long": 400, "content-filtered": 400, "provider-rate-limited": 429}
"""Codes for which Anthropic uses another status."""
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


NO_THREADS = "thread: not supported; send all messages, or the header X-Session-ID"
THREAD_UNSUPPORTED = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
"""The details that make the tool runners of the official clients send the whole conversation with every request."""


def error_document(error: ToolchatError, request_id: str) -> dict[str, Any]:
    """An error as the body of a response, or as the event ``error`` of a stream."""
    status = _status(error)
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    # Agents compact their conversation when they read these words.
    message = f"prompt is too long: {error.detail}" if isinstance(error, ContextTooLong) else error.detail
    details = {"details": THREAD_UNSUPPORTED} if error.detail == NO_THREADS else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": request_id}


def error_response(error: ToolchatError, request_id: str) -> Response:
    # Without x-should-retry the official clients would retry most errors, and every attempt costs a model call.
    retried = {"x-should-retry": "true" if error.retryable else "false", REQUEST_ID: request_id}
    body = to_json(error_document(error, request_id))
    return Response(body, _status(error), error_headers(error) | retried, "application/json")


def _status(error: ToolchatError) -> int:
    return _STATUSES.get(error.code, error.status)
