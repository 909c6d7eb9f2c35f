"""Tool definitions as JSON, written once: they are the same with every question, and longer than most."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from app.tool_calling.definition import ToolDefinition

__all__ = ["SerializedTools"]

_MAX_KEPT = 64


class SerializedTools:
    """Remembers the JSON of the sets of tools that were offered lately."""

    def __init__(self, write: Callable[[ToolDefinition], dict[str, Any]]) -> None:
        """Take the provider's own way to write one definition."""
        self._write = write
        self._kept: OrderedDict[tuple[int, ...], tuple[tuple[ToolDefinition, ...], bytes]] = OrderedDict()

    def of(self, tools: tuple[ToolDefinition, ...]) -> bytes:
        """The definitions as a JSON array."""
        # By identity: comparing schemas would cost more than writing them. The entry holds on to its definitions, so
        # that no other object can have their ids.
        key = tuple(map(id, tools))
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = (tools, to_json([self._write(tool) for tool in tools]))
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return kept[1]
