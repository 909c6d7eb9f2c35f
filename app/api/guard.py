"""What every request passes: its id, its log lines, its last safety net, and the watch for a client who leaves."""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.runtime import Access
from app.api import problems
from app.api.body_limits import MAX_BODY_BYTES, PIECE_BYTES, Bodies, Body, Connection, UnreadAnswers, connection_of
from app.api.headers import with_security_headers
from app.api.problems import ERROR_RESPONSE, refusal
from app.observability import spans
from app.observability.logs import hashed, log_event
from app.observability.logs import request_id as current_request_id
from app.observability.request import Request, current_request
from app.observability.series import OTHER
from toolchat.errors import CLIENT_GONE, Draining, InvalidRequest, TooLarge, ToolchatError
from toolchat.tool_calling.caller import current_caller

__all__ = [
    "MAX_URL_BYTES",
    "GuardMiddleware",
    "ProtocolAdapter",
    "RequestMiddleware",
    "path_below_root",
]


@dataclass(frozen=True, slots=True)
class ProtocolAdapter:
    """What the door and the assembly must know of it; everything else is in its folder."""

    prefix: str
    """Where all its paths begin, such as ``/v1/``."""
    add_routes: Callable[[APIRouter], None]
    """Adds them to the application's router."""
    error_response: Callable[[ToolchatError, str], Response] = problems.error_response
    """Answers with an error, given the request's id, in the protocol's own words: also for the door."""
    max_body_bytes: int = MAX_BODY_BYTES


_log = logging.getLogger("app.request")
_BEYOND_ASCII = re.compile(rb"%(?:[89A-Fa-f]|00)|[^\x00-\x7f]")
"""What may be no UTF-8, and an encoded NUL."""
_WELL_FORMED_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
MAX_URL_BYTES = 60_000
_ASKED_OFTEN = ("/health/", "/metrics")
"""Every few seconds, by programs; the log and traces would be full of it."""
_PRIVATE = ("chat", "todo", "approvals")


class RequestMiddleware:
    """Pure ASGI, since a ``BaseHTTPMiddleware`` hides the client's leaving and costs more than all of this.

    - accepts a well-formed ``X-Request-ID`` or makes one, and always sends it;
    - refuses a query string that is not UTF-8, holds a NUL or is too long, before anything reads it;
    - reads a body whole, within bounds of size and time, before anything parses it;
    - cancels the answer when the client leaves;
    - turns an exception that nobody expected into an error that the client understands, and logs it;
    - logs one line when a request begins and one when it ends.

    Args:
        app: what is behind it.
        protocols: those of others; below their prefixes errors are told in their words, and their bounds hold.
        body_timeout: seconds in which a body must have arrived.
    """

    def __init__(self, app: ASGIApp, protocols: Sequence[ProtocolAdapter] = (), *, body_timeout: float = 20) -> None:
        self._app = app
        self._protocols = protocols
        self._prefixes = tuple([each.prefix for each in protocols])
        self._bodies = Bodies(body_timeout)
        self._unread = UnreadAnswers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event; only HTTP requests are touched."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        token = current_request_id.set(request_id)
        answer = _Answer(send, request_id, scope["state"], self._unread, connection_of(scope))
        observed = current_request.set(answer.observed)
        path = path_below_root(scope)
        shown, level = _shown_path(path), logging.DEBUG if path.startswith(_ASKED_OFTEN) else logging.INFO
        if spans.tracer is not None and level != logging.DEBUG:
            answer.observed.trace(spans.tracer, scope, shown)
        log_event(_log, level, "request started", {"method": scope["method"], "path": shown})
        protocol = None
        if path.startswith(self._prefixes):
            protocol = next(each for each in self._protocols if path.startswith(each.prefix))
            scope["state"][ERROR_RESPONSE] = protocol.error_response
        try:
            await self._guarded(scope, receive, answer, protocol)
        finally:
            log_event(_log, level, "request finished", answer.end(scope))
            if answer.observed.span is not None:
                answer.observed.span.leave()
            current_request.reset(observed)
            current_request_id.reset(token)

    async def _guarded(
        self, scope: Scope, receive: Receive, answer: "_Answer", protocol: ProtocolAdapter | None
    ) -> None:
        try:
            _check_host(scope)
            _check_query(scope["query_string"])
            if scope["method"] in ("GET", "HEAD"):
                await _cancel_on_disconnect(self._app, scope, receive, answer, Body())
                return
            longest = protocol.max_body_bytes if protocol else MAX_BODY_BYTES
            body = await self._bodies.read(receive, longest, announced=_content_length(scope))
            try:
                await _cancel_on_disconnect(self._app, scope, receive, answer, body)
            finally:
                self._bodies.release(body)
        except ClientDisconnect:
            answer.outcome = scope["state"]["outcome"] = CLIENT_GONE
        except ToolchatError as error:
            await answer.fail(error, scope)
        except asyncio.CancelledError:
            # The server cancels what still runs when its time to stop is over; the client must not take that for a bug.
            answer.outcome = Draining.code
            await answer.fail(Draining("the service was stopped before the answer was ready", retry_after=1), scope)
        except Exception as error:  # noqa: BLE001 - the last net: nothing may fall through to the server
            _log.error("unhandled exception", exc_info=error)
            answer.outcome = "internal"
            await answer.fail(ToolchatError("An unexpected error; the log has it under this request id"), scope)


