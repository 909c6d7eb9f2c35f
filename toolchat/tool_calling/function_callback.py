"""A typed function as a tool."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Self, Unpack

from toolchat.tool_calling.caching import RecentResults, SingleFlight, call_key
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackProvider, ToolResult, duplicate_name_error
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import (
    ToolDefinition,
    ToolMarker,
    ToolMetadata,
    ToolOptions,
    tool,
    tool_name,
    validate_metadata,
)
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.input_validation import ToolInput
from toolchat.tool_calling.results import DONE, ToolCallResultConverter, convert_result, quoted_result
from toolchat.tool_calling.schema import input_from_schema, input_from_signature, read_output_schema
from toolchat.tool_calling.signature import docstring_summary, read_signature
from toolchat.tool_calling.threads import run_blocking

__all__ = [
    "FunctionToolCallback",
    "MethodToolCallback",
    "MethodToolCallbackProvider",
    "marked_tool_names",
    "to_callbacks",
    "tool",
    "tool_name",
]


_AS_TYPED = (convert_result, quoted_result)
"""Converters whose text is what the type of the return value says."""


@dataclass(frozen=True, slots=True)
class FunctionToolCallback(ToolCallback):
    """A function, or any callable object, behind a definition.

    A coroutine function runs on the event loop; a plain function may block, and runs in a bounded pool of threads
    with the caller's context variables. Where it returns an awaitable, as a decorator around a coroutine function does,
    this is awaited on the event loop.
    """

    definition: ToolDefinition
    metadata: ToolMetadata
    _function: Callable[..., Any]
    _input: ToolInput
    _converter: ToolCallResultConverter
    _is_async: bool = field(init=False, repr=False, compare=False)
    _cache: SingleFlight | None = field(init=False, default=None, repr=False, compare=False)
    """Belongs to this object alone; a copy begins with an empty one."""

    def __post_init__(self) -> None:
        validate_metadata(self.definition.name, self.metadata, self._input.context_parameter)
        object.__setattr__(self, "_is_async", _is_async(self._function))
        if self.metadata.cache_seconds:
            object.__setattr__(self, "_cache", SingleFlight(RecentResults(self.metadata.cache_seconds)))

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        definition: ToolDefinition | None = None,
        metadata: ToolMetadata | None = None,
        **options: Unpack[ToolOptions],
    ) -> Self:
        """Make a tool from a typed function, marked or not.

        What ``options`` say wins over ``metadata``, that over ``@tool``, and that over what the function itself says.

        Args:
            function: a function, a bound method or a callable object, with or without a :class:`ToolContext`.
            definition: name, description and schema together, for a function whose signature says too little: the
                arguments are checked by the schema, and the function is given those that it takes.
            metadata: how the service treats the tool; where it says nothing but the default, the mark's word stays.
            options: what ``@tool`` may say; see :class:`ToolOptions`.

        Raises:
            ToolDefinitionError: the signature cannot be a tool's input, or the tool cannot be treated as it asks.
        """
        marker = ToolMarker.find(function) or ToolMarker()
        if metadata is not None:
            marker = replace(marker, metadata=marker.metadata.updated(metadata))
        marker = marker.updated(options)
        name = options.get("name") or (definition.name if definition else tool_name(function))
        signature = read_signature(function, name)
        converter = marker.result_converter
        converter = _none_as_done(converter) if signature.returns_none else converter
        if definition is not None:
            tool_input = input_from_schema(signature, definition.input_schema, name)
        else:
            tool_input = input_from_signature(signature, name)
            description = marker.description or docstring_summary(function) or _in_words(name)
            output_schema = read_output_schema(function) if marker.result_converter in _AS_TYPED else {}
            definition = ToolDefinition(name, description, tool_input.schema, output_schema)
        return cls(definition, marker.metadata, function, tool_input, converter)

    of = from_function  # deprecated alias, removed in 0.3

    @property
    def owner(self) -> str:
        """The function's module and name, or its class's."""
        code = self._function if hasattr(self._function, "__qualname__") else type(self._function)
        return f"{code.__module__}.{code.__qualname__}"

    @property
    def takes_context(self) -> bool:
        """See :meth:`ToolCallback.takes_context`."""
        return self._input.context_parameter is not None

    def check(self, tool_input: str) -> None:
        """See :meth:`ToolCallback.check`; reads them as a call does, repairs among it."""
        self._input.read(tool_input)

    async def call(self, tool_input: str, context: ToolContext) -> str:
        """Run the function, whatever is kept of equal calls; see :meth:`ToolCallback.call`."""
        uncached = self if self._cache is None else self.with_cache_ttl(0)
        return (await uncached.result(tool_input, context)).text

    async def result(self, tool_input: str, context: ToolContext) -> ToolResult:
        """Run the function, or take the result of an equal call; see :meth:`ToolCallback.result`."""
        arguments, repaired = self._input.read(tool_input)
        if self._cache is not None:
            key = call_key(tool_input, self._input.schema)
            kept = await self._cache.result(key, lambda: self.call(tool_input, ToolContext()))
            return kept._replace(repaired=True) if repaired else kept
        if self._input.context_parameter is not None:
            arguments[self._input.context_parameter] = context
        if self._is_async:
            return ToolResult(self._converter(await self._function(**arguments)), False, repaired)
        result, text = await run_blocking(lambda: self._blocking(arguments))
        return ToolResult(self._converter(await result) if text is None else text, False, repaired)

    def _blocking(self, arguments: dict[str, Any]) -> tuple[Any, str | None]:
        """Run the function in a thread, and make text of its result there, unless it is to be awaited first."""
        result = self._function(**arguments)
        return (result, None) if isawaitable(result) else (None, self._converter(result))

    def in_sandbox(self) -> Self:
        """Copy that is marked as answering from invented data."""
        return replace(self, metadata=replace(self.metadata, sandbox=True))

    def with_converter(self, converter: ToolCallResultConverter) -> Self:
        """Copy whose results another converter makes text of, unless the function's mark names one."""
        marked = (ToolMarker.find(self._function) or ToolMarker()).result_converter
        if marked is not convert_result:
            return self
        returns_none = self._converter is not marked
        definition = self.definition if converter in _AS_TYPED else replace(self.definition, output_schema={})
        return replace(self, definition=definition, _converter=_none_as_done(converter) if returns_none else converter)

    def with_cache_ttl(self, seconds: float) -> Self:
        """Copy whose results are kept for another time; 0 switches the cache off."""
        return replace(self, metadata=replace(self.metadata, cache_seconds=seconds))

    told_by = with_converter  # deprecated alias, removed in 0.3
    cached_for = with_cache_ttl  # deprecated alias, removed in 0.3


