"""A tool that can be run."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata

__all__ = ["ToolCallback", "ToolResult"]


class ToolResult(NamedTuple):
    """A call's result as text for the model, and what is worth knowing about it."""

    text: str
    cached: bool = False
    """It was made for an equal call, before this one or at the same time."""
    repaired: bool = False
    """The arguments did not fit as the model wrote them, and were read as they were meant."""


class ToolCallback(ABC):
    """A definition, and the code behind it."""

    definition: ToolDefinition
    metadata: ToolMetadata

    @property
    def owner(self) -> str:
        """The code behind the tool, for messages to developers."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @property
    def takes_context(self) -> bool:
        """Whether the tool looks at the context of a call, and may report by it."""
        return True

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

    def check(self, tool_input: str) -> None:  # noqa: B027 - what only the tool's own side can check is left to a call
        """Say whether a call would run with these arguments, without running it.

        Raises:
            ToolArgumentsError: they do not fit.
        """

    async def result(self, tool_input: str, context: ToolContext) -> ToolResult:
        """Answer a call of a question: run the tool, or take the result of an equal call where it may repeat.

        Arguments and errors are those of :meth:`call`.
        """
        return ToolResult(await self.call(tool_input, context))
