"""Read a tool's parameters, types and descriptions from a Python signature and its docstring."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import called_function
from toolchat.tool_calling.errors import ToolDefinitionError


def docstring_summary(function: Callable[..., Any]) -> str:
    """The first paragraph of a docstring as one line; empty without a docstring."""
    return _read_docstring(inspect.getdoc(called_function(function)) or "")[0]


_SECTION = re.compile(r"^\s*(?::|@|[\w ]+:\s*$|-{3,}\s*$)", re.MULTILINE)
"""A field or the heading of a section; without any, the parser's import is spared."""


@lru_cache(maxsize=256)
def _read_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    """The first paragraph, and the descriptions of the parameters in the style of Google, NumPy or Sphinx."""
    if not _SECTION.search(text):
        return _first_paragraph(text), {}
    from docstring_parser import parse

    text = re.sub(r":\w+:(?=`)", "", text)  # of Sphinx's roles, the parser takes one at the start of a line for a field
    text = re.sub(r"^(\s+\w+)：", r"\1: ", text, flags=re.MULTILINE)  # the full-width colon of Chinese authors
    try:
        parsed = parse(text)
    except Exception:  # noqa: BLE001 - the parser stumbles over odd texts in several ways
        return _first_paragraph(text), {}
    described = [(name, each.description or "") for each in parsed.params for name in each.arg_name.split(",")]
    return _first_paragraph(parsed.description or ""), {
        name.strip(" *`\\"): " ".join(description.split()) for name, description in described
    }


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", 1)[0].split())


_ORDINARY = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNREADABLE = (NameError, AttributeError, SyntaxError, TypeError)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters that a model fills, and what else is needed to call the function."""

    parameters: tuple[inspect.Parameter, ...]
    """All parameters but the one that receives the :class:`ToolContext`."""
    hints: Mapping[str, Any]
    """Types by parameter; parameters without a type are missing."""
    documented: tuple[Any, ...]
    """The objects whose docstrings describe the parameters."""
    context_parameter: str | None
    returns_none: bool
    """Whether the function is annotated ``-> None``."""
    given: frozenset[str] = frozenset()
    """The names that a model cannot fill: of the object of a method, and of what ``functools.partial`` holds."""

    def described(self, parameter: str) -> str | None:
        """The description of a parameter in a docstring; docstrings are read when a parameter has no other."""
        texts = [_read_docstring(inspect.getdoc(each) or "")[1].get(parameter) for each in self.documented]
        return next(filter(None, texts), None)


def read_signature(function: Callable[..., Any], tool: str) -> Signature:
    """Read a function, a bound method or a callable object."""
    innermost = called_function(function)
    called = innermost if inspect.isroutine(innermost) else type(innermost).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise ToolDefinitionError(f"tool {tool}: a generator cannot be a tool, since it may never end: return a list")
    hints = _type_hints(called, tool)
    if _is_iterator(hints.get("return")):
        raise ToolDefinitionError(f"tool {tool}: an iterator cannot be a result, since it may never end: return a list")
    parameters = [_read_parameter(each, hints) for each in _parameters(function, tool)]
    context = _context_parameter(parameters, hints, tool)
    return Signature(
        tuple(p for p in parameters if p is not context),
        hints,
        (called, innermost),
        context.name if context else None,
        "return" in hints and _returned(hints["return"]) in (None, NoneType),
        _given(function),
    )


def _given(function: Callable[..., Any]) -> frozenset[str]:
    if isinstance(function, partial):
        first = (each.name for each in _parameters(function.func, "")[: len(function.args)])
        return _given(function.func).union(first, function.keywords)
    names = list(inspect.signature(getattr(function, "__func__", function)).parameters)
    return frozenset(names[:1] if inspect.ismethod(function) else ())


def _parameters(function: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    """The parameters that a call fills; arguments of ``functools.partial`` are given, and hidden from the model."""
    if not isinstance(function, partial):
        return list(inspect.signature(function).parameters.values())
    free = _parameters(function.func, tool)
    try:
        inspect.Signature(free).bind_partial(*function.args, **function.keywords)
    except TypeError as error:
        raise ToolDefinitionError(f"tool {tool}: functools.partial does not fit the function: {error}") from error
    return [each for each in free[len(function.args) :] if each.name not in function.keywords]


def _read_parameter(parameter: inspect.Parameter, hints: dict[str, Any]) -> inspect.Parameter:
    """Read ``Field(...)`` as a default the way pydantic does in a class: it belongs to the type."""
    if parameter.name in hints:
        hints[parameter.name] = _as_list(hints[parameter.name])
    field = parameter.default
    if not isinstance(field, FieldInfo) or parameter.name not in hints:
        return parameter
    hints[parameter.name] = Annotated[hints[parameter.name], field]
    return parameter.replace(default=parameter.empty if field.is_required() else field)


def _as_list(hint: Any) -> Any:
    """The type with a list for an iterable: pydantic would validate its items only while the function reads them."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Iterable, Collection):
        return list[tuple(map(_as_list, arguments))]  # type: ignore[misc]
    if origin is Annotated:
        return Annotated[(_as_list(arguments[0]), *arguments[1:])]
    return Union[tuple(map(_as_list, arguments))] if origin in (Union, UnionType) else hint  # noqa: UP007


def free_type_variable(hint: Any) -> TypeVar | None:
    """A type variable of which nothing says what it stands for, so that every value would be accepted."""
    variables = (hint,) if isinstance(hint, TypeVar) else getattr(hint, "__parameters__", ())
    free = (each for each in variables if isinstance(each, TypeVar) and not (each.__bound__ or each.__constraints__))
    return next((each for each in free if not getattr(each, "has_default", bool)()), None)


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
