"""Lists of tools on their way in: a tool that is none is taken out, since the SDK would refuse all that are with it."""

import logging
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from app.mcp_servers.foreign_text import shown_text

__all__ = ["CheckedStream"]

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
