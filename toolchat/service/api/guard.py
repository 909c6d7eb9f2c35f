"""The guard: gives every request an id and log lines, checks and authenticates it, and ends it on disconnect."""

import asyncio
import logging
import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from fastapi import APIRouter, FastAPI, Response
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolchat.errors import (
    CLIENT_GONE,
    InvalidRequest,
    NotFound,
    TooLarge,
    ToolchatError,
    Unauthorized,
    UnsupportedMediaType,
)
from toolchat.service.access.hosts import header
from toolchat.service.access.runtime import Access
from toolchat.service.api import problems
from toolchat.service.api.approval_records import without_tokens
from toolchat.service.api.body_limits import (
    MAX_BODY_BYTES,
    MAX_IMAGES_BYTES,
    PIECE_BYTES,
    Bodies,
    Body,
    Connection,
    UnreadAnswers,
    connection_of,
)
from toolchat.service.api.parameters import percent_decode
from toolchat.service.api.paths import Paths, ShownPaths, is_missing_discovery, path_below_root
from toolchat.service.api.problems import as_toolchat_error, refusal, without_traceback
from toolchat.service.observability import tracing
from toolchat.service.observability.logs import request_id as current_request_id
from toolchat.service.observability.metrics import OTHER
from toolchat.service.observability.observer import MeasuredRequest, current_request
from toolchat.service.request_state import state_of
from toolchat.tool_calling.caller import current_caller

_log = logging.getLogger("toolchat.request")
MAX_URL_BYTES = 60_000
_SUSPICIOUS = re.compile(rb"%(?:[89A-Fa-f]|00)|[^\x00-\x7f]")
"""Bytes that may not be UTF-8, and an encoded NUL; a query string without them needs no further check."""
_WELL_FORMED_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_POLLED = ("/health/", "/metrics")
"""Paths that programs request every few seconds; they are logged at DEBUG and not traced."""
_WITH_IMAGES = ("/chat", "/chat/stream")
_MAX_DETAIL = 300
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),  # nearly every response depends on the client's key
)
"""The headers of every response, beside ``X-Request-ID``; a response that has one of them keeps its own."""


@dataclass(frozen=True, slots=True)
class ProtocolAdapter:
    """A foreign wire protocol, as the application and the guard see it; its code is in a folder of its own."""

    prefix: str
    """The prefix of all its paths, such as ``/v1/``."""
    add_routes: Callable[[APIRouter], None]
    """Adds its routes to the application's router."""
    error_response: Callable[[ToolchatError, str], Response] = problems.error_response
    """Answers with an error, given the request's id, in the protocol's format; the guard uses it, too."""
    max_body_bytes: int = 0
    """The longest body; 0: that of the service's own routes."""
    base: str = ""
    """The path of the base URL that its clients need, such as ``/v1``; empty if they need no base URL."""
    short: tuple[str, ...] = ()
    """The paths that clients request if their base URL lacks the base."""
    resource_metadata: str = ""
    """The path of its metadata for OAuth clients (RFC 9728), which a 401 of the prefix itself names."""


class RequestMiddleware:
    """The outermost middleware: what happens to every request, whichever route answers it."""

    # It is pure ASGI: a ``BaseHTTPMiddleware`` hides disconnects, and costs more than all of this.

    def __init__(
        self, app: ASGIApp, protocols: Sequence[ProtocolAdapter] = (), max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._protocols = protocols
        self._prefixes = tuple([each.prefix for each in protocols])
        self._unread = UnreadAnswers()
        short = [path for each in protocols for path in each.short]
        self._shown = ShownPaths()
        self._paths = Paths(tuple(short), next((each.base for each in protocols if each.base), ""))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, without_traceback(send))
            return
        state = state_of(scope)
        state.request_id = _request_id(scope)
        token = current_request_id.set(state.request_id)
        owner, path = self._paths.correct(scope), path_below_root(scope)
        state.max_body_bytes = self._max_body_bytes + (MAX_IMAGES_BYTES if path in _WITH_IMAGES else 0)
        answer = _Answer(scope, send, self._unread, lambda: self._shown.of(scope, path))
        observed = current_request.set(answer.observed)
        is_polled = path.startswith(_POLLED)
        if tracing.observer is not None and not is_polled:
            answer.observed.span = tracing.observer.start_request(scope)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("request started", extra={"method": scope["method"], "path": self._shown.of(scope, path)})
        if f"{owner}/".startswith(self._prefixes):
            protocol = next(each for each in self._protocols if f"{owner}/".startswith(each.prefix))
            state.error_response, state.base = protocol.error_response, protocol.base
            state.max_body_bytes = protocol.max_body_bytes or self._max_body_bytes
            if path == protocol.prefix:
                state.resource_metadata = protocol.resource_metadata
        try:
            _check_host_and_query(scope)
            await self._app(scope, receive, answer.send)
        except ClientDisconnect:
            state.outcome = CLIENT_GONE
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the server would answer without an id
            await answer.fail(as_toolchat_error(error))
        finally:
            answer.end(logging.DEBUG if is_polled else logging.INFO)
            current_request.reset(observed)
            current_request_id.reset(token)


