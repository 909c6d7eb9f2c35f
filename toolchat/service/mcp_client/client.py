"""A connection to one MCP server by the official SDK; imported only when a server is configured."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from pydantic import TypeAdapter, ValidationError
from yarl import URL

from toolchat import __version__
from toolchat.http.environment import Proxies
from toolchat.http.failures import Cause, address_of, describe_failure
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.service.mcp_client.results import RemoteResult, read_result
from toolchat.service.mcp_client.sanitizing import sanitize_text
from toolchat.service.mcp_client.transports import TOO_LONG, Diagnostics, open_transport
from toolchat.service.observability import tracing
from toolchat.service.observability.semantic_conventions import mcp_attributes
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError

logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what servers send, and session ids

REQUEST_TIMEOUT = 30.0
"""Seconds for every request except calls."""
MAX_CALL_SECONDS = 600.0
"""An upper bound only: the tool calling manager applies the shorter limit of the tool or the service."""
MAX_TOOLS, MAX_PAGES = 256, 32
MAX_ERROR_CHARS = 500
# The SDK distinguishes these two by their text alone; servers send the same codes for errors of their own.
_CLOSED, _SESSION_GONE = "Connection closed", "Session terminated"
_CALL = "tools/call"
_UNREACHABLE = (OSError, httpx2.TransportError)
_HTTP_ONLY = "streamable HTTP, which often ends in /mcp; SSE is not supported"
_RESULT = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)


class ServerUnavailable(Exception):
    """The server cannot be used at present; the message says why, without addresses or keys."""

    cause = ""
    """Why it cannot be reached, with its address, for operators."""


class ConnectionLost(Exception):
    """The connection, or its session, ended before the call returned."""

    kind = "connection-lost"

    def __init__(self, *, may_have_run: bool) -> None:
        super().__init__(may_have_run)
        self.may_have_run = may_have_run
        """Whether the server may have begun the call: then it must not be sent again."""


class Connection:
    """An open connection.

    Args:
        on_change: is called when the server reports that its tools have changed.
        diagnostics: says why the connection has ended, if that is known.
    """

    def __init__(self, server: str, client: Client, on_change: Callable[[], None], diagnostics: Diagnostics) -> None:
        self._server = server
        self._client = client
        self._on_change = on_change
        self._diagnostics = diagnostics

    @property
    def end_reason(self) -> str:
        """Why the connection has ended, for the operator."""
        return f"its answer was refused: {TOO_LONG}" if self._diagnostics.is_too_long else "the connection was lost"

    @property
    def revision(self) -> str:
        """The protocol revision in use."""
        return self._client.protocol_version

    @property
    def mode(self) -> str:
        """The ``mode`` that lets a further connection to the same server skip the negotiation."""
        return self.revision if self._client.session.discover_result is not None else "legacy"

    async def tools(self) -> list[types.Tool]:
        """List the server's tools, up to ``MAX_TOOLS``; after any exception the connection is unusable."""
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor or len(tools) >= MAX_TOOLS:
                break
        return tools[:MAX_TOOLS]

    async def watch_changes(self) -> None:
        """Subscribe to changes of the tools until the server ends the subscription; only the newest revision needs it.

        Servers of older revisions notify their clients unasked.
        """
        capabilities = self._client.server_capabilities.tools
        if self.mode == "legacy" or capabilities is None or not capabilities.list_changed:
            return
        async with self._client.listen(tools_list_changed=True) as subscription:
            self._on_change()  # a change before the subscription was not reported
            async for _ in subscription:
                self._on_change()

    async def call(self, tool: str, arguments: Mapping[str, object], context: ToolContext) -> RemoteResult:
        """Call a tool and return its result; cancelling this coroutine cancels the call at the server."""
        if tracing.observer is None:
            return await self._call(tool, arguments, context)
        attributes = mcp_attributes(_CALL, self.revision, tool) | {"toolchat.upstream": self._server}
        with tracing.observer.mcp_request(_CALL, tool, attributes):
            return await self._call(tool, arguments, context)

    async def _call(self, tool: str, arguments: Mapping[str, object], context: ToolContext) -> RemoteResult:
        """Send the call.

        Bypasses the SDK's ``call_tool``, which validates results by the server's own schema, including regular
        expressions that may take for ever.
        """

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.report(progress, of=total, text=message)

        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            result = await self._client.session.send_request(
                request, _RESULT, request_read_timeout_seconds=MAX_CALL_SECONDS, progress_callback=report
            )
        except MCPError as error:
            if self._diagnostics.is_too_long:
                raise ToolExecutionError(
                    f"the server's answer is refused: {TOO_LONG}", kind="upstream-invalid"
                ) from error
            raise _call_error(error) from error
        except (ValidationError, RuntimeError) as error:
            raise ToolExecutionError("the server's answer cannot be read", kind="upstream-invalid") from error
        if isinstance(result, types.InputRequiredResult):
            raise ToolExecutionError("the tool requires input from a person", kind="input-required")
        return read_result(result)


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
) -> AsyncGenerator[Connection, None]:
    """Open a connection in the newest revision that the server supports; ``ServerUnavailable`` if it is lost.

    Args:
        server: the server's name, for the log.
        entry: its address or its command.
        proxies: the proxies of the service.
        on_change: is called when the server reports that its tools have changed.
        on_end: is called when no more messages can arrive, such as after the exit of the process.
        forwarded: headers of the current caller to send along.
        mode: the revision if it is already known; see :attr:`Connection.mode`.
    """
    diagnostics = Diagnostics()
    transport = open_transport(
        server, entry, proxies=proxies, forwarded=forwarded or {}, diagnostics=diagnostics, on_end=on_end
    )
    try:
        async with _client(transport, on_change, mode) as client:
            yield Connection(server, client, on_change, diagnostics)
    except Exception as error:
        raised = _first(error)
        unavailable = ServerUnavailable(_reason(raised, entry, diagnostics))
        unavailable.cause = _cause(raised, entry, proxies)
        raise unavailable from error


