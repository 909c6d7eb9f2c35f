"""Errors in OpenAI's format: types, codes, status codes and rate limit headers."""

import math
from collections.abc import Sequence
from typing import Any

from fastapi import Response
from pydantic_core import to_json

from toolchat.errors import QuotaExceeded, ToolchatError
from toolchat.service.access.usage import QuotaUsage
from toolchat.service.api.problems import error_headers

_KINDS = {"minute": "requests", "day": "tokens"}
"""OpenAI's names for two of the quotas; it has none for concurrent requests."""


def limit_headers(usage: Sequence[QuotaUsage]) -> dict[str, str]:
    """Translate the state of the quotas into OpenAI's headers; empty if no quota applies."""
    headers: dict[str, str] = {}
    for each in usage:
        if kind := _KINDS.get(each.kind):
            headers |= {
                f"x-ratelimit-limit-{kind}": str(each.limit),
                f"x-ratelimit-remaining-{kind}": str(max(each.remaining, 0)),
                f"x-ratelimit-reset-{kind}": f"{math.ceil(each.wait)}s",
            }
    return headers


_STATUSES = {"validation": 400, "context-too-long": 400, "content-filtered": 400, "provider-rate-limited": 429}
"""Codes for which OpenAI uses another status."""
_CODES = {
    "context-too-long": "context_length_exceeded",
    "content-filtered": "content_filter",
    "provider-rate-limited": "rate_limit_exceeded",
    "quota-exceeded": "rate_limit_exceeded",
    "unauthorized": "invalid_api_key",
}
"""OpenAI's codes that clients look for; all other codes are the service's own, in OpenAI's spelling."""
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_document(error: ToolchatError) -> dict[str, Any]:
    """An error as the body of a response, or as an event of a stream."""
    status = _STATUSES.get(error.code, error.status)
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = _CODES.get(error.code, error.code.replace("-", "_"))
    return {"error": {"message": error.detail, "type": kind, "param": getattr(error, "param", None), "code": code}}


def error_response(error: ToolchatError, request_id: str) -> Response:  # noqa: ARG001
    # Without x-should-retry the official clients would retry most errors, and every attempt costs a model call.
    headers = error_headers(error) | {"x-should-retry": "true" if error.retryable else "false"}
    if isinstance(error, QuotaExceeded):
        headers |= limit_headers(error.usage)
    status = _STATUSES.get(error.code, error.status)
    return Response(to_json(error_document(error)), status, headers, "application/json")
