"""Errors in OpenAI's words."""

import re
from collections.abc import Mapping
from typing import Any

from fastapi import Response
from pydantic_core import to_json

from app.api import problems
from toolchat.errors import InvalidRequest, NotFound, ToolchatError

__all__ = ["BadRequest", "ModelNotFound", "error_document", "error_response", "limit_headers"]


_KINDS = {"minute": "requests", "day": "tokens"}
"""What OpenAI's headers can tell of our quotas; how many at once they have no word for."""
_POLICY = re.compile(r'"(\w+)";q=(\d+)')
_STATE = re.compile(r'"(\w+)";r=(\d+);t=(\d+)')


def limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Say once more what ``RateLimit-Policy`` and ``RateLimit`` say; nothing where they are not there."""
    limits = dict(_POLICY.findall(headers.get("RateLimit-Policy", "")))
    told: dict[str, str] = {}
    for name, remaining, seconds in _STATE.findall(headers.get("RateLimit", "")):
        if kind := _KINDS.get(name):
            told |= {
                f"x-ratelimit-limit-{kind}": limits[name],
                f"x-ratelimit-remaining-{kind}": remaining,
                f"x-ratelimit-reset-{kind}": f"{seconds}s",
            }
    return told


_STATUSES = {"validation": 400, "context-too-long": 400, "content-filtered": 400, "provider-rate-limited": 429}
"""Where OpenAI's status for a code is another one than ours."""
_CODES = {
    "context-too-long": "context_length_exceeded",
    "content-filtered": "content_filter",
    "provider-rate-limited": "rate_limit_exceeded",
    "quota-exceeded": "rate_limit_exceeded",
    "unauthorized": "invalid_api_key",
}
"""The words of OpenAI that clients look for; every other code is ours, written as theirs are."""
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class BadRequest(InvalidRequest):
    """The request cannot be answered as it is; ``param`` is where the fault is."""

    code = "invalid-value"

    def __init__(self, detail: str, param: str | None = None) -> None:
        super().__init__(detail)
        self.param = param


class ModelNotFound(NotFound):
    """There is no model of this name."""

    code = "model-not-found"
    param = "model"


def error_document(error: ToolchatError) -> dict[str, Any]:
    """An error as OpenAI has it, as the body of a response or as a piece of a stream."""
    status = _STATUSES.get(error.code, error.status)
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = _CODES.get(error.code, error.code.replace("-", "_"))
    return {"error": {"message": error.detail, "type": kind, "param": getattr(error, "param", None), "code": code}}


def error_response(error: ToolchatError, request_id: str) -> Response:
    """Answer with an error, with the headers of its problem document; says whether trying again makes sense.

    The official clients try most errors again unless ``x-should-retry`` says otherwise, and each time costs a question.
    """
    headers = dict(problems.error_response(error, request_id).headers)
    for name in ("content-length", "content-type"):
        del headers[name]
    headers |= limit_headers(error.headers)
    headers["x-should-retry"] = "true" if error.retryable else "false"
    status = _STATUSES.get(error.code, error.status)
    return Response(to_json(error_document(error)), status, headers, "application/json")
