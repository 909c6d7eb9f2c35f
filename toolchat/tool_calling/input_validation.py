"""Validation of the arguments that a model sends, and their binding to a function's parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, to_json

from toolchat.tool_calling.argument_repair import parse_json, repair_arguments, strip_wrapping
from toolchat.tool_calling.errors import ToolArgumentsError

_MAX_INPUT_CHARS = 1_000_000
_MAX_REPAIRED_CHARS = 65_536
"""Longer arguments are not repaired: the repair would hold up the event loop."""
_MAX_ERRORS = 10
_COERCED_FROM_TEXT = ("int_type", "float_type", "bool_type", "enum")


Validate = Callable[[str, bool], Any]
"""Validates JSON text, strictly or not; raises pydantic's ``ValidationError``."""


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """A parameter of a function, and the argument that it receives."""

    parameter: str
    name: str | None
    """The name of the argument; ``None``: the parameter receives all arguments as one value."""
    required: bool = False
    adapter: TypeAdapter[Any] | None = None
    """Converts the argument to the parameter's type, if the validator has not done so."""

    def convert(self, value: Any) -> Any:
        """Convert an argument to the type of the parameter."""
        if self.adapter is None:
            return value
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            raise invalid_arguments(error, *([] if self.name is None else [self.name])) from None


@dataclass(frozen=True, slots=True)
class Binding:
    """Turns validated arguments into keyword arguments."""

    parameters: tuple[BoundParameter, ...]
    extra_without: frozenset[str] | None = None
    """``**`` receives every other argument but these; ``None``: the function has no ``**``."""

    @property
    def whole(self) -> BoundParameter | None:
        """The parameter that receives all arguments as one value."""
        return self.parameters[0] if len(self.parameters) == 1 and self.parameters[0].name is None else None

    def keywords(self, arguments: Any) -> dict[str, Any]:
        """Bind validated arguments: a dict, or any object for a parameter that receives the whole input."""
        if whole := self.whole:
            return {whole.parameter: whole.convert(arguments)}
        keywords = {} if self.extra_without is None else self._extra(arguments, self.extra_without)
        missing = []
        for each in self.parameters:
            if each.name in arguments:
                value = arguments[each.name]
                keywords[each.parameter] = value if each.adapter is None else each.convert(value)
            elif each.required:
                missing.append(each.name)
        if missing:
            raise ToolArgumentsError("; ".join(f"{name}: Field required" for name in missing))
        return keywords

    def _extra(self, arguments: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
        names = without.union(each.name for each in self.parameters if each.name)
        return {name: value for name, value in arguments.items() if name not in names}


@dataclass(frozen=True, slots=True)
class ToolInput:
    """The input of a tool: the schema for the model, and the validation of its arguments."""

    schema: Mapping[str, Any]
    """JSON Schema 2020-12 of an object."""
    context_parameter: str | None
    """The parameter that receives the :class:`ToolContext`."""
    _validate: Validate
    _binding: Binding
    _repair_schema: Mapping[str, Any]
    """The schema for repairs; it may contain more than the model sees, such as the names of enum members."""
    _is_exact: bool = False
    """Some numbers are decimals: they are read from their text, not through a float."""

    def read(self, tool_input: str) -> tuple[dict[str, Any], bool]:
        """Validate a model's JSON text; returns keyword arguments, and whether they had to be repaired.

        Empty text means no arguments. Text that does not fit is repaired where only one reading is possible: a code
        fence, an object encoded twice, a trailing comma, and the cases of :func:`repair_arguments`.
        """
        if len(tool_input) > _MAX_INPUT_CHARS:
            raise ToolArgumentsError("the arguments are too long")
        text = tool_input.strip() or "{}"
        text = self._repair(text) if self._is_exact else text
        try:
            # Strict first: nearly all calls fit, and only this way shows whether a lenient read changed anything.
            return self._binding.keywords(self._validate(text, True)), False
        except ValidationError as error:
            validated, repaired = self._validate_leniently(text, error)
        return self._binding.keywords(validated), repaired

    def arguments(self, tool_input: str) -> dict[str, Any]:
        """The keyword arguments alone; see :meth:`read`."""
        return self.read(tool_input)[0]

    def _validate_leniently(self, text: str, strict: ValidationError) -> tuple[Any, bool]:
        # In lax mode pydantic reads "3" as 3, which counts as a repair; a date from a string does not.
        try:
            validated = self._validate(text, False)
            read_from_text = [fault["type"] for fault in _errors(strict) if isinstance(fault["input"], str)]
            return validated, any(each in _COERCED_FROM_TEXT for each in read_from_text)
        except ValidationError:
            text = self._repair(strip_wrapping(text))
        try:
            return self._validate(text, False), True
        except ValidationError as error:
            raise invalid_arguments(error) from None

    def _repair(self, text: str) -> str:
        if len(text) > _MAX_REPAIRED_CHARS:
            return text
        try:
            return to_json(repair_arguments(self._unwrapped(parse_json(text)), self._repair_schema)).decode()
        except ValueError:
            return text

    def _unwrapped(self, arguments: Any) -> Any:
        """The whole input, which a model may have put into an object under the name of the parameter."""
        whole = self._binding.whole
        if whole is None or whole.parameter in self.schema.get("properties", {}) or not isinstance(arguments, dict):
            return arguments
        return arguments[whole.parameter] if [*arguments] == [whole.parameter] else arguments


def invalid_arguments(error: ValidationError, *path: str) -> ToolArgumentsError:
    """Describe invalid arguments for the model; ``path`` is the place of the validated value in them."""
    faults = _errors(error)[:_MAX_ERRORS]
    fields = [{"field": ".".join(map(str, (*path, *f["loc"]))), "problem": f["msg"]} for f in faults]
    if faults[0]["type"] in ("value_error", "assertion_error") and not fields[0]["field"]:
        return ToolArgumentsError(faults[0]["msg"])  # a rule across fields
    if not all(each["field"] for each in fields):
        return ToolArgumentsError(f"the arguments must be one JSON object: {faults[0]['msg']}")
    return ToolArgumentsError("; ".join(f"{each['field']}: {each['problem']}" for each in fields), fields)


def _errors(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False)
