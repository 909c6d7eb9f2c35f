"""The input of a function whose definition is given in code: the given schema rules, whatever the signature says."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from app.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from app.tool_calling.schema import adapter_of, is_model, name_for_model
from app.tool_calling.schema_validator import schema_validator
from app.tool_calling.signature import Signature
from app.tool_calling.tool_input import ToolInput, arguments_error

__all__ = ["given_input"]

_Schema = Mapping[str, Any]


def given_input(signature: Signature, schema: _Schema, tool: str) -> ToolInput:
    """Make the input of a function for a schema that its signature does not say.

    Arguments are checked by the schema. A parameter is given what stands under its name, converted to its type where
    it has one, and ``**`` the rest; what nobody takes is left out. A parameter with a default that the schema does not
    name keeps it. A single parameter whose type is a model takes all, unless the schema has its name.

    Raises:
        ToolDefinitionError: the schema cannot be used, a parameter's type cannot be carried by JSON, or one that must
            be given is none that the schema allows.
    """
    try:
        validator = schema_validator(schema)
    except Exception as error:  # Whatever comes of a schema that is none.
        reason = f"{type(error).__name__}: {error}".splitlines()[-1].strip()
        raise ToolDefinitionError(f"tool {tool}: the given schema cannot be used: {reason}") from error
    named = [p for p in signature.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    taken = tuple(each for p in named for each in _taken(p, signature, schema, tool))
    others = any(p.kind is p.VAR_KEYWORD for p in signature.parameters)
    binding = _Binding(taken, frozenset(p.name for p in named) if others else None)
    return ToolInput(schema, signature.context_parameter, validator, binding.keywords, schema)


@dataclass(frozen=True, slots=True)
class _Taken:
    """A parameter, and under which name its argument stands."""

    parameter: str
    name: str | None
    """``None``: it takes the whole input."""
    required: bool
    adapter: TypeAdapter[Any] | None

    def value(self, checked: Mapping[str, Any]) -> Any:
        value = checked if self.name is None else checked[self.name]
        if self.adapter is None:
            return value
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            raise arguments_error(error, *([] if self.name is None else [self.name])) from None


@dataclass(frozen=True, slots=True)
class _Binding:
    """From an object to keyword arguments."""

    taken: tuple[_Taken, ...]
    not_others: frozenset[str] | None
    """What ``**`` cannot hold, since parameters have these names; ``None`` where there is no ``**``."""

    def keywords(self, checked: Mapping[str, Any]) -> dict[str, Any]:
        missing = [each.name for each in self.taken if each.required and each.name and each.name not in checked]
        if missing:
            raise ToolArgumentsError("; ".join(f"{name}: Field required" for name in missing))
        others: dict[str, Any] = {}
        if self.not_others is not None:
            names = self.not_others.union(each.name for each in self.taken if each.name)
            others = {name: value for name, value in checked.items() if name not in names}
        present = [each for each in self.taken if each.name is None or each.name in checked]
        return others | {each.parameter: each.value(checked) for each in present}


def _taken(parameter: inspect.Parameter, signature: Signature, schema: _Schema, tool: str) -> Iterator[_Taken]:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} must be an ordinary or keyword parameter")
    hint, properties = signature.hints.get(parameter.name, Any), schema.get("properties", {})
    name, required = name_for_model(parameter, hint), parameter.default is parameter.empty
    name = name if name in properties else parameter.name
    if get_origin(hint) is Annotated:  # What it says beside the type is the schema's business.
        hint = get_args(hint)[0]
    if name not in properties and is_model(hint) and len(signature.parameters) == 1:
        yield _Taken(parameter.name, None, required, adapter_of(hint, parameter.name, tool))
    elif name in properties or (required and schema.get("additionalProperties", True) is not False):
        yield _Taken(parameter.name, name, required, None if hint is Any else adapter_of(hint, parameter.name, tool))
    elif required:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} is none that the given schema allows")
