"""Tool callbacks, and the providers and resolvers that find them."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from inspect import isawaitable
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from toolchat.tool_calling.argument_repair import parse_json, repair_arguments, strip_wrapping
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata, is_async
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.threads import run_blocking


class ToolResult(NamedTuple):
    """A call's result as text for the model."""

    text: str
    cached: bool = False
    """The result belongs to an equal call, an earlier or a simultaneous one; this call did not run."""
    repaired: bool = False
    """The arguments did not fit the schema and were repaired."""
    data: Any = None
    """JSON for the client, beside the text; see :class:`ToolAnswer`."""
    images: tuple[str, ...] = ()
    """For a model that takes images, beside the text."""


class ToolCallback(ABC):
    """A tool: its definition and the code that runs it."""

    definition: ToolDefinition
    metadata: ToolMetadata

    @property
    def owner(self) -> str:
        """The name of the tool's code, for messages to developers."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @cached_property
    def alone(self) -> "ToolSet":
        """The set of this tool."""
        return ToolSet((self,))

    @property
    def takes_context(self) -> bool:
        """Whether the tool reads the context of a call and may report progress through it."""
        return True

    @abstractmethod
    async def call(self, tool_input: str, context: ToolContext) -> str:
        """Run the tool.

        Args:
            tool_input: the arguments as JSON text, as a model writes them.
            context: values from the application, hidden from the model.

        Returns:
            The result as text for the model.

        Raises:
            ToolArgumentsError: the arguments do not fit the schema; nothing was run.
            ToolExecutionError: an expected failure of the tool.
        """

    def check(self, tool_input: str) -> None:  # noqa: B027 - a remote tool can be checked only by a call
        """Validate arguments without running the tool.

        Raises:
            ToolArgumentsError: the arguments do not fit the schema.
        """

    def read_arguments(self, tool_input: str) -> Any:
        """Read arguments as the tool understands them, to find equal calls: ``1``, ``1.0`` and ``"1"`` may be the same.

        Arguments that do not fit the schema are returned as they are.
        """
        schema = self.definition.input_schema
        try:
            arguments = repair_arguments(parse_json(strip_wrapping(tool_input) or "{}"), schema)
        except ValueError:
            return tool_input
        if not isinstance(arguments, dict):
            return arguments
        parts = {name: part for name, part in schema.get("properties", {}).items() if isinstance(part, dict)}
        return {name: part["default"] for name, part in parts.items() if "default" in part} | arguments

    async def result(self, tool_input: str, context: ToolContext) -> ToolResult:
        """Run the tool, or reuse the result of an equal call if the tool is cached.

        Takes the arguments and raises the errors of :meth:`call`.
        """
        return ToolResult(await self.call(tool_input, context))


class ClientToolCallback(ToolCallback):
    """A tool that the client runs: the engine offers it, and returns its calls to the client.

    A message that calls it ends the chat request after the message's other calls were run. The client continues with
    the answer's ``history``, its message and the results.
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self.metadata = ToolMetadata(run_by_caller=True)

    async def call(self, tool_input: str, context: ToolContext) -> str:  # noqa: ARG002
        """See :meth:`ToolCallback.call`; always fails, since only the client has the code."""
        raise ToolExecutionError("this tool is run by the client", kind="not-run")


_MAX_SUBSETS = 64