def _is_async(function: Callable[..., Any]) -> bool:
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


def _none_as_done(converter: ToolCallResultConverter) -> ToolCallResultConverter:
    return lambda result: converter(DONE if result is None else result)


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).strip().lower()


class MethodToolCallback(FunctionToolCallback):
    """A method of an object behind a definition: a function tool whose function is bound."""

    __slots__ = ()


class MethodToolCallbackProvider:
    """Offers every method that ``@tool`` marks on the given objects, inherited, private and static ones too."""

    def __init__(self, *tool_objects: object) -> None:
        self.tool_objects = tool_objects

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """The tools, in the order of the objects and of the methods in their classes.

        Raises:
            ToolDefinitionError: an object has no marked method, or two methods have one name.
        """
        callbacks: dict[str, ToolCallback] = {}
        for tool_object in self.tool_objects:
            for callback in self._of_object(tool_object):
                name = callback.definition.name
                if name in callbacks:
                    raise duplicate_name_error(callback, callbacks[name])
                callbacks[name] = callback
        return tuple(callbacks.values())

    def _of_object(self, tool_object: object) -> list[MethodToolCallback]:
        marked = _marked_attributes(type(tool_object))
        if not marked:
            raise ToolDefinitionError(f"{type(tool_object).__name__} has no method that @tool marks")
        return [MethodToolCallback.from_function(getattr(tool_object, attribute)) for attribute in marked]


def marked_tool_names(cls: type) -> list[str]:
    """The names of the tools that objects of a class offer."""
    return [tool_name(method) for method in _marked_attributes(cls).values()]


def _marked_attributes(cls: type) -> dict[str, Any]:
    names = dict.fromkeys(name for each in reversed(cls.__mro__) for name in vars(each))
    attributes = {name: inspect.getattr_static(cls, name, None) for name in names}
    functions = {name: getattr(attribute, "__func__", attribute) for name, attribute in attributes.items()}
    return {name: function for name, function in functions.items() if ToolMarker.find(function) is not None}


_of_function = lru_cache(maxsize=256)(FunctionToolCallback.from_function)
"""Reading a signature costs a hundred times as much as a call, and a tool's cache belongs to its callback."""


def to_callbacks(offered: object) -> tuple[ToolCallback, ...]:
    """Make callbacks of what is offered.

    Args:
        offered: a function, marked by ``@tool`` or not; a bound method; an object with marked methods, or of a marked
            class; a callback; a provider; or a list or tuple of these.

    Raises:
        ToolDefinitionError: it is none of these, or a tool cannot be defined as it is written.
    """
    if isinstance(offered, ToolCallback):
        return (offered,)
    if isinstance(offered, list | tuple):
        return tuple(callback for each in offered for callback in to_callbacks(each))
    if inspect.isfunction(offered):
        return (_of_function(offered),)
    if inspect.ismethod(offered):
        return (FunctionToolCallback.from_function(offered),)
    if isinstance(offered, type):
        raise ToolDefinitionError(f"{offered.__name__} is a class: offer an object of it")
    if isinstance(offered, ToolCallbackProvider):
        return offered.tool_callbacks()
    if callable(offered) and (ToolMarker.find(offered) or not marked_tool_names(type(offered))):
        return (FunctionToolCallback.from_function(offered),)
    return MethodToolCallbackProvider(offered).tool_callbacks()