class _Answer:
    """Sends a response: adds the headers of every response, and records its status and its times."""

    def __init__(self, scope: Scope, send: Send, unread: UnreadAnswers, path: Callable[[], str]) -> None:
        self._scope, self._send, self._unread, self._path = scope, send, unread, path
        self._state, self._connection = state_of(scope), connection_of(scope)
        self.observed = MeasuredRequest()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self._state.request_id.encode())]
            own = {name for name, _ in headers}  # pages have a policy of their own
            headers += [each for each in SECURITY_HEADERS if each[0] not in own]
            if self._state.form:
                overhead = self.observed.overhead(perf_counter()) * 1000
                headers.append((b"x-toolchat-overhead-ms", b"%.3f" % overhead))
            message["headers"] = headers
            # A response may start before the request's body has arrived, as a refusal does. The rest of the body would
            # then be parsed as the next request, so the connection must end with this response.
            is_last = self._connection is not None and self._connection.is_receiving
            if is_last:
                headers.append((b"connection", b"close"))
            await self._send(message)
            if is_last and self._connection is not None:
                self._connection.end_after_answer()
            return
        if not self.observed.first_byte:
            self.observed.first_byte = perf_counter()
        if len(message.get("body", b"")) > PIECE_BYTES and self._connection is not None:
            await self._send_pieces(message, self._connection)
        else:
            await self._send(message)
        # After sending, not before: sending waits for a slow client, and until then that client can disconnect.
        self._state.is_complete = not message.get("more_body", False)

    async def _send_pieces(self, message: Message, connection: Connection) -> None:
        """Send a long body in pieces, so that the server does not buffer a second copy of it."""
        body, more = message["body"], message.get("more_body", False)
        with self._unread.counted(len(body), connection.abort):
            for start in range(0, len(body), PIECE_BYTES):
                end = start + PIECE_BYTES
                piece = {"type": message["type"], "body": body[start:end], "more_body": more or end < len(body)}
                await self._send(piece)

    async def fail(self, error: ToolchatError) -> None:
        self._state.fail(error)
        if self.status == 0 and self._state.outcome != CLIENT_GONE:
            await refusal(error, self._state)(self._scope, Body(), self.send)

    def end(self, level: int) -> None:
        """Count the request and log its end; a failure of the service is a warning."""
        scope, ended = self._scope, perf_counter()
        route: str = getattr(scope.get("route"), "path_format", OTHER)
        outcome, failure = self._state.outcome, self._state.failure
        if not self._state.will_retry:
            self.observed.end(route, self._state, ended)
            if self.status >= 500 or (failure is not None and failure.status >= 500):
                level = logging.WARNING
        is_logged, span = _log.isEnabledFor(level), self.observed.span
        path = ""
        if is_logged or span is not None:
            path = route if scope["path"] == route else self._path()
        if is_logged:
            line = {"method": scope["method"], "path": path, "route": route}
            line |= {"status": self.status, "outcome": outcome, **self.observed.summary(ended)}
            line.update(self._state.summary)
            if failure is not None and level == logging.WARNING:
                line |= {"detail": failure.detail[:_MAX_DETAIL], **failure.log_fields}
            _log.log(level, "request finished", extra=line)
        if span is not None:
            span.end_request(scope, path, route, self.status, outcome, failure)


async def _cancel_on_disconnect(app: ASGIApp, scope: Scope, receive: Receive, send: Send, body: Body) -> None:
    """Run the application; if the client disconnects before the response is complete, cancel it."""
    state, task = state_of(scope), asyncio.current_task()

    def cancel() -> None:
        if task is not None and not state.is_complete and not state.outlives_client:
            state.outcome, state.failure = CLIENT_GONE, None
            task.cancel()

    stop = _watch(scope, receive, cancel)
    try:
        await app(scope, body, send)
    except asyncio.CancelledError:
        # Only our own cancellation ends here. One by the server must go on, also if both came at once: uncancel()
        # then still counts the other one.
        if state.outcome != CLIENT_GONE or task is None or task.uncancel() > 0:
            raise
    finally:
        stop()


