"""Build a tool's input from a Python signature, or bind a given schema to a function."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, with_config
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, SchemaError
from typing_extensions import TypedDict

from toolchat.tool_calling.argument_repair import EXACT
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.input_validation import Binding, BoundParameter, ToolInput, Validate
from toolchat.tool_calling.json_schema import Schema, is_json, normalized
from toolchat.tool_calling.recognizers import Recognizer
from toolchat.tool_calling.signature import Signature, free_type_variable, read_signature
from toolchat.tool_calling.type_schema import (
    NOT_READABLE,
    InputGenerator,
    metadata_of,
    simplify_schema,
    text_of,
)

_CONFIG = ConfigDict(
    extra="forbid", allow_inf_nan=False, validate_default=False, val_json_bytes="base64", ser_json_bytes="base64"
)


def input_of_function(function: Callable[..., Any], tool: str) -> ToolInput:
    """Build the input of a tool from a function; see :func:`read_function`."""
    return read_function(function, tool)[1]


def read_function(function: Callable[..., Any], tool: str) -> tuple[Signature, ToolInput]:
    """Read the signature of a function, and build the input of a tool from it.

    - A parameter of type :class:`ToolContext` is not part of the schema.
    - A single parameter without a default whose type is a pydantic model or a dataclass receives the whole input.
    - A trailing underscore (``from_``) is not part of the name that the model sees.
    - Descriptions come from ``Annotated[..., "text"]``, from pydantic's ``Field`` or from the ``Args`` section of a
      Google style docstring.
    - What the schema forbids is refused, also where the types themselves are more lenient.
    """
    return (_read_once if inspect.isfunction(function) else _read)(function, tool)


def _read(function: Callable[..., Any], tool: str) -> tuple[Signature, ToolInput]:
    signature = read_signature(function, tool)
    for parameter in signature.parameters:
        _check_parameter(parameter, signature.hints, tool)
    names = exposed_names(signature, tool)
    try:
        return signature, _read_types(signature, names)
    except (*NOT_READABLE, ToolDefinitionError) as error:
        raise _unsupported(error, _at_fault(signature, names), tool) from error


_read_once = lru_cache(maxsize=1024)(_read)
"""The start checks a tool before it creates it."""


def _at_fault(signature: Signature, names: Mapping[str, str]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for parameter in signature.parameters:
            try:
                _read_types(replace(signature, parameters=(parameter,)), names)
            except (*NOT_READABLE, ToolDefinitionError):
                return parameter.name
    return ""


def _read_types(signature: Signature, names: Mapping[str, str]) -> ToolInput:
    if whole := _whole_input(signature):
        adapter: TypeAdapter[Any] = TypeAdapter(signature.hints[whole])
        if simplify_schema(adapter.json_schema()).get("type") == "object":
            return _input(adapter, signature, BoundParameter(whole, None))
    bound = (BoundParameter(p.name, names[p.name]) for p in signature.parameters)
    return _input(_adapter(signature, names), signature, *bound)


def _input(adapter: TypeAdapter[Any], signature: Signature, *bound: BoundParameter) -> ToolInput:
    generator = InputGenerator()
    written = generator.read(adapter.core_schema)
    schema = simplify_schema(written)
    if not is_json(schema):
        raise ToolDefinitionError("the schema cannot be written as JSON")
    for name, part in schema.get("properties", {}).items():
        if "description" not in part and (text := signature.described(name)):  # the fields of a whole input
            part["description"] = text
    validate = _typed(adapter, None if "open" in generator.objects else "forbid")
    if generator.hides_fields or {"open", "lenient"} <= generator.objects:
        validate = _by_schema_and_types(schema, validate)
    shown, is_exact = normalized(schema), EXACT in str(written)
    return ToolInput(shown, signature.context_parameter, validate, Binding(bound), written, is_exact)


def _typed(adapter: TypeAdapter[Any], extra: Literal["forbid"] | None) -> Validate:
    read = adapter.validator.validate_json
    return lambda text, strict: read(text, strict=strict, extra=extra)


def _by_schema_and_types(schema: Schema, typed: Validate) -> Validate:
    """Validate by the schema first, for types that accept some other properties, but not all."""
    from toolchat.tool_calling.given_schemas import SchemaValidator  # imported late, as few tools need it

    by_schema = SchemaValidator(schema).validate_json

    def validate(text: str, strict: bool) -> Any:
        by_schema(text, strict)
        return typed(text, strict)

    return validate


def _adapter(signature: Signature, names: Mapping[str, str]) -> TypeAdapter[Any]:
    fields = {names[p.name]: _field(p, names[p.name], signature) for p in signature.parameters}
    # No model: building one takes half as long again, for every tool of a start.
    arguments: Any = TypedDict("Input", fields)  # type: ignore[misc]
    try:
        return TypeAdapter(with_config(_CONFIG)(arguments))
    except SchemaError:
        # Rust's regular expressions have no look-around. Python's have, and are slower.
        return TypeAdapter(with_config(ConfigDict(**_CONFIG, regex_engine="python-re"))(arguments))


def _whole_input(signature: Signature) -> str | None:
    """The parameter that receives the whole input: the only one, without a default, and an object with fields."""
    only = signature.parameters[0] if len(signature.parameters) == 1 else None
    is_whole = only and only.default is only.empty and is_model(signature.hints.get(only.name))
    return only.name if only and is_whole else None


def type_adapter(hint: Any, parameter: str, tool: str) -> TypeAdapter[Any]:
    """Build pydantic's validator of a parameter's type."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        InputGenerator().read(adapter.core_schema)
    except (*NOT_READABLE, ToolDefinitionError) as error:
        raise _unsupported(error, parameter, tool) from error
    return adapter


