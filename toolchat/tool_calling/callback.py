"""A tool that can be run."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError

__all__ = [
    "ClientToolCallback",
    "DelegatingToolCallbackResolver",
    "StaticToolCallbackProvider",
    "StaticToolCallbackResolver",
    "ToolCallback",
    "ToolCallbackProvider",
    "ToolCallbackResolver",
    "ToolResult",
    "duplicate_name_error",
]


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


class ClientToolCallback(ToolCallback):
    """Offered like any other tool; a message that calls it ends the question, and the caller is given the call.

    What else the message calls is run before that. The caller goes on with the answer's ``history``, its message and
    the results.
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self.metadata = ToolMetadata(run_by_caller=True)

    async def call(self, tool_input: str, context: ToolContext) -> str:  # noqa: ARG002
        """See :meth:`ToolCallback.call`; only whoever asks has the code."""
        raise ToolExecutionError("this tool is run by whoever asks", kind="not-run")


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


class ToolCallbackResolver(Protocol):
    """Finds a tool by name, or nothing."""

    def resolve(self, name: str) -> ToolCallback | None:
        """Look up one tool."""
        ...

    def names(self) -> tuple[str, ...]:
        """Every name that would be found."""
        ...


def duplicate_name_error(one: ToolCallback, other: ToolCallback) -> ToolDefinitionError:
    """The error of two tools that have one name, naming both owners."""
    return ToolDefinitionError(f"two tools have the name {one.definition.name}: {other.owner} and {one.owner}")


class StaticToolCallbackResolver:
    """Finds among the tools that it was given."""

    def __init__(self, callbacks: Iterable[ToolCallback]) -> None:
        self._callbacks: dict[str, ToolCallback] = {}
        for callback in callbacks:
            other = self._callbacks.setdefault(callback.definition.name, callback)
            if other is not callback:
                raise duplicate_name_error(callback, other)

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
