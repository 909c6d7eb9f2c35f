"""MCP over HTTP: one JSON-RPC message per POST, without state in the process, so that any replica can answer it."""

import asyncio
import re
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar, cast

import mcp_types as types
from anyio import Event
from fastapi import Request, Response
from mcp.server.connection import Connection
from mcp.server.context import HandlerResult
from mcp.server.runner import ServerRunner
from mcp.server.session import ServerSession
from mcp.shared import inbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    RequestParamsMeta,
    methods,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import from_json, to_json
from starlette.types import Scope

from toolchat.errors import ToolchatError
from toolchat.service.access.hosts import header
from toolchat.service.api import problems
from toolchat.service.api.body_limits import body_of, connection_of
from toolchat.service.api.dependencies import scoped_key, stored_tenant
from toolchat.service.api.responses.event_stream import EventStream
from toolchat.service.api.service import ServiceState, service_state
from toolchat.service.api.sessions import conversation_of
from toolchat.service.protocols.mcp_server import back_channel
from toolchat.service.protocols.mcp_server.calls import Context, Origin
from toolchat.service.protocols.mcp_server.consent import shows_forms
from toolchat.service.protocols.mcp_server.server import SERVER, call_tool, kept_if_short
from toolchat.service.request_state import state_of
from toolchat.tool_calling.context import CONVERSATION_ID

_JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json\s*(;|$)", re.IGNORECASE)
_JSON, _EVENTS = "application/json", "text/event-stream"
_SESSION_ID = b"mcp-session-id"
_SHOWS_FORMS = "shows-forms-"
"""Begins the session ids of clients that can ask their users: so every replica knows it, and none stores it."""
_CANCELLED = -32800
_running: dict[tuple[str, RequestId], asyncio.Timeout] = {}
"""The calls that run in this process, by session and request id: clients number their requests alike."""
_LEAST_PROGRESS = 1e-6
"""Progress must grow with every notification, and must not overtake that of the tool."""
_Message = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError
_T = TypeVar("_T")


async def answer(request: Request) -> Response:
    """Answer one JSON-RPC message."""
    service, message = service_state(request), None
    try:
        message = _read(header(request.scope, b"content-type"), await body_of(request))
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            await back_channel.accept_response(service.store, message)
            return Response(status_code=202)
        version, capabilities = _client_of(message, request.scope)
    except MCPError as error:
        identifier = message.id if isinstance(message, JSONRPCRequest) else None
        state_of(request.scope).outcome = f"rpc-error{error.code}"
        body, status = to_json(_error(identifier, error.error)), inbound.ERROR_CODE_HTTP_STATUS[error.code]
        return Response(body, status, media_type=_JSON)
    if isinstance(message, JSONRPCNotification):
        if message.method == "notifications/cancelled" and header(request.scope, _SESSION_ID):
            _cancel(request, (message.params or {}).get("requestId"))
        return Response(status_code=202)
    exchange = _Exchange(request, service, message, version, capabilities)
    # From here on the client waits for a response with its id, so every error must become one.
    state_of(request.scope).error_response = partial(_failure_response, message.id, exchange.is_modern)
    if exchange.can_send_request:
        return exchange
    return Response(await exchange.produce(), exchange.status_code, exchange.answer_headers(), _JSON)


def _read(content_type: str, body: bytes) -> _Message:
    """Parse one message; of a repeated key the last value counts."""
    if not _JSON_TYPE.match(content_type):
        raise MCPError(types.INVALID_REQUEST, "the message must be sent as application/json")
    try:
        value = from_json(body, allow_inf_nan=False)
        return _kind(value).model_validate(value)
    except ValidationError:
        raise MCPError(types.INVALID_REQUEST, "the body must be one JSON-RPC message") from None
    except ValueError as error:
        raise MCPError(types.PARSE_ERROR, f"the body is not valid JSON: {error}") from None


def _kind(value: object) -> type[_Message]:
    if not isinstance(value, dict) or "id" not in value:
        return JSONRPCNotification
    if "method" in value:
        return JSONRPCRequest
    return JSONRPCError if "error" in value else JSONRPCResponse