def _unsupported(error: Exception, parameter: str, tool: str) -> ToolDefinitionError:
    if isinstance(error, ToolDefinitionError):
        return ToolDefinitionError(f"tool {tool}: parameter {parameter}: {error}")
    lines = str(getattr(error, "message", error)).strip().splitlines()
    reason = lines[-1 if isinstance(error, SchemaError) else 0].strip()
    return ToolDefinitionError(f"tool {tool}: parameter {parameter} has a type that JSON cannot carry: {reason}")


def _check_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} must be an ordinary or keyword parameter")
    if parameter.name not in hints:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} has no type")
    if variable := free_type_variable(hints[parameter.name]):
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name}: nothing says which type {variable} is")


def is_model(hint: Any) -> bool:
    """Whether a type has fields, and so can be the whole input of a tool."""
    return is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, BaseModel))


def _field(parameter: inspect.Parameter, name: str, signature: Signature) -> Any:
    hint = signature.hints[parameter.name]
    own = [each for each in metadata_of(hint) if isinstance(each, FieldInfo)]
    has_own = parameter.default is not parameter.empty and not isinstance(parameter.default, FieldInfo)
    default = parameter.default if has_own else PydanticUndefined
    in_field = next((each.description for each in own if each.description), None)
    description = text_of(hint) or in_field or signature.described(parameter.name)
    field: Any = Field(default, alias=name, description=description)
    typed: Any = Annotated[signature.hints[parameter.name], field]
    return typed if all(each.is_required() for each in (*own, field)) else NotRequired[typed]


def exposed_names(signature: Signature, tool: str) -> dict[str, str]:
    """The names of the parameters for the model: the alias of a ``Field``, else the name without a trailing ``_``."""
    taken = {parameter.name for parameter in signature.parameters}
    names: dict[str, str] = {}
    for parameter in signature.parameters:
        short = parameter.name.removesuffix("_")
        own = parameter.name if short in taken else short or parameter.name
        name = _alias(signature.hints.get(parameter.name)) or own
        if name in names.values():
            raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name}: another one has the name {name}")
        names[parameter.name] = name
    return names


def _alias(hint: Any) -> str | None:
    return next((m.alias for m in metadata_of(hint) if isinstance(m, FieldInfo) and m.alias), None)


def recognizers_of(signature: Signature, tool: str) -> tuple[tuple[str, Recognizer], ...]:
    """The recognizers beside the types of parameters, or of the whole input's fields, with the names for the model."""
    whole = _whole_input(signature)
    fields: Mapping[str, FieldInfo] = getattr(signature.hints[whole], "__pydantic_fields__", {}) if whole else {}
    beside: dict[str, Iterable[Any]] = {each.alias or name: each.metadata for name, each in fields.items()}
    for name, exposed in exposed_names(signature, tool).items() if not whole else ():
        own = metadata_of(signature.hints.get(name))
        beside[exposed] = (*own, *(one for each in own if isinstance(each, FieldInfo) for one in each.metadata))
    return tuple((name, each) for name, found in beside.items() for each in found if isinstance(each, Recognizer))


def input_from_schema(signature: Signature, schema: Schema, tool: str) -> ToolInput:
    """Build the input of a tool from a given schema, for a function whose signature says too little.

    - Arguments are validated by the schema alone.
    - A parameter receives the argument of its name, converted to its type if it has one; ``**`` receives the others.
    - Arguments without a parameter are dropped. A parameter that is not in the schema keeps its default.
    - A single parameter whose type is a model receives the whole input, unless the schema has its name.
    """
    from toolchat.tool_calling.given_schemas import SchemaValidator, upgraded  # imported late, as few tools need it

    try:
        schema = upgraded(schema, strict=True)
    except ValueError as error:
        raise ToolDefinitionError(f"tool {tool}: the given schema cannot be used: {error}") from error
    named = [p for p in signature.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = exposed_names(signature, tool)
    bound = tuple(each for p in named for each in _bind(p, names[p.name], signature, schema, tool))
    takes_extra = any(p.kind is p.VAR_KEYWORD for p in signature.parameters)
    binding = Binding(bound, signature.given.union(p.name for p in named) if takes_extra else None)
    validate = SchemaValidator(schema).validate_json
    return ToolInput(normalized(schema), signature.context_parameter, validate, binding, schema)


def _bind(
    parameter: inspect.Parameter, name: str, signature: Signature, schema: Schema, tool: str
) -> Iterator[BoundParameter]:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} must be an ordinary or keyword parameter")
    if isinstance(parameter.default, FieldInfo):
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name}: its Field has no effect beside a schema")
    hint, properties = signature.hints.get(parameter.name, Any), schema.get("properties", {})
    required = parameter.default is parameter.empty
    if name not in properties or (parameter.name in properties and not _alias(hint)):
        name = parameter.name
    if get_origin(hint) is Annotated:  # its metadata concerns the schema, which is given
        hint = get_args(hint)[0]
    if name not in properties and is_model(hint) and len(signature.parameters) == 1:
        yield BoundParameter(parameter.name, None, required, type_adapter(hint, parameter.name, tool))
    elif name in properties or (required and schema.get("additionalProperties", True) is not False):
        adapter = None if hint is Any else type_adapter(hint, parameter.name, tool)
        yield BoundParameter(parameter.name, name, required, adapter)
    elif required:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} is none that the given schema allows")
