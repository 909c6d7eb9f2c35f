"""Answers where no request could be read, so that nothing but the connection is there to make them."""

import logging
import os

import httptools
from pydantic_core import to_json

from app.api.guard import SECURITY_HEADERS
from app.api.problems import PROBLEM_MEDIA_TYPE, problem
from app.observability.logs import log_event
from toolchat.errors import InvalidRequest, Overloaded, ToolchatError

__all__ = ["bare_answer", "unreadable"]

_log = logging.getLogger("app.request")
_URL_ENDED = "Expected HTTP/"
"""How the parser begins to say that a URL has a blank in it."""
_SECURITY_LINES = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in SECURITY_HEADERS)


def bare_answer(error: ToolchatError) -> bytes:
    """A whole response that tells an error, and that the connection ends with it; the log has it under its id."""
    request_id, again = os.urandom(8).hex(), "retry-after: 1\r\n" if error.retryable else ""
    if not isinstance(error, Overloaded):  # who refuses connections tells of that once a minute
        fields = {"request_id": request_id, "status": error.status, "outcome": error.code, "detail": error.detail}
        log_event(_log, logging.INFO, "request refused", fields)
    body = to_json(problem(error, request_id))
    head = (
        f"HTTP/1.1 {error.status} {error.title}\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nx-request-id: {request_id}\r\ncache-control: no-store\r\n"
        f"{_SECURITY_LINES}{again}connection: close\r\n\r\n"
    )
    return head.encode() + body


def unreadable(fault: BaseException | None) -> InvalidRequest:
    """What is wrong with bytes that are no request, by the parser's error; those of a URL would show it."""
    of_url = isinstance(getattr(fault, "__context__", None) or fault, httptools.HttpParserInvalidURLError)
    if of_url or str(fault).startswith(_URL_ENDED):
        return InvalidRequest("the URL cannot be read; it must be percent-encoded (curl: --get --data-urlencode)")
    known = type(fault) in (httptools.HttpParserError, httptools.HttpParserInvalidMethodError)
    return InvalidRequest(f"this is not HTTP/1.1: {fault}" if known else "this is not HTTP/1.1")
