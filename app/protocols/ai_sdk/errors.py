"""Errors in the format of the AI SDK: plain text."""

from fastapi import Response

from app.api import problems
from toolchat.errors import ToolchatError

__all__ = ["error_response"]


def error_response(error: ToolchatError, request_id: str) -> Response:
    """Answer with the error's message, with the status and the headers of its problem document.

    ``useChat`` uses the body as the message of its ``error``, which pages show unchanged.
    """
    headers = dict(problems.error_response(error, request_id).headers)
    for name in ("content-length", "content-type"):
        del headers[name]
    return Response(error.detail, error.status, headers, "text/plain")
