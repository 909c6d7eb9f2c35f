"""A connection to one MCP server by the official SDK; imported only when a server is configured."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from operator import attrgetter

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from pydantic import TypeAdapter, ValidationError
from yarl import URL

from toolchat import __version__
from toolchat.http.environment import Proxies
from toolchat.http.failures import Cause, address_of, describe_failure
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.service.mcp_client.foreign_tools import RemoteResult, read_result, sanitize_text
from toolchat.service.mcp_client.transports import EXCHANGE, TOO_LONG, Diagnostics, Exchange, open_transport
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError

_log = logging.getLogger(__name__)
logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what servers send, and session ids

REQUEST_TIMEOUT = 30.0
"""Seconds for every request except calls."""
MAX_CALL_SECONDS = 3600.0
"""An upper bound only, never reached: the tool calling manager applies the shorter limit of the tool or the service."""
MAX_TOOLS, MAX_PAGES = 256, 32
MAX_ERROR_CHARS = 500
_AWAY = (502, 503, 504)
"""Statuses by which gateways say that the server is away."""
_HTTP_ONLY = "streamable HTTP, which often ends in /mcp; SSE is not supported"
_RESULT = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)


class ServerUnavailable(Exception):
    """The server cannot be used at present; the message says why, without addresses or keys."""

    def __init__(self, reason: str, *, cause: str, is_away: bool, is_session_lost: bool) -> None:
        super().__init__(reason)
        self.cause = cause
        """Why it cannot be reached, with its address, for operators."""
        self.is_away = is_away
        """Whether nobody is served, rather than this caller."""
        self.is_session_lost = is_session_lost


class ConnectionLost(Exception):
    """The connection ended before the call returned; the server may have begun it, so it must not be sent again."""

    kind = "connection-lost"


class SessionLost(ConnectionLost):
    """The server does not know the session, as after a restart, so the call has not begun."""

    def __init__(self, answer: ToolExecutionError) -> None:
        super().__init__(answer)
        self.answer = answer
        """What the server says: its answer to the call if it says the same in a new session."""


class ServerConnection:
    """An open connection."""

    def __init__(self, server: str, client: Client, on_change: Callable[[], None], diagnostics: Diagnostics) -> None:
        self._server = server
        self._client = client
        self._on_change = on_change
        self._diagnostics = diagnostics
        self._has_warned = False

    @property
    def end_reason(self) -> str:
        """Why the connection has ended, for the operator; empty if only its session has."""
        if self._diagnostics.is_too_long:
            return f"its answer was refused: {TOO_LONG}"
        return "the connection was lost" if self._diagnostics.has_ended else ""

    @property
    def revision(self) -> str:
        """The protocol revision in use."""
        return self._client.protocol_version

    @property
    def mode(self) -> str:
        """The ``mode`` that lets a further connection to the same server skip the negotiation."""
        return self.revision if self._client.session.discover_result is not None else "legacy"

    @property
    def malformed_tools(self) -> int:
        """The number of tools that are missing in the listing."""
        return len(self._diagnostics.malformed)

    async def tools(self) -> list[types.Tool]:
        """List up to ``MAX_TOOLS`` tools of the server by name; after any exception the connection is unusable."""
        tools: list[types.Tool] = []
        cursors: list[str | None] = [None]
        while len(cursors) <= MAX_PAGES and len(tools) < MAX_TOOLS:
            page = await self._client.list_tools(cursor=cursors[-1])
            tools += page.tools
            if not page.next_cursor:
                break
            if page.next_cursor in cursors:
                if not self._has_warned:
                    _log.warning("the list of tools of the MCP server %s repeats a cursor: it ends there", self._server)
                self._has_warned = True
                break
            cursors.append(page.next_cursor)
        # In an order of its own, which some change each time, no request would begin as one in the provider's cache.
        return sorted(tools[:MAX_TOOLS], key=attrgetter("name"))

    async def watch_changes(self) -> None:
        """Subscribe to changes of the tools until the server ends it; servers of older revisions notify unasked."""
        capabilities = self._client.server_capabilities.tools
        if self.mode == "legacy" or capabilities is None or not capabilities.list_changed:
            return
        async with self._client.listen(tools_list_changed=True) as subscription:
            self._on_change()  # a change before the subscription was not reported
            async for _ in subscription:
                self._on_change()

    async def call(self, tool: str, arguments: Mapping[str, object], context: ToolContext) -> RemoteResult:
        """Call a tool and return its result; cancelling this coroutine cancels the call at the server."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.report(progress, of=total, text=message)

        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        EXCHANGE.set(exchange := Exchange())
        try:
            # Not `call_tool`, which validates results by the server's own schema, including regular expressions that
            # may take for ever.
            result = await self._client.session.send_request(
                request, _RESULT, request_read_timeout_seconds=MAX_CALL_SECONDS, progress_callback=report
            )
        except MCPError as error:
            raise self._call_error(error, exchange) from error
        except (ValidationError, RuntimeError) as error:
            raise ToolExecutionError("the server's answer cannot be read", kind="upstream-invalid") from error
        if isinstance(result, types.InputRequiredResult):
            raise ToolExecutionError("the tool requires input from a person", kind="input-required")
        return read_result(result)

    def _call_error(self, error: MCPError, exchange: Exchange) -> Exception:
        """What an error means, by the signs of the connection: servers use the SDK's codes for errors of their own."""
        if self._diagnostics.is_too_long:
            return ToolExecutionError(f"the server's answer is refused: {TOO_LONG}", kind="upstream-invalid")
        has_ended = self._diagnostics.has_ended or exchange.is_broken
        if exchange.status in _AWAY or (has_ended and error.code == types.CONNECTION_CLOSED):
            return ConnectionLost()
        message = sanitize_text(error.message, MAX_ERROR_CHARS)
        answer = ToolExecutionError(message or "the server rejected the call", kind="failed")
        return SessionLost(answer) if exchange.is_session_lost else answer


