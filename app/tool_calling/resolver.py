"""From a tool's name to the tool."""

from collections.abc import Iterable
from typing import Protocol

from app.tool_calling.callback import ToolCallback
from app.tool_calling.errors import ToolDefinitionError

__all__ = ["DelegatingToolCallbackResolver", "StaticToolCallbackResolver", "ToolCallbackResolver", "same_name"]


class ToolCallbackResolver(Protocol):
    """Finds a tool by name, or nothing."""

    def resolve(self, name: str) -> ToolCallback | None:
        """Look up one tool."""
        ...

    def names(self) -> tuple[str, ...]:
        """Every name that would be found."""
        ...


def same_name(one: ToolCallback, other: ToolCallback) -> ToolDefinitionError:
    """The error of two tools that have one name, naming both owners."""
    return ToolDefinitionError(f"two tools have the name {one.definition.name}: {other.owner} and {one.owner}")


class StaticToolCallbackResolver:
    """Finds among the tools that it was given."""

    def __init__(self, callbacks: Iterable[ToolCallback]) -> None:
        self._callbacks: dict[str, ToolCallback] = {}
        for callback in callbacks:
            other = self._callbacks.setdefault(callback.definition.name, callback)
            if other is not callback:
                raise same_name(callback, other)

    def resolve(self, name: str) -> ToolCallback | None:
        """Look up one tool."""
        return self._callbacks.get(name)

    def names(self) -> tuple[str, ...]:
        """Every name that would be found."""
        return tuple(self._callbacks)


class DelegatingToolCallbackResolver:
    """Asks each resolver in turn; the first hit wins."""

    def __init__(self, *resolvers: ToolCallbackResolver) -> None:
        self._resolvers = resolvers

    def resolve(self, name: str) -> ToolCallback | None:
        """Look up one tool."""
        return next((found for each in self._resolvers if (found := each.resolve(name)) is not None), None)

    def names(self) -> tuple[str, ...]:
        """Every name that would be found."""
        return tuple(dict.fromkeys(name for each in self._resolvers for name in each.names()))
