"""One other server as long as the service runs: connected, asked for its tools, lost, and found again."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from app.mcp_client.client import Connection, ConnectionLost, ServerUnavailable, connected
from app.mcp_client.file import McpServersSettings, ServerEntry
from app.mcp_client.foreign_tools import prefixed, remote_tools
from app.observability.telling import mcp_server_is_up
from toolchat.callers import current_caller
from toolchat.errors import UpstreamUnavailable
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError

if TYPE_CHECKING:
    from mcp_types import Tool

__all__ = ["RemoteServer"]

_log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
"""Seconds before a lost server is looked for again: doubled each time, and cut by chance."""
_STEADY = 30.0
"""Seconds after which a connection has proven itself, and the next loss counts as the first."""
_BETWEEN_LISTS = 0.5
"""Least seconds between two lists, however often a server says that its tools have changed."""
_FOUND_AGAIN = 5.0
"""Seconds that a call waits for a server whose session has just been lost."""


class RemoteServer:
    """Offers the tools of one server; see :class:`app.tools.dynamic_tools.DynamicTools`.

    Args:
        name: the server's name in the file.
        entry: what the file says of it.
        settings: how it is looked after.
    """

    def __init__(self, name: str, entry: ServerEntry, settings: McpServersSettings) -> None:
        self.version = 0
        self.fault: str | None = "the server has not answered yet"
        self._name = name
        self._entry = entry
        self._settings = settings
        self._tools: tuple[ToolCallback, ...] = ()
        self._listed: list[Tool] = []
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._found = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_over = self._is_left = False

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools that it had when it was last asked."""
        return self._tools

    def prefixed(self, tool: ToolCallback) -> ToolCallback:
        """See :meth:`DynamicTools.prefixed`: the server's name, which no other one has."""
        return prefixed(tool, self._name)

    async def wait_ready(self) -> None:
        """See :meth:`DynamicTools.wait_ready`."""
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                await self._tried.wait()
        except TimeoutError:
            _log.warning("the service starts without the MCP server %s", self._name)

    async def check(self) -> str:
        """Say in a few words what it offers.

        Raises:
            UpstreamUnavailable: it is away, or has not answered in time.
        """
        if not self._tried.is_set() or self.fault is not None:
            raise UpstreamUnavailable(self.fault or "it has not answered yet")
        return f"offers {len(self._tools)} tools"

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["RemoteServer", None]:
        """Look after the server, in a task of its own, until the exit."""
        self._task = asyncio.create_task(self._run(), name=f"MCP server {self._name}")
        try:
            yield self
        finally:
            self.stop()
            await asyncio.wait({self._task})

    def stop(self) -> None:
        """See :meth:`DynamicTools.stop`."""
        if not self._is_left and self._task is not None:
            self._is_left = True
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE
        while not self._is_left:
            began = loop.time()
            try:
                await self._follow()
                self._lose("the connection was lost")
            except ServerUnavailable as error:
                if self._is_left:  # an error on the way out takes the place of being cancelled
                    return
                self._lose(str(error))
            if loop.time() - began > _STEADY:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _follow(self) -> None:
        """Hold one connection, and take over what the server offers, until the connection is over.

        Raises:
            ServerUnavailable: there was none, or it was lost.
        """
        self._is_over = False
        async with connected(self._name, self._entry, changed=self._changed.set, ended=self._end) as connection:
            hearing = asyncio.create_task(self._hear(connection))
            try:
                while not self._is_over:
                    self._changed.clear()
                    await self._take(await connection.tools())
                    self._find(connection)
                    await self._rest()
            finally:
                self._connection = None
                self._found.clear()
                hearing.cancel()

    async def _hear(self, connection: Connection) -> None:
        while True:
            with suppress(Exception):  # the server is asked again in any case
                await connection.hear()
            await asyncio.sleep(self._settings.refresh_seconds)

    async def _rest(self) -> None:
        """Wait until the list may be another one."""
        try:
            async with asyncio.timeout(self._settings.refresh_seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        if not self._is_over:
            await asyncio.sleep(_BETWEEN_LISTS)

    def _end(self) -> None:
        """Give the connection up; another one is made."""
        self._is_over = True
        self._changed.set()

    async def _take(self, listed: "list[Tool]") -> None:
        if listed == self._listed:
            return
        # In a thread: the checks of large schemas take longer than the event loop can do without.
        tools = await asyncio.to_thread(remote_tools, self._name, self._entry, listed, self._call)
        self._listed, self._tools = listed, tuple(tools)
        self.version += 1

    def _find(self, connection: Connection) -> None:
        self._connection = connection
        self._found.set()
        self._tried.set()
        mcp_server_is_up(self._name, True)
        if self.fault is not None:
            self.fault = None
            self.version += 1
            fields = {"server": self._name, "revision": connection.revision, "tools": len(self._tools)}
            _log.info("an MCP server is there", extra=fields)

    def _lose(self, reason: str) -> None:
        self._tried.set()
        mcp_server_is_up(self._name, False)
        if self.fault != reason:
            self.fault = reason
            self.version += 1
            _log.warning("the MCP server %s is away: %s", self._name, reason)

    async def _call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> str:
        try:
            return await self._answer(tool, arguments, context)
        except ConnectionLost as lost:
            self._connection = None
            self._found.clear()
            self._end()
            if lost.may_have_run:
                raise self._away() from lost
        try:  # The server has forgotten the session, as one does that was started anew: the call has not begun.
            async with asyncio.timeout(_FOUND_AGAIN):
                await self._found.wait()
            return await self._answer(tool, arguments, context)
        except (ConnectionLost, TimeoutError) as error:
            raise self._away() from error

    async def _answer(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if self._connection is None:
            raise self._away()
        if forwarded := self._entry.headers_of(current_caller.get().headers):
            return await self._answer_to(forwarded, self._connection.mode, tool, arguments, context)
        return await self._connection.call(tool, arguments, context)

    async def _answer_to(
        self, headers: Mapping[str, str], mode: str, tool: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> str:
        """Call by a connection of its own: a session may hold on to who began it, and never is somebody else's."""
        try:
            async with connected(
                self._name, self._entry, changed=self._changed.set, forwarded=headers, mode=mode
            ) as connection:
                # What is raised within would come out as a connection that was lost.
                (told,) = await asyncio.gather(connection.call(tool, arguments, context), return_exceptions=True)
        except ServerUnavailable as error:
            raise ToolExecutionError(f"the server {self._name} refuses: {error}", kind="failed") from error
        if isinstance(told, ConnectionLost):
            raise self._away() from told
        if isinstance(told, BaseException):
            raise told
        return told

    def _away(self) -> ToolExecutionError:
        return ToolExecutionError(
            f"the server {self._name} cannot be reached just now",
            kind="tool-server-away",
            hint="answer without it, and say that it could not be reached",
            retryable=True,
        )
