"""Tool modules for the servers of ``MCP_SERVERS_FILE``, one for each server."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolchat.chat.tool_module import Components, ToolModule
from toolchat.errors import UpstreamUnavailable
from toolchat.service.mcp_client.file import McpServersSettings, ServerEntry, read_file
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.tuning import Tuning

if TYPE_CHECKING:
    from toolchat.service.mcp_client.server import RemoteServer

_QUERY = "你的工具能做什么？What can your tools do?"


@dataclass(frozen=True, slots=True)
class McpServers:
    """The configured servers as tool modules."""

    modules: tuple[ToolModule, ...] = ()
    variables: frozenset[str] = frozenset()
    """The variables that the file refers to, so that the start does not warn of them as unknown."""


def read_mcp_servers(tuning: Tuning) -> McpServers:
    """Read the configured servers, without connecting to any and without importing the SDK.

    Args:
        tuning: how long the start waits for a server, and how often its tools are listed again.
    """
    settings = read_settings(McpServersSettings)
    if settings.file is None:
        return McpServers()
    servers, variables = read_file(settings.file)
    return McpServers(tuple(_module(name, entry, tuning) for name, entry in servers.items()), variables)


def _module(name: str, entry: ServerEntry, tuning: Tuning) -> ToolModule:
    server = _ServerModule(name, entry, tuning)
    return ToolModule(
        name=f"mcp-{name}",
        title=f"MCP {name}",
        path=f"/mcp/{name}",
        default_query=_QUERY,
        tool_source=server.open,
        check=server.check,
    )


class _ServerModule:
    """The resources of a server's tool module; the server itself exists only while the service runs."""

    def __init__(self, name: str, entry: ServerEntry, tuning: Tuning) -> None:
        self._name, self._entry, self._tuning = name, entry, tuning
        self._server: RemoteServer | None = None

    @asynccontextmanager
    async def open(self, _: Components) -> AsyncGenerator[Sequence[object], None]:
        from toolchat.service.mcp_client.server import RemoteServer  # imported late, because it imports the SDK

        async with RemoteServer(self._name, self._entry, self._tuning).running() as self._server:
            yield (self._server,)

    async def check(self, _: Components) -> str:
        if self._server is None:
            raise UpstreamUnavailable(f"the server {self._name} is not running")
        return await self._server.check()