def _watch(scope: Scope, receive: Receive, on_disconnect: Callable[[], None]) -> Callable[[], object]:
    """Call ``on_disconnect`` if the client disconnects; returns a function that ends the watch."""
    # Our server reports a disconnect by a callback. Other servers report it by ``receive`` only, which needs a task for
    # each request.
    connection = connection_of(scope)
    if connection is not None:
        return connection.on_disconnect(on_disconnect)

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        on_disconnect()

    return asyncio.create_task(wait()).cancel


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode("ascii") if _WELL_FORMED_ID.fullmatch(value) else os.urandom(8).hex()
    return os.urandom(8).hex()


def _check_host_and_query(scope: Scope) -> None:
    # Exactly one Host (RFC 9112, section 3.2): proxies that pick another one could be tricked.
    if scope["http_version"] != "1.0" and [name for name, _ in scope["headers"]].count(b"host") != 1:
        raise InvalidRequest("the request must have exactly one Host header")
    query_string: bytes = scope["query_string"]
    scope["query_string"] = without_tokens(query_string)
    if len(query_string) > MAX_URL_BYTES:
        raise TooLarge(f"the query string is longer than {MAX_URL_BYTES} bytes")
    if not _SUSPICIOUS.search(query_string):
        return
    try:
        text = percent_decode(query_string).decode()
    except UnicodeDecodeError:
        raise InvalidRequest("the query string is not UTF-8") from None
    if "\x00" in text:
        raise InvalidRequest("the query string contains a NUL character")


class GuardMiddleware:
    """Authenticates every request, then reads its body, and cancels it when the client disconnects."""

    # It runs inside ``RequestMiddleware``, so that refusals have ids and log lines, too. A body is read as a whole,
    # with limits of size and time, before anything parses it, and only after authentication: a stranger's body would
    # take memory, and a place among the large ones.

    def __init__(self, app: ASGIApp, access: Access, *, body_timeout: float = 20) -> None:
        self._app = app
        self._access = access
        self._authenticator = access.authenticator
        self._bodies = Bodies(body_timeout)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The caller of a background question was authenticated when it was accepted.
        state = state_of(scope)
        if scope["type"] not in ("http", "websocket") or state.background is not None:
            await self._app(scope, receive, send)
            return
        address, summary = self._access.proxies.client(scope), state.summary
        if address:
            summary["client"] = address
        try:
            caller = await self._authenticator.authenticate(scope, path_below_root(scope), address)
            body = Body() if scope.get("method") in ("GET", "HEAD") else await self._read(scope, receive)
        except ToolchatError as error:
            await self._refuse(error, scope, receive, send)
            return
        if caller.principal.name:
            summary["principal"] = caller.principal.name
        token = current_caller.set(caller)
        try:
            if body is None:
                await self._app(scope, receive, send)
            else:
                await _cancel_on_disconnect(self._app, scope, receive, send, body)
        finally:
            current_caller.reset(token)
            if body is not None:
                self._bodies.release(body)

    async def _read(self, scope: Scope, receive: Receive) -> Body | None:
        """Read the body of a request; ``None`` for a websocket."""
        if scope["type"] == "websocket":
            return None
        if header(scope, b"content-encoding").lower() not in ("", "identity"):
            raise UnsupportedMediaType("the body must be sent without Content-Encoding")
        longest = state_of(scope).max_body_bytes
        connection = connection_of(scope)
        arrived = connection is not None and not connection.is_receiving
        length = header(scope, b"content-length")
        announced = int(length) if length.isdigit() else 0
        body = await self._bodies.read(receive, longest, announced=announced, arrived=arrived)
        body.content = without_tokens(body.content).removeprefix(BOM_UTF8)  # which some programs on Windows write
        return body

    async def _refuse(self, error: ToolchatError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # a close before the handshake becomes a 403
            await send({"type": "websocket.close", "code": 1008, "reason": error.title})
            return
        if isinstance(error, Unauthorized) and is_missing_discovery(scope):
            error = NotFound("there is no such document; the 401 of /mcp names the metadata of the service")
        state = state_of(scope)
        state.fail(error)
        if isinstance(error, Unauthorized) and (path := state.resource_metadata):
            url = f"{self._access.own_address(scope)}{path}"
            challenge = f'{error.headers["WWW-Authenticate"]}, resource_metadata="{url}"'
            error.headers = {**error.headers, "WWW-Authenticate": challenge}
        await refusal(error, state)(scope, receive, send)


def allow_origins(app: FastAPI, origins: Sequence[str]) -> None:
    """Allow pages of some origins to send requests (CORS); without any, browsers block all other origins."""
    if origins:
        # Clients and tracers add headers of their own, and others with every version. A page is trusted for its origin:
        # no header gives it more rights, and browsers send no cookies for it.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=["*"],
            allow_private_network=True,
            expose_headers=["*"],
        )