class ToolSet(tuple[ToolCallback, ...]):
    """Tools that are offered together, with what every question needs to know of them.

    All of that is computed once for each set, so offer the same set with every question if there are many tools.
    """

    @classmethod
    def unique(cls, tools: Iterable[ToolCallback]) -> Self:
        """The set of these tools; a tool that occurs twice counts once."""
        found: dict[str, ToolCallback] = {}
        for tool in tools:
            if (other := found.setdefault(tool.definition.name, tool)) is not tool:
                name, owners = tool.definition.name, f"{other.owner} and {tool.owner}"
                raise ToolDefinitionError(f"two tools have the name {name}: {owners}")
        return cls(found.values())

    @cached_property
    def by_name(self) -> Mapping[str, ToolCallback]:
        """The tools by their names."""
        return {tool.definition.name: tool for tool in self}

    @cached_property
    def _subsets(self) -> dict[tuple[str, ...], "ToolSet"]:
        return {}

    def subset(self, names: tuple[str, ...]) -> "ToolSet":
        """The tools of these names, in their order; a call with the names of a recent one returns the same set."""
        if names not in self._subsets:
            if len(self._subsets) == _MAX_SUBSETS:
                self._subsets.clear()
            self._subsets[names] = ToolSet([self.by_name[name] for name in names])
        return self._subsets[names]

    @cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions."""
        return tuple([tool.definition for tool in self])

    @cached_property
    def metadata(self) -> Mapping[str, ToolMetadata]:
        """How the engine treats the tools, by their names."""
        return {tool.definition.name: tool.metadata for tool in self}

    @cached_property
    def guarded(self) -> Mapping[str, ToolCallback]:
        """The tools that require approval, by their names."""
        return {name: tool for name, tool in self.by_name.items() if tool.metadata.requires_approval}

    @cached_property
    def sandboxed(self) -> tuple[str, ...]:
        """The names of the tools that return invented data."""
        return tuple([name for name, tool in self.by_name.items() if tool.metadata.sandbox])

    @cached_property
    def client_tools(self) -> Self:
        """The tools that the client runs."""
        return type(self)([tool for tool in self if tool.metadata.run_by_caller])

    @cached_property
    def service_tools(self) -> Self:
        """The tools that the service runs."""
        return type(self)([tool for tool in self if not tool.metadata.run_by_caller]) if self.client_tools else self


@runtime_checkable
class ToolCallbackProvider(Protocol):
    """Offers tools."""

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """List the tools."""
        ...


class StaticToolCallbackProvider:
    """Offers a fixed set of tools."""

    def __init__(self, *callbacks: ToolCallback) -> None:
        self._callbacks = callbacks

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """List the tools."""
        return self._callbacks


class ToolCallbackResolver(Protocol):
    """Finds tools by name."""

    def resolve(self, name: str) -> ToolCallback | None:
        """Find a tool; ``None`` for an unknown name."""
        ...

    def names(self) -> tuple[str, ...]:
        """List the names of all tools."""
        ...


class StaticToolCallbackResolver:
    """Finds tools in a fixed set."""

    def __init__(self, callbacks: Iterable[ToolCallback]) -> None:
        self._callbacks = ToolSet.unique(callbacks).by_name

    def resolve(self, name: str) -> ToolCallback | None:
        return self._callbacks.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._callbacks)


class DelegatingToolCallbackResolver:
    """Tries several resolvers in order; the first result wins."""

    def __init__(self, *resolvers: ToolCallbackResolver) -> None:
        self._resolvers = resolvers

    def resolve(self, name: str) -> ToolCallback | None:
        return next((found for each in self._resolvers if (found := each.resolve(name)) is not None), None)

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in self._resolvers for name in each.names()))


_log = logging.getLogger(__name__)


def arguments_fault(tool: ToolCallback, arguments: str) -> ToolArgumentsError | None:
    """Why the arguments do not fit the tool, if they do not.

    Any other exception of a validator is a failure of the tool. The call itself reports it.
    """
    with suppress(Exception, SystemExit):
        try:
            tool.check(arguments)
        except ToolArgumentsError as error:
            return error
    return None


async def required_approver(tool: ToolCallback, arguments: str, context: ToolContext) -> str | None:
    """The role of who has to approve a call; empty: who asked confirms it; ``None``: it runs without an approval.

    Args:
        tool: the tool; ``metadata.requires_approval`` is its rule.
        arguments: the call's arguments as the model wrote them.
        context: the context of the call.
    """
    rule = tool.metadata.requires_approval
    if isinstance(rule, bool):
        return tool.metadata.approver if rule else None
    try:
        try:
            tool.check(arguments)
        except ToolArgumentsError:
            return None  # the call cannot run; the model learns why at once, and the user is not asked
        ask = partial(rule, tool.read_arguments(arguments), context)
        # A plain function may block, as a plain tool may: its query must not hold up every other request.
        decided = ask() if is_async(rule) else await run_blocking(tool.definition.name, ask)
        role = await decided if isawaitable(decided) else decided
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's code; what it fails to allow must not run
        _log.error("a rule for approval failed", extra={"tool": tool.definition.name}, exc_info=error)
        return tool.metadata.approver
    return (role if isinstance(role, str) else tool.metadata.approver) if role else None