def _client_of(message: JSONRPCRequest | JSONRPCNotification, scope: Scope) -> tuple[str, Any]:
    """The client's protocol version and capabilities; a request of 2026-07-28 or newer names them itself."""
    given = [each for each in scope["headers"] if each[0].startswith(b"mcp-")]
    lines = [(name.decode(), value.decode("latin-1").strip()) for name, value in given]
    routing = dict(lines)
    if len(routing) < len(lines) and (repeated := inbound.find_duplicated_routing_header(lines)):
        raise MCPError(types.HEADER_MISMATCH, f"Header mismatch: {repeated} was sent more than once")
    version = routing.get(inbound.MCP_PROTOCOL_VERSION_HEADER, LATEST_HANDSHAKE_VERSION)
    meta = (message.params or {}).get("_meta") if isinstance(message, JSONRPCRequest) else None
    has_envelope = isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta
    if version not in HANDSHAKE_PROTOCOL_VERSIONS and not has_envelope:
        _accepted(inbound.unsupported_protocol_version_rejection(version))
    if isinstance(message, JSONRPCNotification) or not (has_envelope or version in MODERN_PROTOCOL_VERSIONS):
        can_ask = header(scope, _SESSION_ID).startswith(_SHOWS_FORMS)
        return version, {"elicitation": {}} if can_ask else {}
    if version in MODERN_PROTOCOL_VERSIONS and ((method := message.method), version) not in methods.CLIENT_REQUESTS:
        # Before its envelope is checked: clients send the old ping without one.
        hint = ": any other request, such as server/discover, shows that the server answers" if method == "ping" else ""
        raise MCPError(types.METHOD_NOT_FOUND, f"Method not found: MCP {version} has no {method[:64]}{hint}", method)
    body = {"method": message.method, "params": message.params}
    route = _accepted(inbound.classify_inbound_request(body, headers=routing))
    return route.protocol_version, route.client_capabilities


def _accepted(route: _T | inbound.InboundLadderRejection) -> _T:
    if isinstance(route, inbound.InboundLadderRejection):
        raise MCPError(route.code, route.message, route.data)
    return route


def _call_key(request: Request, identifier: RequestId) -> tuple[str, RequestId]:
    return scoped_key(header(request.scope, _SESSION_ID)), identifier


def _cancel(request: Request, identifier: object) -> None:
    """End the running call of an id in the client's session, if there is one in this process."""
    if isinstance(identifier, int | str) and (running := _running.pop(_call_key(request, identifier), None)):
        running.reschedule(0)


def _context(request: Request) -> dict[str, Any]:
    """Values for tools that the model does not see: the tenant, and the conversation if the URL names one."""
    context: dict[str, Any] = {"tenantId": stored_tenant()}
    if request.scope["query_string"] and (sessions := request.query_params.getlist("sessionId")):
        context[CONVERSATION_ID] = conversation_of(sessions[-1])
    return context


@kept_if_short
def _connection(version: str, capabilities: bytes) -> Connection:
    """A client as the SDK sees it; what is sent to it goes through the exchange of its call."""
    return Connection.from_envelope(version, None, from_json(capabilities))


