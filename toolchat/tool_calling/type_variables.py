"""The types that stand for type variables where a tool is inherited from a generic class."""

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar, Union, get_args, get_origin

__all__ = ["resolved_hints"]

_Arguments = Mapping[Any, Any]
"""What stands for each type variable of one class."""


def resolved_hints(hints: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Replace type variables in a function's hints by what the bases of its object's class say.

    For a method that ``class Ints(Store[int])`` inherits from ``class Store(Generic[T])``, ``T`` is ``int``, and so
    it is for a method of ``Store[int]()``. A variable that nobody says anything about stays.
    """
    bound = getattr(function, "__self__", function)
    cls = bound if isinstance(bound, type) else type(bound)
    code = getattr(function, "__func__", None) or cls.__call__
    arguments = _arguments(cls, getattr(bound, "__orig_class__", None))
    owner = next((each for each in cls.__mro__ if _has(each, code)), cls)
    return {name: _resolved(hint, arguments.get(owner, {})) for name, hint in hints.items()}


def _arguments(cls: type, alias: Any) -> dict[type, _Arguments]:
    """For each generic class above, what its variables stand for; nearer classes come first and fill in the others."""
    known: dict[type, _Arguments] = {cls: _paired(alias, {})} if alias is not None else {}
    for each in cls.__mro__:
        for base in each.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and origin not in (Generic, Protocol):
                known.setdefault(origin, _paired(base, known.get(each, {})))
    return known


def _paired(alias: Any, outer: _Arguments) -> _Arguments:
    variables = getattr(get_origin(alias), "__parameters__", ())
    return {variable: _resolved(hint, outer) for variable, hint in zip(variables, get_args(alias), strict=False)}


def _resolved(hint: Any, arguments: _Arguments) -> Any:
    """Replace variables wherever they stand in a type."""
    if isinstance(hint, TypeVar):
        return arguments.get(hint, hint)
    open_in_model = getattr(hint, "__pydantic_generic_metadata__", {}).get("parameters")
    if open_in_model:  # pydantic's ``Page[T]`` is a class, and tells its variables nowhere else.
        return hint[tuple(arguments.get(each, each) for each in open_in_model)]
    parts = get_args(hint)
    resolved = tuple(_resolved(each, arguments) for each in parts)
    if resolved == parts:
        return hint
    origin = get_origin(hint)
    return (Union if origin is UnionType else origin)[resolved]


def _has(cls: type, code: object) -> bool:
    return any(getattr(each, "__func__", each) is code for each in vars(cls).values())
