"""From a Python signature to JSON Schema."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    TypeAdapter,
    create_model,
)
from pydantic.errors import PydanticErrorMixin
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.schema_form import NamedMembers, tidy_schema
from app.tool_calling.signature import Signature, signature_of
from app.tool_calling.tool_input import ToolInput

__all__ = ["adapter_of", "is_model", "name_for_model", "tool_input_of", "typed_input"]

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=False)
_UNSUPPORTED = (PydanticUserError, PydanticUndefinedAnnotation)


def tool_input_of(function: Callable[..., Any], tool: str) -> ToolInput:
    """Read what a function takes from its signature; see :func:`typed_input`."""
    return typed_input(signature_of(function, tool), tool)


def typed_input(signature: Signature, tool: str) -> ToolInput:
    """Make the input of a function whose signature says all.

    A parameter of type :class:`ToolContext` is left out of the schema. A single parameter whose type is a pydantic
    model or a dataclass is taken as the whole input. A trailing underscore (``from_``) is not part of the name that
    the model sees. Descriptions come from ``Annotated[..., "text"]``, from pydantic's ``Field`` or from the ``Args``
    section of a Google style docstring.

    Raises:
        ToolDefinitionError: a parameter has no type, or one that JSON cannot carry.
    """
    parameters, hints = signature.parameters, signature.hints
    for parameter in parameters:
        _check_parameter(parameter, hints, tool)
    if len(parameters) == 1 and is_model(hints[parameters[0].name]):
        return _whole_input(hints[parameters[0].name], parameters[0].name, signature.context_parameter, tool)
    fields = {f"argument_{p.name}": _field(p, hints[p.name], signature.descriptions) for p in parameters}
    try:
        model: type[BaseModel] = create_model(f"{tool}Input", __config__=_CONFIG, **fields)  # type: ignore[call-overload]
        adapter: TypeAdapter[Any] = TypeAdapter(model)
        schema = adapter.json_schema(schema_generator=NamedMembers)
    except _UNSUPPORTED as error:
        at_fault = next((p.name for p in parameters if not _is_supported(hints[p.name])), "")
        raise _unsupported(error, at_fault, tool) from error
    names = {f"argument_{p.name}": p.name for p in parameters}

    def keywords(checked: Any) -> dict[str, Any]:
        return {parameter: getattr(checked, field) for field, parameter in names.items()}

    return ToolInput(tidy_schema(schema), signature.context_parameter, adapter.validator, keywords, schema)


def _whole_input(model: Any, parameter: str, context: str | None, tool: str) -> ToolInput:
    adapter = adapter_of(model, parameter, tool)
    schema = adapter.json_schema(schema_generator=NamedMembers)
    told = tidy_schema(schema)
    if told.get("type") != "object":
        raise ToolDefinitionError(f"tool {tool}: the input {parameter} must be an object")
    return ToolInput(told, context, adapter.validator, lambda checked: {parameter: checked}, schema)


def adapter_of(hint: Any, parameter: str, tool: str) -> TypeAdapter[Any]:
    """Pydantic's reader of a parameter's type.

    Raises:
        ToolDefinitionError: JSON cannot carry the type.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        adapter.json_schema()
    except _UNSUPPORTED as error:
        raise _unsupported(error, parameter, tool) from error
    return adapter


def _is_supported(hint: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            adapter_of(hint, "", "")
        except ToolDefinitionError:
            return False
    return True


def _unsupported(error: PydanticErrorMixin, parameter: str, tool: str) -> ToolDefinitionError:
    reason = error.message.strip().split("\n", 1)[0]
    return ToolDefinitionError(f"tool {tool}: parameter {parameter} has a type that JSON cannot carry: {reason}")


def _check_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} must be an ordinary or keyword parameter")
    if parameter.name not in hints:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} has no type")


def is_model(hint: Any) -> bool:
    """Whether a type has fields of its own, and so can be a tool's whole input."""
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _field(parameter: inspect.Parameter, hint: Any, descriptions: Mapping[str, str]) -> tuple[Any, Any]:
    default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
    metadata = list(get_args(hint)[1:]) if get_origin(hint) is Annotated else []
    given = next((m.description for m in metadata if isinstance(m, FieldInfo) and m.description), None)
    text = next((m for m in metadata if isinstance(m, str)), None)
    description = text or given or descriptions.get(parameter.name)
    return hint, Field(default, alias=name_for_model(parameter, hint), description=description)


def name_for_model(parameter: inspect.Parameter, hint: Any) -> str:
    """The name under which a model gives an argument: the alias of a ``Field``, else the parameter's without ``_``."""
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    alias = next((m.alias for m in metadata if isinstance(m, FieldInfo) and m.alias), None)
    return alias or parameter.name.removesuffix("_")
