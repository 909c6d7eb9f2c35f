"""Derive a tool's JSON Schemas and its input from a Python signature, or bind a given schema to a function."""

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
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
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema, to_jsonable_python

from toolchat.tool_calling.argument_repair import MEMBER_NAMES
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.input_validation import Binding, BoundParameter, ToolInput
from toolchat.tool_calling.json_schema import Schema, map_subschemas, schema_validator
from toolchat.tool_calling.results import ToolAnswer
from toolchat.tool_calling.signature import Signature, read_signature


class _ExplicitTitles(GenerateJsonSchema):
    """Omits titles that only repeat names, and the private fields of dataclasses."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchemaValue:
        public = [field for field in schema["fields"] if not field["name"].startswith("_")]
        return super().dataclass_args_schema({**schema, "fields": public})


_NOT_READABLE = (PydanticUserError, PydanticUndefinedAnnotation)


def read_output_schema(signature: Signature) -> Mapping[str, Any]:
    """Read the schema of a function's return type; empty if the type has no fields."""
    returned = signature.hints.get("return")
    if (get_origin(returned) or returned) is ToolAnswer:
        returned = next(iter(get_args(returned)), None)
    if not any(isinstance(each, type) and hasattr(each, "__annotations__") for each in (returned, *get_args(returned))):
        return {}
    return _class_output_schema(returned) if isinstance(returned, type) else _output_schema(returned)


@cache
def _class_output_schema(returned: type) -> Mapping[str, Any]:
    return _output_schema(returned)


def _output_schema(returned: Any) -> Mapping[str, Any]:
    try:
        return TypeAdapter(returned).json_schema(mode="serialization", schema_generator=_ExplicitTitles)
    except _NOT_READABLE:
        return {}


class EnumNamesGenerator(GenerateJsonSchema):
    """Adds the names of an enum's members to its schema, since a model may write a name for a value."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        members: Mapping[str, Any] = schema["cls"].__members__
        pairs = [[name, to_jsonable_python(member.value)] for name, member in members.items()]
        return {**super().enum_schema(schema), MEMBER_NAMES: pairs}


_DEFINITIONS = "#/$defs/"
_HIDDEN = {"title": str, MEMBER_NAMES: list, "discriminator": dict}
"""Keywords that the model does not see. One of another type is a property of that name."""


def simplify_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten a schema that pydantic generates, without changing its meaning, and close its objects.

    - Titles are removed: they cost tokens and repeat the names. So is OpenAPI's ``discriminator``, which refers to
      definitions that are gone, and repeats their constants.
    - A definition that is used once replaces its reference; only recursive and shared ones stay in ``$defs``.
    - The root is an object, never a reference.
    - An object with named properties allows no others, unless its type does, as in Spring AI.
    - Enum values that are not text are described with their names.
    """
    definitions = dict(schema.get("$defs", {}))
    root = {key: value for key, value in schema.items() if key != "$defs"}
    if "$ref" in root:
        target = definitions[root["$ref"].removeprefix(_DEFINITIONS)]
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    shared = _shared_definitions({**root, "$defs": definitions})

    def simplify(part: dict[str, Any]) -> dict[str, Any]:
        name = str(part.get("$ref", "")).removeprefix(_DEFINITIONS)
        if name in definitions and name not in shared:
            siblings = {key: value for key, value in part.items() if key != "$ref"}
            return map_subschemas({**definitions[name], **siblings}, simplify)
        return _simplify_object(_without_hidden(part))

    simplified = map_subschemas(root, simplify)
    kept = {name: map_subschemas(part, simplify) for name, part in definitions.items() if name in shared}
    return {"$defs": kept, **simplified} if kept else simplified


