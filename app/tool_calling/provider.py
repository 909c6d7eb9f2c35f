"""Whoever offers tools."""

from typing import Protocol, runtime_checkable

from app.tool_calling.callback import ToolCallback

__all__ = ["StaticToolCallbackProvider", "ToolCallbackProvider"]


@runtime_checkable
class ToolCallbackProvider(Protocol):
    """Offers tools."""

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools on offer."""
        ...


class StaticToolCallbackProvider:
    """Offers the tools that it was given."""

    def __init__(self, *callbacks: ToolCallback) -> None:
        self._callbacks = callbacks

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools on offer."""
        return self._callbacks
