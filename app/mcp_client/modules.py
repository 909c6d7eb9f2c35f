"""From the file to tool folders: one for each server that it names."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dishka import AsyncContainer

from app.mcp_client.file import McpServersSettings
from app.settings.base import read_settings
from app.tools.module import ToolModule, ToolSettings
from app.tools.registry import ConfiguredModule
from toolchat.errors import UpstreamUnavailable

if TYPE_CHECKING:
    from app.mcp_client.file import ServerEntry
    from app.mcp_client.server import RemoteServer

__all__ = ["McpServers", "read_mcp_servers"]

_QUERY = "你的工具能做什么？What can your tools do?"


@dataclass(frozen=True, slots=True)
class McpServers:
    """The servers of the file as tool folders."""

    modules: tuple[ConfiguredModule, ...] = ()
    variables: frozenset[str] = frozenset()
    """The variables that the file takes values from, so that nobody calls them unread."""


def read_mcp_servers() -> McpServers:
    """Read which servers there are; none of them is asked, and nothing of the SDK is imported.

    Raises:
        ConfigurationError: the file or a setting cannot be used; one line for each fault.
    """
    settings = read_settings(McpServersSettings)
    if settings.file is None:
        return McpServers()
    from app.mcp_client.file import read_file  # most services have no file, and need not pay for it

    file = read_file(settings.file)
    modules = (_module(name, entry, settings) for name, entry in file.servers.items())
    return McpServers(tuple(modules), file.variables)


def _module(name: str, entry: "ServerEntry", settings: McpServersSettings) -> ConfiguredModule:
    server = _OtherServer(name, entry, settings)
    module = ToolModule(
        name=f"mcp-{name}",
        title=f"MCP {name}",
        path=f"/mcp/{name}",
        default_query=_QUERY,
        offered=server.opened,
        check=server.check,
    )
    # Its switch is in the file: no variable is read for it.
    return ConfiguredModule(module, ToolSettings.model_construct(enabled=True, sandbox_url=None))


class _OtherServer:
    """What a folder knows of its server, which is there while the service runs."""

    def __init__(self, name: str, entry: "ServerEntry", settings: McpServersSettings) -> None:
        self._name, self._entry, self._settings = name, entry, settings
        self._server: RemoteServer | None = None

    @asynccontextmanager
    async def opened(self, _: AsyncContainer) -> AsyncGenerator[Sequence[object], None]:
        from app.mcp_client.server import RemoteServer  # and the SDK with it

        async with RemoteServer(self._name, self._entry, self._settings).running() as self._server:
            yield (self._server,)

    async def check(self, _: AsyncContainer) -> str:
        if self._server is None:
            raise UpstreamUnavailable(f"the server {self._name} is not looked after")
        return await self._server.check()
