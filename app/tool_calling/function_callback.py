"""A typed function as a tool."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar, overload

from app.tool_calling.caching import RecentResults, ResultCache, call_key, check_cacheable
from app.tool_calling.callback import ToolCallback, ToolResult
from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata
from app.tool_calling.result_converter import ToolCallResultConverter, convert_result
from app.tool_calling.schema import ToolInput, description_of, tool_input_of
from app.tool_calling.threads import run_blocking

__all__ = ["FunctionToolCallback", "ToolMarker", "name_of", "tool"]

_F = TypeVar("_F", bound=Callable[..., Any])
_MARKER = "__tool__"


@dataclass(frozen=True, slots=True)
class ToolMarker:
    """What ``@tool`` says about a function, a method or a class of callable objects."""

    name: str | None = None
    description: str | None = None
    metadata: ToolMetadata = field(default_factory=ToolMetadata)
    result_converter: ToolCallResultConverter = convert_result

    @classmethod
    def on(cls, marked: object) -> "ToolMarker | None":
        """Find the marker of a function, a method, or an object of a marked class."""
        found = getattr(marked, _MARKER, None)
        return found if isinstance(found, cls) else None


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
    requires_approval: bool = False,
    timeout: float | None = None,
    cache_seconds: float | None = None,
    result_converter: ToolCallResultConverter = convert_result,
) -> Callable[[_F], _F]: ...


def tool(
    function: _F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
    requires_approval: bool = False,
    timeout: float | None = None,
    cache_seconds: float | None = None,
    result_converter: ToolCallResultConverter = convert_result,
) -> _F | Callable[[_F], _F]:
    """Mark a function, a method or a class of callable objects as a tool: ``@tool``, or ``@tool(...)`` with arguments.

    Args:
        function: what is marked, where nothing more is to be said.
        name: the name that the model sees; else the function's own.
        description: what the model decides by; else the first paragraph of the docstring, else the name in words.
        return_direct: the result is the answer, the model is not asked again.
        requires_approval: a call waits for the user's consent; for tools that change something.
        timeout: seconds that a call may take.
        cache_seconds: seconds for which a result also answers equal calls; for tools that only look something up.
        result_converter: turns the return value into text for the model.
    """
    marker = ToolMarker(
        name,
        description,
        ToolMetadata(return_direct, requires_approval=requires_approval, timeout=timeout, cache_seconds=cache_seconds),
        result_converter,
    )

    def mark(marked: _F) -> _F:
        setattr(marked, _MARKER, marker)
        return marked

    return mark if function is None else mark(function)


@dataclass(frozen=True, slots=True)
class FunctionToolCallback(ToolCallback):
    """A function, or any callable object, behind a definition.

    A coroutine function runs on the event loop; a plain function may block, and runs in a bounded pool of threads
    with the caller's context variables.
    """

    definition: ToolDefinition
    metadata: ToolMetadata
    _function: Callable[..., Any]
    _input: ToolInput
    _converter: ToolCallResultConverter
    _is_async: bool = field(init=False, repr=False, compare=False)
    _cache: ResultCache | None = field(init=False, default=None, repr=False, compare=False)
    """Belongs to this object alone; a copy begins with an empty one."""

    def __post_init__(self) -> None:
        check_cacheable(self.definition.name, self.metadata, self._input.context_parameter)
        object.__setattr__(self, "_is_async", _is_async(self._function))
        if self.metadata.cache_seconds:
            object.__setattr__(self, "_cache", ResultCache(RecentResults(self.metadata.cache_seconds)))

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        definition: ToolDefinition | None = None,
        metadata: ToolMetadata | None = None,
        result_converter: ToolCallResultConverter | None = None,
    ) -> Self:
        """Make a tool from a typed function, marked or not.

        What is given here wins over ``@tool``, and that over what the function itself says.

        Args:
            function: a function, a bound method or a callable object, with or without a :class:`ToolContext`.
            name: the name that the model sees.
            description: what the model decides by.
            definition: name, description and schema together, for a function whose signature says too little.
            metadata: how the service treats the tool.
            result_converter: turns the return value into text for the model.

        Raises:
            ToolDefinitionError: the signature cannot be a tool's input, or the results cannot be cached.
        """
        marker = ToolMarker.on(function) or ToolMarker()
        name = name or (definition.name if definition else name_of(function))
        tool_input = tool_input_of(function, name)
        if definition is None:
            description = description or marker.description or description_of(function) or _in_words(name)
            definition = ToolDefinition(name, description, tool_input.schema)
        return cls(
            definition, metadata or marker.metadata, function, tool_input, result_converter or marker.result_converter
        )

    @property
    def owner(self) -> str:
        """The function's module and name, or its class's."""
        code = self._function if hasattr(self._function, "__qualname__") else type(self._function)
        return f"{code.__module__}.{code.__qualname__}"

    async def call(self, tool_input: str, context: ToolContext) -> str:
        """Run the function; see :meth:`ToolCallback.call`."""
        arguments = self._input.arguments(tool_input)
        if self._input.context_parameter is not None:
            arguments[self._input.context_parameter] = context
        if self._is_async:
            result = await self._function(**arguments)
        else:
            result = await run_blocking(lambda: self._function(**arguments))
        return self._converter(result)

    async def cached_call(self, tool_input: str, context: ToolContext) -> ToolResult:
        """Run the function, or take the result of an equal call; see :meth:`ToolCallback.cached_call`."""
        if self._cache is None:
            return ToolResult(await self.call(tool_input, context))
        self._input.arguments(tool_input)
        key = call_key(tool_input, self._input.schema)
        return await self._cache.result(key, lambda: self.call(tool_input, ToolContext()))

    def in_sandbox(self) -> Self:
        """Copy that is marked as answering from invented data."""
        return replace(self, metadata=replace(self.metadata, sandbox=True))

    def cached_for(self, seconds: float) -> Self:
        """Copy whose results are kept for another time; 0 switches the cache off."""
        return replace(self, metadata=replace(self.metadata, cache_seconds=seconds))


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def name_of(function: Callable[..., Any]) -> str:
    """The tool name of a function, a callable object or its class: what ``@tool`` says, else its own name."""
    marker = ToolMarker.on(function)
    return (marker and marker.name) or getattr(function, "__name__", None) or type(function).__name__


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).strip().lower()