class _Answer:
    """Watches what is sent, adds the headers that every answer has."""

    def __init__(
        self,
        send: Send,
        request_id: str,
        state: Mapping[str, Any],
        unread: UnreadAnswers,
        connection: Connection | None,
    ) -> None:
        self._send = send
        self.observed = Request()
        self._state = state
        self._unread = unread
        self._connection = connection
        self._request_id = request_id
        self.status = 0
        self.outcome = ""
        self.complete = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self._request_id.encode())]
            if "form" in self._state:
                overhead = self.observed.overhead(perf_counter()) * 1000
                headers.append((b"x-toolchat-overhead-ms", b"%.3f" % overhead))
            message["headers"] = with_security_headers(headers)
            await self._begin(message)
            return
        self.observed.first_byte = self.observed.first_byte or perf_counter()
        if len(message.get("body", b"")) > PIECE_BYTES and self._connection is not None:
            await self._send_pieces(message, self._connection)
        else:
            await self._send(message)
        # Only now: sending waits for a client that reads slowly, and that client can still leave.
        self.complete = not message.get("more_body", False)

    async def _begin(self, message: Message) -> None:
        if self._connection is None or not self._connection.is_receiving:
            await self._send(message)
            return
        message["headers"].append((b"connection", b"close"))
        await self._send(message)
        self._connection.end_after_answer()

    async def _send_pieces(self, message: Message, connection: Connection) -> None:
        """Send what is long a piece at a time, so that little of it waits a second time in the server."""
        body, more = message["body"], message.get("more_body", False)
        if not more:
            connection.allow_half_close()
        with self._unread.counted(len(body), connection.abort):
            for start in range(0, len(body), PIECE_BYTES):
                end = start + PIECE_BYTES
                piece = {"type": message["type"], "body": body[start:end], "more_body": more or end < len(body)}
                await self._send(piece)

    async def fail(self, error: ToolchatError, scope: Scope) -> None:
        """Answer with an error, unless something has gone out already."""
        scope["state"]["outcome"] = error.code
        if self.status == 0:
            await refusal(error, scope["state"])(scope, Body(), self.send)

    def end(self, scope: Scope) -> dict[str, Any]:
        """Count the request; gives what the log says of its end."""
        observed, ended = self.observed, perf_counter()
        outcome: str = self.outcome or self._state.get("outcome", "ok")
        observed.end(getattr(scope.get("route"), "path_format", OTHER), outcome, self._state, ended, self.status)
        line: dict[str, Any] = {
            "status": self.status,
            "outcome": outcome,
            "total_ms": round((ended - observed.began) * 1000, 1),
        }
        if observed.first_byte:
            line["first_byte_ms"] = round((observed.first_byte - observed.began) * 1000, 1)
        line.update(self._state.get("summary", {}))
        return line


