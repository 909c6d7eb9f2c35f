"""The official SDK as the service uses it: imported when a server is opened, and not before."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import TypeAdapter, ValidationError

from app.mcp_client.file import ServerEntry
from app.mcp_client.foreign_tools import result_text, shown_text
from app.mcp_client.stdio import stdio_transport
from app.mcp_client.streamable_http import http_transport
from toolchat import __version__
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError

__all__ = ["CheckedStream", "Connection", "ConnectionLost", "ServerUnavailable", "connected"]


_log = logging.getLogger(__name__)

_MOST_TOLD = 100


class CheckedStream:
    """What a server sends, with lists that hold nothing but tools.

    Args:
        stream: what the SDK would read.
        server: the server's name, for the log.
    """

    def __init__(self, stream: Any, server: str) -> None:
        self._stream = stream
        self._server = server
        self._told: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *ended: Any) -> bool | None:
        left: bool | None = await self._stream.__aexit__(*ended)
        return left

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        received = await self._stream.__anext__()
        message = received.message if isinstance(received, SessionMessage) else None
        if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
            tools = message.result["tools"]
            message.result["tools"] = [each for each in tools if self._is_one({**message.result, "tools": [each]})]
        return received

    def _is_one(self, listing: dict[str, Any]) -> bool:
        """Whether a list with nothing but this tool is one in its revision; only the newest names the type of it."""
        revision = "2026-07-28" if "resultType" in listing else "2025-11-25"
        try:
            validate_server_result("tools/list", revision, listing)
        except ValidationError as error:
            if any(fault["loc"][:1] == ("tools",) for fault in error.errors(include_input=False)):
                self._warn(listing["tools"][0])
                return False
        return True

    def _warn(self, tool: Any) -> None:
        """Say it once, not with every list."""
        name = shown_text(str(tool.get("name")) if isinstance(tool, dict) else "", 64)
        if name not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(name)
            _log.warning("the tool %s of the MCP server %s cannot be used: it is not well-formed", name, self._server)


logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what servers send, and session ids

_ANSWERS = 30.0
"""Seconds for whatever is asked beside calls."""
_LONGEST_CALL = 600.0
"""Seconds; the manager's limit, which is the tool's or the service's, comes before it."""
_MOST_TOOLS, _MOST_PAGES = 256, 32
_LONGEST_ERROR = 500
_CLOSED, _SESSION_GONE = "Connection closed", "Session terminated"
"""What the SDK says by words alone; the codes beside them are used by servers, too."""
_RESULT = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)


class ServerUnavailable(Exception):
    """The server cannot be used as it is now; the message says why, without addresses or keys."""


class ConnectionLost(Exception):
    """The connection, or its session, is not there any more."""

    def __init__(self, *, may_have_run: bool) -> None:
        super().__init__(may_have_run)
        self.may_have_run = may_have_run
        """Whether the server may have begun what it was asked for."""


class Connection:
    """What is asked of a server."""

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        self._client = client
        self._changed = changed

    @property
    def revision(self) -> str:
        """Of the protocol."""
        return self._client.protocol_version

    @property
    def mode(self) -> str:
        """How a further connection to the same server is made without asking again what it speaks."""
        return self.revision if self._client.session.discover_result is not None else "legacy"

    async def tools(self) -> list[types.Tool]:
        """The tools of the server, as many as are taken; whatever it raises, the connection is of no use."""
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor or len(tools) >= _MOST_TOOLS:
                break
        return tools[:_MOST_TOOLS]

    async def hear(self) -> None:
        """Have a server of the newest revision tell of changes, until it stops; older ones do so by themselves."""
        offered = self._client.server_capabilities.tools
        if self.mode == "legacy" or offered is None or not offered.list_changed:
            return
        async with self._client.listen(tools_list_changed=True) as subscription:
            self._changed()  # something may have changed before it listened
            async for _ in subscription:
                self._changed()

    async def call(self, tool: str, arguments: Mapping[str, object], context: ToolContext) -> str:
        """Call a tool and tell its result as text; being cancelled cancels the call at the server.

        Not by the SDK's own method, which checks results with the server's own schema, patterns and all.

        Raises:
            ConnectionLost: there is no connection any more.
            ToolExecutionError: the tool failed, or the server refused the call or answered nonsense.
        """

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.report(progress, of=total, text=message)

        asked = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            result = await self._client.session.send_request(
                asked, _RESULT, request_read_timeout_seconds=_LONGEST_CALL, progress_callback=report
            )
        except MCPError as error:
            raise _told(error) from error
        except (ValidationError, RuntimeError) as error:
            raise ToolExecutionError("the server's answer cannot be read", kind="upstream-invalid") from error
        if isinstance(result, types.InputRequiredResult):
            raise ToolExecutionError("the tool asks for what only a person could give", kind="input-required")
        return result_text(result)


