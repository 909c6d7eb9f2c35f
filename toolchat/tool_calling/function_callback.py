"""Function and method tools: a typed Python function behind a tool definition."""

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from inspect import isawaitable
from typing import Any, Self, Unpack

from pydantic_core import from_json

from toolchat.tool_calling.caching import RecentResults, SingleFlight, call_key
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackProvider, ToolResult, ToolSet
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import (
    ToolDefinition,
    ToolMarker,
    ToolMetadata,
    ToolOptions,
    called_function,
    converted,
    declared_name,
    is_async,
    tool as tool,  # its former place, which tool folders may import it from
    validate_metadata,
)
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.input_validation import ToolInput
from toolchat.tool_calling.results import (
    DONE,
    ToolAnswer,
    ToolCallResultConverter,
    convert_result,
    json_text,
    quoted_result,
)
from toolchat.tool_calling.schema import input_from_schema, read_function, recognizers_of
from toolchat.tool_calling.signature import docstring_summary, read_signature
from toolchat.tool_calling.threads import run_blocking
from toolchat.tool_calling.type_schema import read_output_schema

_AS_TYPED = (convert_result, quoted_result)
"""Converters whose text fits the output schema of the return type."""


@dataclass(frozen=True, slots=True)
class FunctionToolCallback(ToolCallback):
    """A tool that runs a function or a callable object.

    A coroutine function runs on the event loop. A plain function may block, so it runs in a bounded thread pool with
    the caller's context variables; an awaitable that it returns, as a decorator does, is awaited on the event loop.
    """

    definition: ToolDefinition
    metadata: ToolMetadata
    _function: Callable[..., Any]
    _input: ToolInput
    _converter: ToolCallResultConverter
    _is_async: bool = field(init=False, repr=False, compare=False)
    _cache: SingleFlight | None = field(init=False, default=None, repr=False, compare=False)
    """Belongs to this object alone; a copy starts with an empty cache."""

    def __post_init__(self) -> None:
        validate_metadata(self.definition.name, self.metadata, self._input.context_parameter)
        object.__setattr__(self, "_is_async", is_async(self._function))
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
        """Make a tool from a typed function, with or without ``@tool``.

        ``options`` take precedence over ``metadata``, that over ``@tool``, and that over the function itself.

        Args:
            function: a function, a bound method or a callable object, with or without a :class:`ToolContext`.
            definition: name, description and schema, for a function whose signature says too little: the arguments are
                validated by the schema, and the function receives those that it takes.
            metadata: how the engine treats the tool; values that equal the default do not override ``@tool``.
            options: the options of ``@tool``; see :class:`ToolOptions`.

        Raises:
            ToolDefinitionError: the signature cannot be a tool's input, or the metadata are invalid.
        """
        marker = ToolMarker.find(function) or ToolMarker()
        if metadata is not None:
            marker = replace(marker, metadata=marker.metadata.updated(metadata))
        marker = marker.updated(options)
        name = options.get("name") or (definition.name if definition else declared_name(function))
        if definition is not None:
            signature = read_signature(function, name)
            tool_input = input_from_schema(signature, definition.input_schema, name)
            definition = replace(definition, input_schema=tool_input.schema)
        else:
            signature, tool_input = read_function(function, name)
            description = marker.description or docstring_summary(function) or _split_name(name)
            output_schema = read_output_schema(signature) if marker.result_converter in _AS_TYPED else {}
            definition = ToolDefinition(name, description, tool_input.schema, output_schema)
        converter = marker.result_converter
        converter = _none_as_done(converter) if signature.returns_none else converter
        found = replace(marker.metadata, recognizers=recognizers_of(signature, name) or marker.metadata.recognizers)
        return cls(converted(definition), found, function, tool_input, converter)

    @property
    def owner(self) -> str:
        """The function's module and name, or its class's."""
        function = called_function(self._function)
        code = function if hasattr(function, "__qualname__") else type(function)
        return f"{code.__module__}.{code.__qualname__}"

    @property
    def takes_context(self) -> bool:
        return self._input.context_parameter is not None

    def check(self, tool_input: str) -> None:
        """See :meth:`ToolCallback.check`; repairs the arguments as a call does."""
        self._input.read(tool_input)

    def read_arguments(self, tool_input: str) -> Any:
        """See :meth:`ToolCallback.read_arguments`: the arguments as validated."""
        try:
            return self._input.read(tool_input)[0]
        except Exception:  # noqa: BLE001 - a validator of the tool's own may raise anything
            return ToolCallback.read_arguments(self, tool_input)

    async def call(self, tool_input: str, context: ToolContext) -> str:
        """Run the function without the cache; see :meth:`ToolCallback.call`."""
        uncached = self if self._cache is None else self.with_cache_ttl(0)
        return (await uncached.result(tool_input, context)).text

    async def result(self, tool_input: str, context: ToolContext) -> ToolResult:
        """Run the function, or reuse the result of an equal call; see :meth:`ToolCallback.result`."""
        arguments, repaired = self._input.read(tool_input)
        if self._cache is not None:
            key = call_key(tool_input, self._input.schema)
            shared = await self._cache.result(key, lambda: self.with_cache_ttl(0).result(tool_input, ToolContext()))
            return shared._replace(repaired=True) if repaired else shared
        if self._input.context_parameter is not None:
            arguments[self._input.context_parameter] = context
        if self._is_async:
            return self._convert(await self._function(**arguments), repaired)
        result = await run_blocking(self.definition.name, lambda: self._run_blocking(arguments, repaired))
        return result if isinstance(result, ToolResult) else self._convert(await result, repaired)

    def _run_blocking(self, arguments: dict[str, Any], repaired: bool) -> ToolResult | Awaitable[Any]:
        """Run the function and convert its result in the same thread, unless the result has to be awaited first."""
        result = self._function(**arguments)
        return result if isawaitable(result) else self._convert(result, repaired)

    def _convert(self, result: Any, repaired: bool) -> ToolResult:
        if not isinstance(result, ToolAnswer):
            return ToolResult(self._converter(result), False, repaired)
        data = from_json(json_text(result.data))
        return ToolResult(self._converter(result.text), False, repaired, data, result.images)

    def in_sandbox(self) -> Self:
        """Copy that is marked as returning invented data."""
        return replace(self, metadata=replace(self.metadata, sandbox=True))

    def with_converter(self, converter: ToolCallResultConverter) -> Self:
        """Copy with another result converter, unless ``@tool`` on the function names one."""
        marked = (ToolMarker.find(self._function) or ToolMarker()).result_converter
        if marked is not convert_result or converter is self._converter:
            return self
        returns_none = self._converter is not marked
        definition = self.definition if converter in _AS_TYPED else replace(self.definition, output_schema={})
        return replace(self, definition=definition, _converter=_none_as_done(converter) if returns_none else converter)

    def with_examples(self, examples: tuple[str, ...]) -> Self:
        """Copy with other examples of questions that the tool answers."""
        return replace(self, metadata=replace(self.metadata, examples=examples))

    def with_cache_ttl(self, seconds: float) -> Self:
        """Copy that caches results for another time; 0 switches the cache off."""
        return replace(self, metadata=replace(self.metadata, cache_seconds=seconds))