async def _cancel_on_disconnect(app: ASGIApp, scope: Scope, receive: Receive, answer: _Answer, body: Body) -> None:
    """Run the application; cancel it, and all that it waits for, when the client leaves before the end."""
    task = asyncio.current_task()

    def leave() -> None:
        if task is not None and not answer.complete:
            answer.outcome = scope["state"]["outcome"] = CLIENT_GONE
            task.cancel()

    stop = _watch(scope, receive, leave)
    try:
        await app(scope, body, answer.send)
    except asyncio.CancelledError:
        if answer.outcome != CLIENT_GONE or task is None or task.uncancel() > 0:
            raise
    finally:
        stop()


def _watch(scope: Scope, receive: Receive, leave: Callable[[], None]) -> Callable[[], object]:
    """Call ``leave`` when the client is gone; gives what ends the watch."""
    connection = connection_of(scope)
    if connection is not None:
        return connection.on_disconnect(leave)

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        leave()

    return asyncio.create_task(wait()).cancel


def path_below_root(scope: Scope) -> str:
    """The path as the application's routes have it: a server that is told its prefix puts that before every path."""
    root: str = scope.get("root_path", "")
    path: str = scope["path"]
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _shown_path(path: str) -> str:
    """A path without the ids that logs must not show."""
    first, *rest = path[:200].lstrip("/").split("/")
    if first.lower() not in _PRIVATE:
        return path[:200]
    return "/".join(["", first, *(each if each in ("", "chat", "stream") else hashed(each) for each in rest)])


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode("ascii") if _WELL_FORMED_ID.fullmatch(value) else os.urandom(8).hex()
    return os.urandom(8).hex()


def _content_length(scope: Scope) -> int:
    """How long the body says to be; 0 where it does not."""
    return next((int(text) for name, text in scope["headers"] if name == b"content-length" and text.isdigit()), 0)


def _check_host(scope: Scope) -> None:
    """Require exactly one ``Host``, as RFC 9112, section 3.2 does of HTTP/1.1."""
    if scope["http_version"] != "1.0" and [name for name, _ in scope["headers"]].count(b"host") != 1:
        raise InvalidRequest("the request must have exactly one Host header")


def _check_query(query_string: bytes) -> None:
    if len(query_string) > MAX_URL_BYTES:
        raise TooLarge(f"the query string is longer than {MAX_URL_BYTES} bytes")
    if not _BEYOND_ASCII.search(query_string):
        return
    try:
        text = unquote_to_bytes(query_string).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("the query string is not UTF-8") from None
    if "\x00" in text:
        raise InvalidRequest("the query string holds a NUL character")


class GuardMiddleware:
    """Pure ASGI, inside of ``RequestMiddleware``, so that refusals have ids and log lines like every other answer.

    Args:
        app: what is behind it.
        access: knows who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._authenticator = access.authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        address = self._authenticator.address(scope)
        try:
            caller = await self._authenticator.authenticate(scope, path_below_root(scope), address)
        except ToolchatError as error:
            await self._refuse(error, scope, receive, send)
            return
        if caller.principal.name:
            scope.setdefault("state", {}).setdefault("summary", {})["principal"] = caller.principal.name
        token = current_caller.set(caller)
        try:
            await self._app(scope, receive, send)
        finally:
            current_caller.reset(token)

    async def _refuse(self, error: ToolchatError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # closed before it was accepted, it is answered with 403
            await send({"type": "websocket.close", "code": 1008, "reason": error.title})
            return
        scope["state"]["outcome"] = error.code
        await refusal(error, scope["state"])(scope, receive, send)
