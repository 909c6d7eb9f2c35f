"""From a Python signature to JSON Schema."""

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticErrorMixin
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema, to_jsonable_python

from toolchat.tool_calling.argument_repair import MEMBER_NAMES
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.input_validation import ToolInput, invalid_arguments
from toolchat.tool_calling.json_schema import map_subschemas
from toolchat.tool_calling.schema_validator import schema_validator
from toolchat.tool_calling.signature import Signature, read_signature

__all__ = [
    "EnumNamesGenerator",
    "exposed_name",
    "input_from_schema",
    "input_from_signature",
    "input_of_function",
    "is_model",
    "read_output_schema",
    "simplify_schema",
    "type_adapter",
]


class _GivenTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes of names: they say nothing that the names do not."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - as pydantic calls it
        """No title but the one that was given."""
        return False


def read_output_schema(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Read what a function, a method or a callable object returns; empty where its type names no fields.

    It is read once for each type, when a tool is defined; no call pays for it.
    """
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        returned = get_type_hints(target, include_extras=True).get("return")
    except (NameError, AttributeError, SyntaxError, TypeError):
        return {}
    if not any(isinstance(each, type) and hasattr(each, "__annotations__") for each in (returned, *get_args(returned))):
        return {}
    return _schema_of_class(returned) if isinstance(returned, type) else _schema_of(returned)


@cache
def _schema_of_class(returned: type) -> Mapping[str, Any]:
    return _schema_of(returned)


def _schema_of(returned: Any) -> Mapping[str, Any]:
    try:
        return TypeAdapter(returned).json_schema(mode="serialization", schema_generator=_GivenTitles)
    except (PydanticUserError, PydanticUndefinedAnnotation):
        return {}


_PREFIX = "#/$defs/"
_UNTOLD = {"title": str, MEMBER_NAMES: list}


class EnumNamesGenerator(GenerateJsonSchema):
    """Makes a JSON Schema that knows the names of an enum's members, since a model may write these too."""

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """See :meth:`GenerateJsonSchema.enum_schema`."""
        members: Mapping[str, Any] = schema["cls"].__members__
        pairs = [[name, to_jsonable_python(member.value)] for name, member in members.items()]
        return {**super().enum_schema(schema), MEMBER_NAMES: pairs}


def simplify_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten the schema that pydantic derives, without a change in what it means, and close its objects.

    Titles go: they cost tokens and repeat the names. A definition that is used once stands where it is used, so that
    ``$defs`` is left to recursive and shared types; the root is an object, never a reference. An object with named
    properties allows no others, unless its type says so, as in Spring AI. Values of an enum that are no text are told
    with their names.
    """
    definitions = dict(schema.get("$defs", {}))
    root = {key: value for key, value in schema.items() if key != "$defs"}
    if "$ref" in root:
        root = {**definitions[root["$ref"].removeprefix(_PREFIX)], **{k: v for k, v in root.items() if k != "$ref"}}
    uses: Counter[str] = Counter()
    map_subschemas({**root, "$defs": definitions}, lambda part: _counted(part, uses))
    shared = {name for name in definitions if uses[name] > 1}

    def in_place(part: dict[str, Any]) -> dict[str, Any]:
        name = str(part.get("$ref", "")).removeprefix(_PREFIX)
        if name in definitions and name not in shared:
            siblings = {key: value for key, value in part.items() if key != "$ref"}
            inlined: dict[str, Any] = map_subschemas({**definitions[name], **siblings}, in_place)
            return inlined
        return _closed(part)

    tidy: dict[str, Any] = map_subschemas(root, in_place)
    kept = {name: map_subschemas(part, in_place) for name, part in definitions.items() if name in shared}
    return {"$defs": kept, **tidy} if kept else tidy


def _counted(part: dict[str, Any], uses: Counter[str]) -> dict[str, Any]:
    if "$ref" in part:
        uses[part["$ref"].removeprefix(_PREFIX)] += 1
    return part


def _closed(part: dict[str, Any]) -> dict[str, Any]:
    members = part.get(MEMBER_NAMES, ())
    part = {key: value for key, value in part.items() if key not in _UNTOLD or not isinstance(value, _UNTOLD[key])}
    if not all(isinstance(value, str) for _, value in members):
        names = ", ".join(f"{value} = {name}" for name, value in members)
        part["description"] = f"{part['description']} ({names})" if "description" in part else names
    if part.get("type") != "object":
        return part
    if "properties" in part:
        return {"additionalProperties": False} | part
    return part | {"properties": {}} if part.get("additionalProperties") is False else part


_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=False)
_UNSUPPORTED = (PydanticUserError, PydanticUndefinedAnnotation)


def input_of_function(function: Callable[..., Any], tool: str) -> ToolInput:
    """Read what a function takes from its signature; see :func:`input_from_signature`."""
    return input_from_signature(read_signature(function, tool), tool)


def input_from_signature(signature: Signature, tool: str) -> ToolInput:
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
        schema = adapter.json_schema(schema_generator=EnumNamesGenerator)
    except _UNSUPPORTED as error:
        at_fault = next((p.name for p in parameters if not _is_supported(hints[p.name])), "")
        raise _unsupported(error, at_fault, tool) from error
    names = {f"argument_{p.name}": p.name for p in parameters}

    def keywords(checked: Any) -> dict[str, Any]:
        return {parameter: getattr(checked, field) for field, parameter in names.items()}

    return ToolInput(simplify_schema(schema), signature.context_parameter, adapter.validator, keywords, schema)


def _whole_input(model: Any, parameter: str, context: str | None, tool: str) -> ToolInput:
    adapter = type_adapter(model, parameter, tool)
    schema = adapter.json_schema(schema_generator=EnumNamesGenerator)
    told = simplify_schema(schema)
    if told.get("type") != "object":
        raise ToolDefinitionError(f"tool {tool}: the input {parameter} must be an object")
    return ToolInput(told, context, adapter.validator, lambda checked: {parameter: checked}, schema)


def type_adapter(hint: Any, parameter: str, tool: str) -> TypeAdapter[Any]:
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
    """Whether a type has fields of its own, and so can be a tool's whole input."""
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _field(parameter: inspect.Parameter, hint: Any, descriptions: Mapping[str, str]) -> tuple[Any, Any]:
    default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
    metadata = list(get_args(hint)[1:]) if get_origin(hint) is Annotated else []
    given = next((m.description for m in metadata if isinstance(m, FieldInfo) and m.description), None)
    text = next((m for m in metadata if isinstance(m, str)), None)
    description = text or given or descriptions.get(parameter.name)
    return hint, Field(default, alias=exposed_name(parameter, hint), description=description)


def exposed_name(parameter: inspect.Parameter, hint: Any) -> str:
    """The name under which a model gives an argument: the alias of a ``Field``, else the parameter's without ``_``."""
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    alias = next((m.alias for m in metadata if isinstance(m, FieldInfo) and m.alias), None)
    return alias or parameter.name.removesuffix("_")


_Schema = Mapping[str, Any]


def input_from_schema(signature: Signature, schema: _Schema, tool: str) -> ToolInput:
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
            raise invalid_arguments(error, *([] if self.name is None else [self.name])) from None


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
    name, required = exposed_name(parameter, hint), parameter.default is parameter.empty
    name = name if name in properties else parameter.name
    if get_origin(hint) is Annotated:  # What it says beside the type is the schema's business.
        hint = get_args(hint)[0]
    if name not in properties and is_model(hint) and len(signature.parameters) == 1:
        yield _Taken(parameter.name, None, required, type_adapter(hint, parameter.name, tool))
    elif name in properties or (required and schema.get("additionalProperties", True) is not False):
        yield _Taken(parameter.name, name, required, None if hint is Any else type_adapter(hint, parameter.name, tool))
    elif required:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} is none that the given schema allows")
