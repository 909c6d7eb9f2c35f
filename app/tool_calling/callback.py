"""A tool that can be run."""

from abc import ABC, abstractmethod

from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata

__all__ = ["ToolCallback"]


class ToolCallback(ABC):
    """A definition, and the code behind it."""

    definition: ToolDefinition
    metadata: ToolMetadata

    @property
    def owner(self) -> str:
        """The code behind the tool, for messages to developers."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @abstractmethod
    async def call(self, tool_input: str, context: ToolContext) -> str:
        """Run the tool.

        Args:
            tool_input: the arguments as JSON text, as a model writes them.
            context: what the caller passes behind the model's back.

        Returns:
            The result as text for the model.

        Raises:
            ToolArgumentsError: the arguments do not fit; nothing was run.
            ToolExecutionError: the tool's own, expected failure.
        """
