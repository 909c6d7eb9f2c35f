"""Problem documents as bytes, for requests that never reach the application."""

import logging
import os

import httptools
from pydantic_core import to_json

from app.api.headers import SECURITY_HEADERS
from app.api.problems import PROBLEM_MEDIA_TYPE, problem
from app.observability.logs import log_event
from toolchat.errors import InvalidRequest, Overloaded, ToolchatError

__all__ = ["error_response", "unparsable_request"]

_log = logging.getLogger("app.request")
_URL_ENDED = "Expected HTTP/"
"""Start of the parser's error for a URL that contains a space."""
_SECURITY_LINES = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in SECURITY_HEADERS)


def error_response(error: ToolchatError) -> bytes:
    """Build a problem response that closes the connection; log it."""
    request_id, retry_after = os.urandom(8).hex(), "retry-after: 1\r\n" if error.retryable else ""
    if not isinstance(error, Overloaded):  # the connection limit logs its refusals once a minute
        fields = {"request_id": request_id, "status": error.status, "outcome": error.code, "detail": error.detail}
        log_event(_log, logging.INFO, "request refused", fields)
    body = to_json(problem(error, request_id))
    head = (
        f"HTTP/1.1 {error.status} {error.title}\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nx-request-id: {request_id}\r\ncache-control: no-store\r\n"
        f"{_SECURITY_LINES}{retry_after}connection: close\r\n\r\n"
    )
    return head.encode() + body


def unparsable_request(fault: BaseException | None) -> InvalidRequest:
    """Convert an error of the parser; errors about the URL are replaced, because their text would show the URL."""
    is_url_error = isinstance(getattr(fault, "__context__", None) or fault, httptools.HttpParserInvalidURLError)
    if is_url_error or str(fault).startswith(_URL_ENDED):
        return InvalidRequest("the URL cannot be read; it must be percent-encoded (curl: --get --data-urlencode)")
    is_parser_error = type(fault) in (httptools.HttpParserError, httptools.HttpParserInvalidMethodError)
    return InvalidRequest(f"this is not HTTP/1.1: {fault}" if is_parser_error else "this is not HTTP/1.1")