@asynccontextmanager
async def connected(
    name: str,
    entry: ServerEntry,
    *,
    changed: Callable[[], None],
    ended: Callable[[], None] = lambda: None,
    forwarded: Mapping[str, str] | None = None,
    mode: str = "auto",
) -> AsyncGenerator[Connection, None]:
    """A connection in the newest revision that the server speaks.

    Args:
        name: the server's name, for the log.
        entry: where it is.
        changed: is called when the server says that its tools have changed.
        ended: is called when its process has ended.
        forwarded: the headers of whoever asks.
        mode: the revision, where it is known already; see :attr:`Connection.mode`.

    Raises:
        ServerUnavailable: it cannot be reached, refused, or the connection was lost; also in place
            of what is raised within.
    """
    signs = _Signs()
    transport = _transport(name, entry, ended, forwarded or {}, signs)
    try:
        async with _client(transport, changed, mode) as client:
            yield Connection(client, changed)
    except Exception as error:
        raise ServerUnavailable(_reason(error, entry, signs)) from error


@dataclass(frozen=True, slots=True)
class _Signs:
    """What was seen of a server that may say why it is of no use."""

    statuses: list[int] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@asynccontextmanager
async def _transport(
    name: str, entry: ServerEntry, ended: Callable[[], None], forwarded: Mapping[str, str], signs: _Signs
) -> AsyncGenerator[Any, None]:
    """The way to the server; lists of tools are looked through before the SDK reads them."""
    if entry.url is not None:
        way = http_transport(entry, forwarded, signs.statuses)
    else:
        way = stdio_transport(name, entry, ended, signs.unread)
    async with way as (read, write):
        yield CheckedStream(read, name), write


def _client(transport: Any, changed: Callable[[], None], mode: str) -> Client:
    async def heard(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed()

    return Client(
        transport,
        mode=mode,
        message_handler=heard,
        client_info=types.Implementation(name="toolchat", version=__version__),
        cache=None,
        read_timeout_seconds=_ANSWERS,
    )


def _told(error: MCPError) -> Exception:
    if error.message in (_CLOSED, _SESSION_GONE):
        return ConnectionLost(may_have_run=error.message == _CLOSED)
    if error.code == types.REQUEST_TIMEOUT:
        return ToolExecutionError("the server did not answer in time", kind="timeout")
    return ToolExecutionError(shown_text(error.message, _LONGEST_ERROR) or "the server refused the call", kind="failed")


def _reason(error: BaseException, entry: ServerEntry, signs: _Signs) -> str:
    while isinstance(error, BaseExceptionGroup):  # what a task group makes of it
        error = error.exceptions[0]
    if signs.statuses:
        return f"it answers with status {signs.statuses[0]}"
    if signs.unread:
        return f"its standard output has lines that are no messages and nothing else: {signs.unread[0]}"
    if isinstance(error, MCPError):
        return "it closed the connection" if error.message == _CLOSED else shown_text(error.message, _LONGEST_ERROR)
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        if entry.cwd is not None and error.filename == entry.cwd:
            return f"its cwd is no folder that can be used ({type(error).__name__})"
        return f"its command cannot be started ({type(error).__name__})"
    if isinstance(error, OSError | httpx2.TransportError):
        return f"it cannot be reached ({type(error).__name__})"
    return f"it cannot be used ({type(error).__name__})"