def _none_as_done(converter: ToolCallResultConverter) -> ToolCallResultConverter:
    return lambda result: converter(DONE if result is None else result)


def _split_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).strip().lower()


class MethodToolCallback(FunctionToolCallback):
    """A tool that runs a bound method of an object."""

    __slots__ = ()


class MethodToolCallbackProvider:
    """Provides every method of the given objects that ``@tool`` marks, including inherited, private and static ones."""

    def __init__(self, *tool_objects: object) -> None:
        self.tool_objects = tool_objects

    def tool_callbacks(self) -> tuple[ToolCallback, ...]:
        """List the tools, in the order of the objects and of the methods in their classes.

        Raises:
            ToolDefinitionError: an object has no marked method, or two methods have the same name.
        """
        callbacks: list[ToolCallback] = []
        for tool_object in self.tool_objects:
            marked = marked_methods(type(tool_object))
            if not marked:
                raise ToolDefinitionError(f"{type(tool_object).__name__} has no method that @tool marks")
            callbacks += [MethodToolCallback.from_function(getattr(tool_object, attribute)) for attribute in marked]
        return ToolSet.unique(callbacks)


def marked_methods(cls: type) -> dict[str, Any]:
    """The methods of a class that ``@tool`` marks, bound to the class, in the order of their definition."""
    names = dict.fromkeys(name for each in reversed(cls.__mro__) for name in vars(each))
    attributes = {name: inspect.getattr_static(cls, name, None) for name in names}
    marked = {name: each for name, each in attributes.items() if ToolMarker.find(getattr(each, "__func__", each))}
    return {name: each.__get__(cls, cls) if hasattr(each, "__get__") else each for name, each in marked.items()}


_from_cached_function = lru_cache(maxsize=256)(FunctionToolCallback.from_function)
"""Reading a signature costs a hundred times as much as a call, and a callback holds its tool's cached results."""


def to_callbacks(offered: object) -> tuple[ToolCallback, ...]:
    """Convert functions, objects and providers to tool callbacks.

    Args:
        offered: a function or a ``functools.partial``, with or without ``@tool``; a bound method; an object with marked
            methods, or of a marked class; a callback; a provider; or a list or tuple of these.
    """
    if isinstance(offered, ToolCallback):
        return (offered,)
    if isinstance(offered, list | tuple):
        return tuple(callback for each in offered for callback in to_callbacks(each))
    if inspect.isfunction(offered) or isinstance(offered, partial):
        return (_from_cached_function(offered),)
    if inspect.ismethod(offered):
        return (FunctionToolCallback.from_function(offered),)
    if isinstance(offered, type):
        raise ToolDefinitionError(f"{offered.__name__} is a class: offer an object of it")
    if isinstance(offered, ToolCallbackProvider):
        return offered.tool_callbacks()
    if callable(offered) and (ToolMarker.find(offered) or not marked_methods(type(offered))):
        return (FunctionToolCallback.from_function(offered),)
    return MethodToolCallbackProvider(offered).tool_callbacks()
