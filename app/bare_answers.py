"""Answers where no request could be read, so that nothing but the connection is there to make them."""

import os

from pydantic_core import to_json

from app.api.middleware import SECURITY_HEADERS
from app.api.problems import PROBLEM_MEDIA_TYPE, problem
from app.errors import ToolchatError

__all__ = ["bare_answer"]

_SECURITY_LINES = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in SECURITY_HEADERS)


def bare_answer(error: ToolchatError) -> bytes:
    """A whole response that tells an error, and that the connection ends with it."""
    request_id, again = os.urandom(8).hex(), "retry-after: 1\r\n" if error.retryable else ""
    body = to_json(problem(error, request_id))
    head = (
        f"HTTP/1.1 {error.status} {error.title}\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nx-request-id: {request_id}\r\ncache-control: no-store\r\n"
        f"{_SECURITY_LINES}{again}connection: close\r\n\r\n"
    )
    return head.encode() + body