class _Exchange(EventStream):
    """A request in the SDK's terms, and its response: JSON, or events if anything is sent before the result."""

    transport = TransportContext(kind="streamable-http", can_send_request=True)
    cancel_requested = Event()
    """Never set: the guard cancels the task of a request."""

    def __init__(
        self, request: Request, service: ServiceState, message: JSONRPCRequest, version: str, capabilities: Any
    ) -> None:
        super().__init__(_EVENTS, service.tuning.stream_keep_alive)
        self.can_send_request = _EVENTS in header(request.scope, b"accept").lower()
        self.progress_token = progress_token_from_params(message.params) if self.can_send_request else None
        self._progress: dict[str, Any] = {"progressToken": self.progress_token, "progress": 0}
        self.request_id, origin = message.id, Origin(request, _context(request))
        self.message_metadata, self._origin = ServerMessageMetadata(request_context=origin), origin
        self.is_modern = version in MODERN_PROTOCOL_VERSIONS
        """Older clients treat every HTTP status but 200 as the end of the connection."""
        self._message, self._service = message, service
        self._version, self._capabilities = version, capabilities
        self._scope, self._state = request.scope, state_of(request.scope)

    async def produce(self) -> bytes:
        """The response; raises the errors of the service."""
        try:
            result = await self._result()
        except MCPError as error:
            self._state.outcome = f"rpc-error{error.code}"
            self.status_code = inbound.ERROR_CODE_HTTP_STATUS.get(error.code, 500) if self.is_modern else 200
            response = _error(self.request_id, error.error)
        else:
            response = {"jsonrpc": "2.0", "id": self.request_id, "result": result}
        if self.started:
            return _event(response)
        self.headers["content-type"] = _JSON
        return to_json(response, inf_nan_mode="strings")

    async def _result(self) -> HandlerResult:
        method, params = self._message.method, self._message.params
        if method == "tools/call":
            return await self._call(params or {})
        connection = Connection.from_envelope(self._version, None, self._capabilities)
        # Without the teardown of serve_one: nothing is opened for the connection of a single request.
        result = await ServerRunner(SERVER, connection, self._service).on_request(self, method, params)
        if method == "initialize":
            prefix = _SHOWS_FORMS if shows_forms(connection.client_capabilities) else ""
            self.headers[_SESSION_ID.decode()] = prefix + secrets.token_hex(16)
        return result

    async def _call(self, params: Mapping[str, Any]) -> HandlerResult:
        """Call a tool, unless the client cancels the call meanwhile, which it can only in a session."""
        if not header(self._scope, _SESSION_ID):
            return await call_tool(self._context(), params)
        key = _call_key(self._origin.request, self.request_id)
        try:
            async with asyncio.timeout(None) as running:
                _running[key] = running
                return await call_tool(self._context(), params)
        except TimeoutError:
            if not running.expired():
                raise
            raise MCPError(_CANCELLED, "Request cancelled") from None
        finally:
            _running.pop(key, None)

    def _context(self) -> Context:
        """The context that the SDK's runner makes for a handler."""
        message = self._message
        meta = (message.params or {}).get("_meta")
        return Context(
            session=ServerSession(self, _connection(self._version, to_json(self._capabilities))),
            lifespan_context=self._service,
            protocol_version=self._version,
            method=message.method,
            params=message.params,
            request_id=message.id,
            meta=cast("RequestParamsMeta", meta) if isinstance(meta, dict) else None,
            request=self._origin,
        )

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, *_: object) -> dict[str, Any]:
        """Send a request to the client, and wait for its response."""
        if not self.can_send_request:
            raise NoBackChannelError(method)
        # Instead of the deadline of an answer: a person takes longer.
        if (connection := connection_of(self._scope)) is not None:
            connection.abort_after(back_channel.REQUEST_TTL)
        identifier = await back_channel.open_request(self._service.store)
        await self.write(_event({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}))
        return await back_channel.response_to(self._service.store, identifier)

    async def notify(self, method: str, params: Mapping[str, Any] | None, *_: object) -> None:
        """Send a notification before the result."""
        await self.write(_event({"jsonrpc": "2.0", "method": method, "params": params}))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send a progress notification if the client requests them."""
        if self.progress_token is not None:
            given = {"progressToken": self.progress_token, "progress": progress, "total": total, "message": message}
            self._progress = {name: value for name, value in given.items() if value is not None}
            await self.notify("notifications/progress", self._progress)

    def keep_alive(self) -> bytes:
        """The least progress if the client requests any, because clients extend their own time limit by it."""
        if self.progress_token is None:
            return super().keep_alive()
        self._progress["progress"] += _LEAST_PROGRESS
        return _event({"jsonrpc": "2.0", "method": "notifications/progress", "params": self._progress})

    def answer_headers(self) -> Mapping[str, str]:
        headers, self._state.answer_headers = self._state.answer_headers(), dict  # a reference cycle otherwise
        return {"X-Accel-Buffering": "no", **headers}

    def on_error(self, error: ToolchatError) -> bytes:
        return _event(_failure(self.request_id, error, self._state.request_id))


def _failure_response(identifier: RequestId, is_modern: bool, error: ToolchatError, request_id: str) -> Response:
    """Answer an error of the service as a JSON-RPC error, with the headers of its problem document."""
    body = to_json(_failure(identifier, error, request_id))
    return Response(body, error.status if is_modern else 200, problems.error_headers(error), _JSON)


def _failure(identifier: RequestId, error: ToolchatError, request_id: str) -> dict[str, Any]:
    data = problems.problem(error, request_id)
    return _error(identifier, ErrorData(code=types.INTERNAL_ERROR, message=error.detail, data=data))


def _error(identifier: RequestId | None, error: ErrorData) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "error": error.model_dump(exclude_none=True)}


def _event(message: Mapping[str, Any]) -> bytes:
    return b"event: message\ndata: %b\n\n" % to_json(message, inf_nan_mode="strings")