def _client(transport: Any, on_change: Callable[[], None], mode: str) -> Client:
    async def on_message(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_change()

    return Client(
        transport,
        mode=mode,
        message_handler=on_message,
        client_info=types.Implementation(name="toolchat", version=__version__),
        cache=None,
        read_timeout_seconds=REQUEST_TIMEOUT,
    )


def _call_error(error: MCPError) -> Exception:
    if error.message in (_CLOSED, _SESSION_GONE):
        # A server that has forgotten the session, as after a restart, has rejected the call without running it.
        return ConnectionLost(may_have_run=error.message == _CLOSED)
    if error.code == types.REQUEST_TIMEOUT:
        return ToolExecutionError("the server did not answer in time", kind="timeout")
    message = sanitize_text(error.message, MAX_ERROR_CHARS)
    return ToolExecutionError(message or "the server rejected the call", kind="failed")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):  # the SDK's task groups wrap what was raised
        error = error.exceptions[0]
    return error


def _cause(error: BaseException, entry: ServerEntry, proxies: Proxies) -> str:
    """Why the server cannot be reached, and on which way."""
    if entry.url is None or not isinstance(error, _UNREACHABLE):
        return ""
    address = address_of(URL(entry.url), proxies)
    match error:
        case httpx2.ProxyError():
            return f"{Cause.PROXY} ({str(error).partition(' ')[0]}): {address}"
        case httpx2.RemoteProtocolError():
            return f"{Cause.RESET}: {address}"
        case _:
            return describe_failure(error, address)


def _reason(error: BaseException, entry: ServerEntry, diagnostics: Diagnostics) -> str:
    if diagnostics.status in (404, 405):
        return f"it answers with status {diagnostics.status}: the url must be that of {_HTTP_ONLY}"
    if diagnostics.status is not None:
        return f"it answers with status {diagnostics.status}"
    if entry.command is not None and diagnostics.unreadable_line:
        return f"its standard output is not MCP; the first line is: {diagnostics.unreadable_line}"
    if isinstance(error, MCPError):
        closed = error.message == _CLOSED
        return "it closed the connection" if closed else sanitize_text(error.message, MAX_ERROR_CHARS)
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        if entry.cwd is not None and error.filename == entry.cwd:
            return f"its cwd is not a usable folder ({type(error).__name__})"
        return f"its command cannot be started ({type(error).__name__})"
    if isinstance(error, _UNREACHABLE):
        return f"it cannot be reached ({type(error).__name__})"
    return f"it cannot be used ({type(error).__name__})"
