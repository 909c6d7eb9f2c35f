"""From a Python signature to JSON Schema, and from a model's JSON to checked arguments."""

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from types import SimpleNamespace
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
from pydantic_core import PydanticUndefined, from_json

from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from app.tool_calling.schema_form import tidy_schema

__all__ = ["ToolInput", "description_of", "tool_input_of"]

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=False)
_MAX_INPUT_CHARS = 1_000_000
_UNSUPPORTED = (PydanticUserError, PydanticUndefinedAnnotation)


@dataclass(frozen=True, slots=True)
class ToolInput:
    """What a tool takes: its schema for the model, and the check of what the model sends."""

    schema: Mapping[str, Any]
    """JSON Schema 2020-12 of an object with ``additionalProperties: false``."""
    context_parameter: str | None
    """The parameter that receives the :class:`ToolContext`."""
    _adapter: TypeAdapter[Any]
    _fields: Mapping[str, str] | None
    """Model field to parameter; ``None`` when the tool takes the whole model as ``_parameter``."""
    _parameter: str | None

    def arguments(self, tool_input: str) -> dict[str, Any]:
        """Check a model's JSON text and turn it into keyword arguments.

        An empty text means no arguments. A text that is not JSON is repaired where only one reading is possible:
        a code fence around it, an object encoded twice, a trailing comma.

        Raises:
            ToolArgumentsError: it does not fit; the message names each field at fault.
        """
        checked = self._checked(tool_input.strip() or "{}")
        if self._fields is None:
            return {} if self._parameter is None else {self._parameter: checked}
        return {parameter: getattr(checked, field) for field, parameter in self._fields.items()}

    def _checked(self, text: str) -> Any:
        if len(text) > _MAX_INPUT_CHARS:
            raise ToolArgumentsError("the arguments are too long")
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            repaired = _repaired(text) if _is_about_form(error) else None
            if repaired is None:
                raise _arguments_error(error) from None
        try:
            return self._adapter.validate_json(repaired)
        except ValidationError as error:
            raise _arguments_error(error) from None


def tool_input_of(function: Callable[..., Any], tool: str) -> ToolInput:
    """Read what a function takes from its signature.

    A parameter of type :class:`ToolContext` is left out of the schema. A single parameter whose type is a pydantic
    model or a dataclass is taken as the whole input. A trailing underscore (``from_``) is not part of the name that
    the model sees. Descriptions come from ``Annotated[..., "text"]``, from pydantic's ``Field`` or from the ``Args``
    section of a Google style docstring.

    Raises:
        ToolDefinitionError: a parameter has no type, or one that JSON cannot carry.
    """
    hints = _type_hints(function, tool)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    context = next((p.name for p in parameters if hints.get(p.name) is ToolContext), None)
    parameters = [p for p in parameters if p.name != context]
    for parameter in parameters:
        _check_parameter(parameter, hints, tool)
    if len(parameters) == 1 and _is_model(hints[parameters[0].name]):
        return _whole_input(hints[parameters[0].name], parameters[0].name, context, tool)
    descriptions = _described_arguments(function)
    fields = {f"argument_{p.name}": _field(p, hints[p.name], descriptions) for p in parameters}
    try:
        model: type[BaseModel] = create_model(f"{tool}Input", __config__=_CONFIG, **fields)  # type: ignore[call-overload]
        adapter: TypeAdapter[Any] = TypeAdapter(model)
        schema = tidy_schema(adapter.json_schema())
    except _UNSUPPORTED as error:
        at_fault = next((p.name for p in parameters if not _is_supported(hints[p.name])), "")
        raise _unsupported(error, at_fault, tool) from error
    return ToolInput(schema, context, adapter, {f"argument_{p.name}": p.name for p in parameters}, None)


def description_of(function: Callable[..., Any]) -> str:
    """The first paragraph of a docstring on one line; empty without one."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n", 1)[0].split())


def _whole_input(model: Any, parameter: str, context: str | None, tool: str) -> ToolInput:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(model)
        schema = tidy_schema(adapter.json_schema()) | {"additionalProperties": False}
    except _UNSUPPORTED as error:
        raise _unsupported(error, parameter, tool) from error
    if schema.get("type") != "object":
        raise ToolDefinitionError(f"tool {tool}: the input {parameter} must be an object")
    return ToolInput(schema, context, adapter, None, parameter)


def _is_supported(hint: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TypeAdapter(hint).json_schema()
        except _UNSUPPORTED:
            return False
    return True


def _unsupported(error: PydanticErrorMixin, parameter: str, tool: str) -> ToolDefinitionError:
    reason = error.message.strip().split("\n", 1)[0]
    return ToolDefinitionError(f"tool {tool}: parameter {parameter} has a type that JSON cannot carry: {reason}")


def _type_hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        at_fault = _unreadable_parameter(target)
        raise ToolDefinitionError(f"tool {tool}: {at_fault} has a type that cannot be read: {error}") from error


def _unreadable_parameter(function: Any) -> str:
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            get_type_hints(SimpleNamespace(__annotations__={name: hint}), names, include_extras=True)
        except (NameError, AttributeError, SyntaxError, TypeError):
            return "the result" if name == "return" else f"parameter {name}"
    return "a parameter"


def _check_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} must be an ordinary or keyword parameter")
    if parameter.name not in hints:
        raise ToolDefinitionError(f"tool {tool}: parameter {parameter.name} has no type")


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _field(parameter: inspect.Parameter, hint: Any, descriptions: Mapping[str, str]) -> tuple[Any, Any]:
    default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
    metadata = list(get_args(hint)[1:]) if get_origin(hint) is Annotated else []
    given = next((m.description for m in metadata if isinstance(m, FieldInfo) and m.description), None)
    text = next((m for m in metadata if isinstance(m, str)), None)
    alias = next((m.alias for m in metadata if isinstance(m, FieldInfo) and m.alias), None)
    name = alias or parameter.name.removesuffix("_")
    return hint, Field(default, alias=name, description=text or given or descriptions.get(parameter.name))


def _described_arguments(function: Callable[..., Any]) -> dict[str, str]:
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(r"^ {4}\*{0,2}(\w+)[^:\n]*:[ ]*((?:.*)(?:\n {8,}.*)*)", section[1], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def _is_about_form(error: ValidationError) -> bool:
    first = error.errors(include_url=False, include_context=False)[0]
    return not first["loc"] and first["type"] in (
        "json_invalid",
        "model_type",
        "model_attributes_type",
        "dataclass_type",
    )


def _repaired(text: str) -> str | None:
    stripped = text.removeprefix("\ufeff").strip()
    fence = re.fullmatch(r"```\w*\s*\n?(.*?)\s*```", stripped, re.DOTALL)
    bare = fence[1] if fence else stripped
    if bare == "null":
        return "{}"
    try:
        value = from_json(bare)
    except ValueError:
        return _without_trailing_commas(bare)
    if isinstance(value, str):
        return _without_trailing_commas(value.strip() or "{}")
    return bare if bare != text else None


def _without_trailing_commas(text: str) -> str:
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda match: match[1] or "", text)


def _arguments_error(error: ValidationError) -> ToolArgumentsError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:10]
    fields = [{"field": ".".join(map(str, f["loc"])), "problem": f["msg"]} for f in faults if f["loc"]]
    if not fields:
        return ToolArgumentsError(f"the arguments must be one JSON object: {faults[0]['msg']}")
    return ToolArgumentsError("; ".join(f"{f['field']}: {f['problem']}" for f in fields), fields)
