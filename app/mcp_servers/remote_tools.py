"""The tools of another server as tools of this service."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from app.mcp_servers.checked_schema import checked_schema
from app.mcp_servers.entry import ServerEntry
from app.mcp_servers.foreign_text import UnusableSchemaError, shown_text, tool_name, usable_schema
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.function_callback import FunctionToolCallback

if TYPE_CHECKING:
    from mcp_types import Tool

__all__ = ["RemoteCall", "prefixed", "remote_tools"]

_log = logging.getLogger(__name__)

_LONGEST_DESCRIPTION = 4000
_MOST_NAMED = 20

RemoteCall = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[str]]
"""Calls a tool by the name that its server gives it."""


def remote_tools(server: str, entry: ServerEntry, listed: Iterable["Tool"], call: RemoteCall) -> list[ToolCallback]:
    """Make tools of what a server lists; what cannot be used is left out, and the log says why.

    The file decides which of them are taken and which wait for consent. What the server says of a tool itself may make
    it stricter, never laxer.
    """
    return list(_usable_tools(server, entry, listed, call))


def _usable_tools(
    server: str, entry: ServerEntry, listed: Iterable["Tool"], call: RemoteCall
) -> Iterator[ToolCallback]:
    listed, seen = tuple(listed), set[str]()
    _warn_of_idle_patterns(server, entry, [tool.name for tool in listed])
    for tool in listed:
        name = tool_name(tool.name, entry.prefix)
        if not entry.takes(tool.name):
            continue
        try:
            if name in seen or not tool.name:
                raise UnusableSchemaError("its server has another one of this name")
            seen.add(name)
            yield _callback(name, server, entry, tool, call)
        except (UnusableSchemaError, ToolDefinitionError, RecursionError, ValueError) as error:
            reason = shown_text(str(error), 300)
            _log.warning("the tool %s of the MCP server %s cannot be used: %s", name, server, reason)


def _warn_of_idle_patterns(server: str, entry: ServerEntry, names: Sequence[str]) -> None:
    for pattern in entry.include:
        if names and not any(fnmatchcase(name, pattern) for name in names):
            has = ", ".join(shown_text(name, 64) for name in names[:_MOST_NAMED])
            _log.warning("include: %s matches no tool of the MCP server %s, which has: %s", pattern, server, has)


def _callback(name: str, server: str, entry: ServerEntry, tool: "Tool", call: RemoteCall) -> ToolCallback:
    own_name = tool.name
    told = shown_text(tool.description or tool.title or "", _LONGEST_DESCRIPTION)
    described = told or f"The tool {name} of the server {server}"

    async def run(context_of_the_call: ToolContext, **arguments: Any) -> str:
        return await call(own_name, arguments, context_of_the_call)

    definition = ToolDefinition(name, described, usable_schema(tool.input_schema))
    checked = replace(definition, input_schema=checked_schema(definition.input_schema))
    callback = FunctionToolCallback.of(run, definition=checked, metadata=_metadata(entry, tool))
    return replace(callback, definition=definition)  # what a model is shown


def _metadata(entry: ServerEntry, tool: "Tool") -> ToolMetadata:
    hints = tool.annotations
    reads = hints is not None and hints.read_only_hint is True
    destroys = hints is not None and hints.destructive_hint is True and not reads
    repeatable = reads or (hints is not None and hints.idempotent_hint is True)
    if entry.needs_approval(tool.name, destructive=destroys):
        return ToolMetadata(requires_approval=True, timeout=entry.timeout)
    return ToolMetadata(read_only=reads, retries=int(repeatable), timeout=entry.timeout)


def prefixed(tool: ToolCallback, prefix: str) -> ToolCallback:
    """The same tool under the name that it has where its own is taken."""
    if not isinstance(tool, FunctionToolCallback):
        return tool
    return replace(tool, definition=replace(tool.definition, name=tool_name(tool.definition.name, prefix)))
