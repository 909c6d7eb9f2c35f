"""Read a tool's parameters, types and descriptions from a Python signature and its docstring."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolDefinitionError

__all__ = ["Signature", "argument_descriptions", "docstring_summary", "read_signature"]


def docstring_summary(function: Callable[..., Any]) -> str:
    """The first paragraph of a docstring as one line; empty without a docstring."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n", 1)[0].split())


def argument_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Read the descriptions of parameters from the ``Args`` section of a Google style docstring."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(r"^ {4}\*{0,2}(\w+)[^:\n]*:[ ]*((?:.*)(?:\n {8,}.*)*)", section[1], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


_ORDINARY = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNREADABLE = (NameError, AttributeError, SyntaxError, TypeError)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters that a model fills, and what else is needed to call the function."""

    parameters: tuple[inspect.Parameter, ...]
    """All parameters but the one that receives the :class:`ToolContext`."""
    hints: Mapping[str, Any]
    """Types by parameter; parameters without a type are missing."""
    descriptions: Mapping[str, str]
    """Descriptions from the docstring, by parameter."""
    context_parameter: str | None
    returns_none: bool
    """Whether the function is annotated ``-> None``."""


def read_signature(function: Callable[..., Any], tool: str) -> Signature:
    """Read a function, a bound method or a callable object.

    Raises:
        ToolDefinitionError: a type cannot be read, two parameters take the :class:`ToolContext`, or the function
            returns an iterator.
    """
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise ToolDefinitionError(f"tool {tool}: a generator cannot be a tool, since it may never end: return a list")
    hints = _type_hints(called, tool)
    if _is_iterator(hints.get("return")):
        raise ToolDefinitionError(f"tool {tool}: an iterator cannot be a result, since it may never end: return a list")
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    context = _context_parameter(parameters, hints, tool)
    return Signature(
        tuple(p for p in parameters if p is not context),
        hints,
        argument_descriptions(function),
        context.name if context else None,
        "return" in hints and _returns_none(hints["return"]),
    )


def _context_parameter(
    parameters: list[inspect.Parameter], hints: Mapping[str, Any], tool: str
) -> inspect.Parameter | None:
    contexts = [p for p in parameters if _is_context(hints.get(p.name))]
    if len(contexts) > 1:
        raise ToolDefinitionError(f"tool {tool}: parameter {contexts[1].name} is a second ToolContext: one is enough")
    if contexts and contexts[0].kind not in _ORDINARY:
        raise ToolDefinitionError(f"tool {tool}: parameter {contexts[0].name} must be an ordinary or keyword parameter")
    return contexts[0] if contexts else None


def _is_context(hint: Any) -> bool:
    """Whether a type is the context, also in a union with ``None`` or within ``Annotated``."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_context(get_args(hint)[0])
    if origin in (Union, UnionType):
        others = [each for each in get_args(hint) if each is not NoneType]
        return len(others) == 1 and _is_context(others[0])
    return (origin or hint) is ToolContext


def _returns_none(hint: Any) -> bool:
    return _returned(hint) in (None, NoneType)


def _is_iterator(hint: Any) -> bool:
    returned = _returned(hint)
    kind = get_origin(returned) or returned
    return isinstance(kind, type) and issubclass(kind, Iterator | AsyncIterator)


def _returned(hint: Any) -> Any:
    """The type of a result, without ``Annotated`` and without the awaitable around it."""
    if get_origin(hint) in (Annotated, Awaitable, Coroutine):
        return _returned(get_args(hint)[0 if get_origin(hint) is Annotated else -1])
    return hint


def _type_hints(function: Any, tool: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except _UNREADABLE as error:
        at_fault = _unreadable_parameter(function)
        raise ToolDefinitionError(f"tool {tool}: {at_fault} has a type that cannot be read: {error}") from error


def _unreadable_parameter(function: Any) -> str:
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            get_type_hints(SimpleNamespace(__annotations__={name: hint}), names, include_extras=True)
        except _UNREADABLE:
            return "the result" if name == "return" else f"parameter {name}"
    return "a parameter"