def _shared_definitions(schema: Mapping[str, Any]) -> set[str]:
    """The names of the definitions that are referred to more than once."""
    uses: Counter[str] = Counter()

    def count(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in part:
            uses[part["$ref"].removeprefix(_DEFINITIONS)] += 1
        return part

    map_subschemas(schema, count)
    return {name for name, number in uses.items() if number > 1}


def _without_hidden(part: dict[str, Any]) -> dict[str, Any]:
    members = part.get(MEMBER_NAMES, ())
    visible = {key: value for key, value in part.items() if key not in _HIDDEN or not isinstance(value, _HIDDEN[key])}
    if not all(isinstance(value, str) for _, value in members):
        names = ", ".join(f"{value} = {name}" for name, value in members)
        visible["description"] = f"{part['description']} ({names})" if "description" in part else names
    return visible


def _simplify_object(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "object":
        return part
    if "properties" in part:
        return {"additionalProperties": False} | part
    # Some providers reject a closed object without properties.
    return part | {"properties": {}} if part.get("additionalProperties") is False else part


_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=False)


def input_of_function(function: Callable[..., Any], tool: str) -> ToolInput:
    """Read the input of a tool from a function; see :func:`input_from_signature`."""
    return input_from_signature(read_signature(function, tool), tool)


def input_from_signature(signature: Signature, tool: str) -> ToolInput:
    """Build the input of a tool from a function's signature.

    - A parameter of type :class:`ToolContext` is not part of the schema.
    - A single parameter whose type is a pydantic model or a dataclass receives the whole input.
    - A trailing underscore (``from_``) is not part of the name that the model sees.
    - Descriptions come from ``Annotated[..., "text"]``, from pydantic's ``Field`` or from the ``Args`` section of a
      Google style docstring.
    """
    parameters, hints = signature.parameters, signature.hints
    for parameter in parameters:
        _check_parameter(parameter, hints, tool)
    if len(parameters) == 1 and is_model(hints[parameters[0].name]):
        return _whole_input(hints[parameters[0].name], parameters[0].name, signature.context_parameter, tool)
    # The prefix keeps names such as "schema" or "_id" from clashing with pydantic's own.
    names = exposed_names(signature, tool)
    fields = {f"argument_{p.name}": _field(p, names[p.name], signature) for p in parameters}
    try:
        model: type[BaseModel] = create_model(f"{tool}Input", __config__=_CONFIG, **fields)  # type: ignore[call-overload]
        adapter: TypeAdapter[Any] = TypeAdapter(model)
        schema = adapter.json_schema(schema_generator=EnumNamesGenerator)
    except _NOT_READABLE as error:
        at_fault = next((p.name for p in parameters if not _is_supported(hints[p.name])), "")
        raise _unsupported(error, at_fault, tool) from error
    binding = Binding(tuple(BoundParameter(p.name, f"argument_{p.name}") for p in parameters))
    return ToolInput(simplify_schema(schema), signature.context_parameter, adapter.validator, binding, schema)


def _whole_input(model: Any, parameter: str, context: str | None, tool: str) -> ToolInput:
    adapter = type_adapter(model, parameter, tool)
    schema = adapter.json_schema(schema_generator=EnumNamesGenerator)
    simplified = simplify_schema(schema)
    if simplified.get("type") != "object":
        raise ToolDefinitionError(f"tool {tool}: the input {parameter} must be an object")
    return ToolInput(simplified, context, adapter.validator, Binding((BoundParameter(parameter, None),)), schema)


def type_adapter(hint: Any, parameter: str, tool: str) -> TypeAdapter[Any]:
    """Build pydantic's validator of a parameter's type."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        adapter.json_schema()
    except _NOT_READABLE as error:
        raise _unsupported(error, parameter, tool) from error
    return adapter


def _is_supported(hint: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            type_adapter(hint, "", "")
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
    """Whether a type has fields, and so can be the whole input of a tool."""
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _field(parameter: inspect.Parameter, name: str, signature: Signature) -> tuple[Any, Any]:
    hint = signature.hints[parameter.name]
    default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
    metadata = list(get_args(hint)[1:]) if get_origin(hint) is Annotated else []
    in_field = next((m.description for m in metadata if isinstance(m, FieldInfo) and m.description), None)
    text = next((m for m in metadata if isinstance(m, str)), None)
    description = text or in_field or signature.described(parameter.name)
    return hint, Field(default, alias=name, description=description)


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
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((m.alias for m in metadata if isinstance(m, FieldInfo) and m.alias), None)


def input_from_schema(signature: Signature, schema: Schema, tool: str) -> ToolInput:
    """Build the input of a tool from a given schema, for a function whose signature says too little.

    - Arguments are validated by the schema alone.
    - A parameter receives the argument of its name, converted to its type if it has one; ``**`` receives the others.
    - Arguments without a parameter are dropped. A parameter that is not in the schema keeps its default.
    - A single parameter whose type is a model receives the whole input, unless the schema has its name.
    """
    try:
        validator = schema_validator(schema)
    except Exception as error:  # pydantic raises many types for an invalid schema
        reason = f"{type(error).__name__}: {error}".splitlines()[-1].strip()
        raise ToolDefinitionError(f"tool {tool}: the given schema cannot be used: {reason}") from error
    named = [p for p in signature.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = exposed_names(signature, tool)
    bound = tuple(each for p in named for each in _bind(p, names[p.name], signature, schema, tool))
    takes_extra = any(p.kind is p.VAR_KEYWORD for p in signature.parameters)
    binding = Binding(bound, frozenset(p.name for p in named) if takes_extra else None)
    return ToolInput(schema, signature.context_parameter, validator, binding, schema)


def _bind(
    parameter: inspect.Parameter, name: str, signature: Signature, schema: Schema, tool: str
) -> Iterator[BoundParameter]:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} must be an ordinary or keyword parameter")
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
