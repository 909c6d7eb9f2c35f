"""A typed function as a tool."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Self, Unpack

from app.tool_calling.caching import RecentResults, ResultCache, call_key
from app.tool_calling.callback import ToolCallback, ToolResult
from app.tool_calling.collecting import holds_iterator
from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata, check_metadata
from app.tool_calling.docstrings import description_of
from app.tool_calling.given_input import given_input
from app.tool_calling.marking import ToolMarker, ToolOptions, name_of, tool
from app.tool_calling.output_schema import output_schema_of
from app.tool_calling.result_converter import DONE, ToolCallResultConverter, convert_result, quoted_result
from app.tool_calling.schema import typed_input
from app.tool_calling.signature import signature_of
from app.tool_calling.threads import run_blocking
from app.tool_calling.tool_input import ToolInput

__all__ = ["FunctionToolCallback", "name_of", "tool"]

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
    _cache: ResultCache | None = field(init=False, default=None, repr=False, compare=False)
    """Belongs to this object alone; a copy begins with an empty one."""

    def __post_init__(self) -> None:
        check_metadata(self.definition.name, self.metadata, self._input.context_parameter)
        object.__setattr__(self, "_is_async", _is_async(self._function))
        if self.metadata.cache_seconds:
            object.__setattr__(self, "_cache", ResultCache(RecentResults(self.metadata.cache_seconds)))

    @classmethod
    def of(
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
        marker = ToolMarker.on(function) or ToolMarker()
        if metadata is not None:
            marker = replace(marker, metadata=marker.metadata.updated(metadata))
        marker = marker.updated(options)
        name = options.get("name") or (definition.name if definition else name_of(function))
        signature = signature_of(function, name)
        converter = marker.result_converter
        converter = _done_or(converter) if signature.promises_nothing else converter
        if definition is not None:
            tool_input = given_input(signature, definition.input_schema, name)
        else:
            tool_input = typed_input(signature, name)
            description = marker.description or description_of(function) or _in_words(name)
            output_schema = output_schema_of(function) if marker.result_converter in _AS_TYPED else {}
            definition = ToolDefinition(name, description, tool_input.schema, output_schema)
        return cls(definition, marker.metadata, function, tool_input, converter)

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
        uncached = self if self._cache is None else self.cached_for(0)
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
            return ToolResult(await self._converted(await self._function(**arguments)), False, repaired)
        result, text = await run_blocking(lambda: self._blocking(arguments))
        return ToolResult(await self._converted(await result) if text is None else text, False, repaired)

    def _blocking(self, arguments: dict[str, Any]) -> tuple[Any, str | None]:
        """Run the function in a thread, and make text of its result there, unless it is to be awaited first."""
        result = self._function(**arguments)
        return (result, None) if isawaitable(result) else (None, self._converter(result))

    async def _converted(self, result: Any) -> str:
        """Make text of a result; what it takes to collect an iterator is not known, so a thread does it."""
        if holds_iterator(result):
            return await run_blocking(lambda: self._converter(result))
        return self._converter(result)

    def in_sandbox(self) -> Self:
        """Copy that is marked as answering from invented data."""
        return replace(self, metadata=replace(self.metadata, sandbox=True))

    def told_by(self, converter: ToolCallResultConverter) -> Self:
        """Copy whose results another converter makes text of, unless the function's mark names one."""
        marked = (ToolMarker.on(self._function) or ToolMarker()).result_converter
        if marked is not convert_result:
            return self
        promises_nothing = self._converter is not marked
        definition = self.definition if converter in _AS_TYPED else replace(self.definition, output_schema={})
        return replace(self, definition=definition, _converter=_done_or(converter) if promises_nothing else converter)

    def cached_for(self, seconds: float) -> Self:
        """Copy whose results are kept for another time; 0 switches the cache off."""
        return replace(self, metadata=replace(self.metadata, cache_seconds=seconds))


def _is_async(function: Callable[..., Any]) -> bool:
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


def _done_or(converter: ToolCallResultConverter) -> ToolCallResultConverter:
    return lambda result: converter(DONE if result is None else result)


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).strip().lower()