@asynccontextmanager
async def connect(
    server: str,
    entry: ServerEntry,
    proxies: Proxies,
    *,
    on_change: Callable[[], None],
    on_end: Callable[[], None] = lambda: None,
    forwarded: Mapping[str, str] | None = None,
    mode: str = "auto",
) -> AsyncGenerator[ServerConnection, None]:
    """Open a connection in the newest revision that the server supports; ``ServerUnavailable`` if it is lost."""
    diagnostics, exchange = Diagnostics(on_end), Exchange()
    EXCHANGE.set(exchange)

    async def on_message(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_change()

    transport = open_transport(server, entry, proxies, forwarded or {}, diagnostics)
    try:
        async with Client(
            transport,
            mode=mode,
            message_handler=on_message,
            client_info=types.Implementation(name="toolchat", version=__version__),
            cache=None,
            read_timeout_seconds=REQUEST_TIMEOUT,
        ) as client:
            yield ServerConnection(server, client, on_change, diagnostics)
    except Exception as error:
        raised = _first(error)
        if isinstance(raised, ToolExecutionError | ConnectionLost):
            raise raised from raised.__cause__
        raise ServerUnavailable(
            _reason(raised, entry, diagnostics, exchange),
            cause=_cause(raised, entry, proxies),
            is_away=_is_unreachable(raised) or (exchange.status or 0) >= 500,
            is_session_lost=exchange.is_session_lost,
        ) from error


def _is_unreachable(error: BaseException) -> bool:
    is_own_fault = isinstance(error, httpx2.LocalProtocolError)  # such as a header that cannot be sent
    return isinstance(error, OSError | httpx2.TransportError) and not is_own_fault


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):  # the SDK's task groups wrap what was raised
        error = error.exceptions[0]
    return error


def _cause(error: BaseException, entry: ServerEntry, proxies: Proxies) -> str:
    """Why the server cannot be reached, and on which way."""
    if entry.url is None or not _is_unreachable(error):
        return ""
    address = address_of(URL(entry.url), proxies)
    match error:
        case httpx2.ProxyError():
            return f"{Cause.PROXY} ({str(error).partition(' ')[0]}): {address}"
        case httpx2.RemoteProtocolError():
            return f"{Cause.RESET}: {address}"
        case _:
            return describe_failure(error, address)


def _reason(error: BaseException, entry: ServerEntry, diagnostics: Diagnostics, exchange: Exchange) -> str:
    if exchange.status in (404, 405):
        return f"it answers with status {exchange.status}: the url must be that of {_HTTP_ONLY}"
    if exchange.status is not None:
        return f"it answers with status {exchange.status}"
    if diagnostics.unreadable_line:
        return f"its standard output is not MCP; the first line is: {diagnostics.unreadable_line}"
    if isinstance(error, MCPError):
        closed = diagnostics.has_ended and error.code == types.CONNECTION_CLOSED
        return "it closed the connection" if closed else sanitize_text(error.message, MAX_ERROR_CHARS)
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        if entry.cwd is not None and error.filename == entry.cwd:
            return f"its cwd is not a usable folder ({type(error).__name__})"
        return f"its command cannot be started ({type(error).__name__})"
    reason = "it cannot be reached" if _is_unreachable(error) else "it cannot be used"
    return f"{reason} ({type(error).__name__})"
