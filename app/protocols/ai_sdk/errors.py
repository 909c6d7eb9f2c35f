"""Errors in the format of the AI SDK: plain text."""

from fastapi import Response

from app.api.problems import error_headers
from toolchat.errors import ToolchatError

__all__ = ["error_response"]


def error_response(error: ToolchatError, request_id: str) -> Response:  # noqa: ARG001
    """Answer with the error's message, with the status and the headers of its problem document.

    ``useChat`` uses the body as the message of its ``error``, which pages show unchanged.
    """
    return Response(error.detail, error.status, error_headers(error), "text/plain")
