"""HTTP responses as bytes: those of the application, and errors of connections whose request cannot be parsed."""

import logging
import os
from collections.abc import Mapping
from typing import Any

import httptools
from pydantic_core import to_json
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from app.api.headers import SECURITY_HEADERS
from app.api.problems import PROBLEM_MEDIA_TYPE, problem
from app.observability.logs import log_event
from toolchat.errors import InvalidRequest, Overloaded, ToolchatError

__all__ = ["ResponseCycle", "error_response", "unparsable_request"]

_log = logging.getLogger("app.request")
_CONTROLS = bytes(each for each in (*range(0x20), 0x7F) if each != ord("\t"))
_URL_ENDED = "Expected HTTP/"
"""Start of the parser's error for a URL that contains a space."""
_SECURITY_LINES = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in SECURITY_HEADERS)


class ResponseCycle(httptools_impl.RequestResponseCycle):
    """uvicorn's request-response cycle with a faster ``send``.

    uvicorn validates and lower-cases each header by itself; here one translation checks all of them.
    """

    async def send(self, message: Any) -> None:
        """Send a message of the application; ASGI requires header names in lower case.

        Raises:
            RuntimeError: the message is not valid, or not valid at this point.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] != ("http.response.body" if self.response_started else "http.response.start"):
            raise RuntimeError(f"unexpected message {message['type']}")
        if self.response_started:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        else:
            self._send_head(message["status"], [*self.default_headers, *message.get("headers", ())])

    def _send_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        lines = [*map(b": ".join, headers)]
        text = b"".join(lines)
        # A line break in a header would let its value inject further headers, or a whole response.
        if text != text.translate(None, _CONTROLS):
            raise RuntimeError("a header contains a control character")
        self.response_started = True
        self.waiting_for_100_continue = False
        lines += self._framing_headers(status, dict(headers))
        self.transport.write(STATUS_LINE[status] + b"\r\n".join([*lines, b"", b""]))

    def _framing_headers(self, status: int, fields: Mapping[bytes, bytes]) -> list[bytes]:
        """Decide how the end of the body is marked (RFC 9112, section 6.3); return the headers that are missing."""
        framing: list[bytes] = []
        if b"close" in fields.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            framing.append(b"connection: close")
        if self.scope["method"] == "HEAD" or status in (204, 304):
            pass  # these have no body, whatever their headers say
        elif b"content-length" in fields:
            self.expected_content_length = int(fields[b"content-length"])
        else:
            self.chunked_encoding = True
            framing.append(b"transfer-encoding: chunked")
        return framing

    def _send_body(self, body: bytes, more_body: bool) -> None:
        if self.response_complete:
            raise RuntimeError("the response is complete already")
        if self.chunked_encoding:
            # An empty chunk would mark the end of the body, so an empty piece is not sent.
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body += b"" if more_body else b"0\r\n\r\n"
        elif self.scope["method"] == "HEAD":
            body = b""
        else:
            self.expected_content_length -= len(body)
        if self.expected_content_length < 0 or (self.expected_content_length and not more_body):
            raise RuntimeError("the length of the body differs from Content-Length")
        self.transport.write(body)
        if not more_body:
            self._finish()

    def _finish(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


# uvicorn's protocol creates a cycle per request, and has no parameter for its class.
httptools_impl.RequestResponseCycle = ResponseCycle  # type: ignore[misc]


def error_response(error: ToolchatError) -> bytes:
    """Build a problem response that closes the connection, for requests that never reach the application; log it."""
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
