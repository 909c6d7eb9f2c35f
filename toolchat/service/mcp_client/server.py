"""The supervisor of one MCP server: connects, lists its tools, reconnects with backoff, and forwards calls."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from yarl import URL

from toolchat.errors import UpstreamUnavailable
from toolchat.http.environment import Proxies
from toolchat.service.access.principals import current_request_caller
from toolchat.service.mcp_client.client import ConnectionLost, ServerConnection, ServerUnavailable, SessionLost, connect
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.service.mcp_client.foreign_tools import RemoteResult, remote_tools, with_prefix
from toolchat.service.observability import metrics
from toolchat.service.settings.service_settings import Tuning
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError

if TYPE_CHECKING:
    from mcp_types import Tool

_log = logging.getLogger(__name__)

FIRST_BACKOFF, MAX_BACKOFF = 0.5, 60.0
"""Seconds before a reconnect: doubled after each failure, with jitter."""
STABLE_AFTER = 30.0
"""Seconds after which a connection counts as stable, so that its loss starts again with the first backoff."""
MIN_LIST_INTERVAL = 0.5
"""Least seconds between two listings, however often a server reports changes."""
RECONNECT_TIMEOUT = 5.0
"""Seconds that a call waits for a new connection while one begins."""


class RemoteServer:
    """Offers the tools of one MCP server; implements :class:`toolchat.service.api.tool_registry.DynamicTools`."""

    def __init__(self, name: str, entry: ServerEntry, tuning: Tuning, proxies: Proxies) -> None:
        self.version = 0
        self.fault: str | None = "the server has not answered yet"
        self._name = name
        self._entry = entry
        self._connect = partial(connect, name, entry, proxies)
        self._route = proxies.route(URL(entry.url)) if entry.url else ""
        self.cause = ""
        self._tuning = tuning
        self._tools: tuple[ToolCallback, ...] = ()
        self._listed: list[Tool] = []
        self._connection: ServerConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        """The server is known to be there, or to be away; not while a connection begins."""
        self._changed = asyncio.Event()
        """The tools may have changed, or the connection has ended: in both cases the supervisor must wake up."""
        self._has_ended = self._is_stopping = self._is_listed = False

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools of the last listing; they stay on offer while the server is unavailable."""
        return self._tools

    def prefixed(self, tool: ToolCallback) -> ToolCallback:
        """See :meth:`DynamicTools.prefixed`: the prefix is the server's name, which is unique."""
        return with_prefix(tool, self._name)

    async def wait_ready(self) -> None:
        try:
            async with asyncio.timeout(self._tuning.tool_server_wait):
                await self._settled.wait()
        except TimeoutError:
            _log.warning("the service is ready without the MCP server %s", self._name)

    async def check(self) -> str:
        """Describe in a few words what the server offers."""
        if self.fault is not None:
            unavailable = UpstreamUnavailable(self.fault)
            unavailable.log_fields["cause"] = self.cause
            raise unavailable
        return f"offers {len(self._tools)} tools" + (f"; reached {self._route}" if self._route else "")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["RemoteServer", None]:
        """Supervise the server in a background task until the exit."""
        metrics.labelled(metrics.MCP_SERVER_UP, self._name).set(0)
        self._task = asyncio.create_task(self._run(), name=f"MCP server {self._name}")
        try:
            yield self
        finally:
            self.stop()
            await asyncio.wait({self._task})

    def stop(self) -> None:
        # Cancelled once only: a second cancellation would break through the SDK's shield around the end of a process.
        if not self._is_stopping and self._task is not None:
            self._is_stopping = True
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        backoff = FIRST_BACKOFF
        while not self._is_stopping:
            started = loop.time()
            self._is_listed = False
            try:
                reason, cause = await self._follow_connection(), ""
            except ServerUnavailable as error:
                if self._is_stopping:  # `connect` has replaced the cancellation by an error of the transport
                    return
                reason, cause = "" if error.is_session_lost and self._is_listed else str(error), error.cause
            if not reason:  # only its session has ended, and another one may begin at once
                continue
            self._set_unavailable(reason, cause)
            if loop.time() - started > STABLE_AFTER:
                backoff = FIRST_BACKOFF
            # The jitter keeps replicas from reconnecting to a restarted server in the same instant.
            await asyncio.sleep(backoff * random.uniform(0.5, 1))  # noqa: S311 - not for cryptography
            backoff = min(2 * backoff, MAX_BACKOFF)

    async def _follow_connection(self) -> str:
        """Open one connection and keep the list of tools up to date; returns why it ended, empty if its session did."""
        self._has_ended = False
        async with self._connect(on_change=self._changed.set, on_end=self._end_connection) as connection:
            watcher = asyncio.create_task(self._watch_changes(connection))
            try:
                while not self._has_ended:
                    # Cleared before the listing: a change during it leads to another one.
                    self._changed.clear()
                    await self._accept_tools(await connection.tools(), connection.malformed_tools)
                    self._set_available(connection)
                    await self._wait_for_change()
                return connection.end_reason
            finally:
                self._connection = None
                self._settled.clear()
                watcher.cancel()

    async def _watch_changes(self, connection: ServerConnection) -> None:
        while True:
            with suppress(Exception):  # without a subscription the tools are still listed at every refresh
                await connection.watch_changes()
            await asyncio.sleep(self._tuning.tool_list_refresh)

    async def _wait_for_change(self) -> None:
        try:
            async with asyncio.timeout(self._tuning.tool_list_refresh):
                await self._changed.wait()
        except TimeoutError:
            return
        if not self._has_ended:
            await asyncio.sleep(MIN_LIST_INTERVAL)

    def _end_connection(self) -> None:
        """Make the supervisor close the connection and open another one."""
        self._has_ended = True
        self._changed.set()

    async def _accept_tools(self, listed: "list[Tool]", malformed: int) -> None:
        if listed == self._listed:
            return
        # In a thread: compiling the validators of large schemas would block the event loop.
        tools = await asyncio.to_thread(remote_tools, self._name, self._entry, listed, self._call)
        included = sum(self._entry.includes(each.name) for each in listed)
        metrics.labelled(metrics.MCP_TOOLS_DROPPED, self._name).set(malformed + included - len(tools))
        self._listed, self._tools = listed, tuple(tools)
        self.version += 1

    def _set_available(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._is_listed = True
        self._settled.set()
        metrics.labelled(metrics.MCP_SERVER_UP, self._name).set(1)
        if self.fault is not None:
            self.fault = None
            self.version += 1
            fields = {"server": self._name, "revision": connection.revision, "tools": len(self._tools)}
            _log.info("MCP server connected", extra=fields | ({"reached": self._route} if self._route else {}))

    def _set_unavailable(self, reason: str, cause: str = "") -> None:
        self._settled.set()
        metrics.labelled(metrics.MCP_SERVER_UP, self._name).set(0)
        if (self.fault, self.cause) != (reason, cause):
            self.fault, self.cause = reason, cause
            self.version += 1
            fields = {"cause": cause} if cause else {}
            _log.warning("the MCP server %s is unavailable: %s", self._name, reason, extra=fields)

    async def _call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> RemoteResult:
        headers = self._entry.forwarded_headers(current_request_caller().headers)
        connection = await self._current_connection()
        try:
            with suppress(SessionLost):
                if not headers:
                    return await connection.call(tool, arguments, context)
            return await self._call_separately(headers, connection, tool, arguments, context)
        except ConnectionLost as lost:
            self._changed.set()  # the next listing finds out whether it is away
            raise self._unavailable() from lost

    async def _current_connection(self) -> ServerConnection:
        with suppress(TimeoutError):
            async with asyncio.timeout(RECONNECT_TIMEOUT):
                await self._settled.wait()
        if self._connection is None:
            raise self._unavailable()
        return self._connection

    async def _call_separately(
        self,
        headers: Mapping[str, str],
        common: ServerConnection,
        tool: str,
        arguments: Mapping[str, Any],
        context: ToolContext,
    ) -> RemoteResult:
        """Call in a session of its own: a server may bind one to the user who opened it, or have lost the common one.

        The common session is renewed only if this one fares better: other calls may be under way in it.
        """
        is_common_lost = not headers
        try:
            async with self._connect(on_change=self._changed.set, forwarded=headers, mode=common.mode) as connection:
                return await connection.call(tool, arguments, context)
        except SessionLost as error:
            is_common_lost = False
            raise error.answer from error
        except ServerUnavailable as error:
            if error.is_away:
                raise ConnectionLost from error
            _log.warning("an MCP server refuses a connection", extra={"server": self._name, "cause": error.cause})
            raise ToolExecutionError(f"the server {self._name} refuses: {error}", kind="failed") from error
        finally:
            if is_common_lost and common is self._connection:
                self._end_connection()

    def _unavailable(self) -> ToolExecutionError:
        return ToolExecutionError(
            f"the server {self._name} is unavailable",
            kind="tool-server-away",
            hint="answer without it, and say that it could not be reached",
            retryable=True,
        )
