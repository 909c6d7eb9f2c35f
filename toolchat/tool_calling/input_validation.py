"""The check of what a model sends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from toolchat.tool_calling.argument_repair import repair_arguments, strip_wrapping
from toolchat.tool_calling.errors import ToolArgumentsError

__all__ = ["ToolInput", "invalid_arguments"]


_MAX_INPUT_CHARS = 1_000_000
_MAX_MENDED_CHARS = 65_536
"""What is longer is not looked through for what was meant: everybody else would wait."""
_SHOWN_FAULTS = 10
_READ_FROM_TEXT = ("int_type", "float_type", "bool_type", "enum")


class Validator(Protocol):
    """What pydantic makes of a type or of a schema."""

    def validate_json(self, data: str, /, *, strict: bool | None = None) -> Any:
        """Check JSON text; raises ``ValidationError``."""
        ...


@dataclass(frozen=True, slots=True)
class ToolInput:
    """What a tool takes: its schema for the model, and the check of what the model sends."""

    schema: Mapping[str, Any]
    """JSON Schema 2020-12 of an object."""
    context_parameter: str | None
    """The parameter that receives the :class:`ToolContext`."""
    _validator: Validator
    _keywords: Callable[[Any], dict[str, Any]]
    """From what has been checked to keyword arguments."""
    _wanted: Mapping[str, Any]
    """The schema for repairs; it may know more than the model is told."""

    def read(self, tool_input: str) -> tuple[dict[str, Any], bool]:
        """Check a model's JSON text and turn it into keyword arguments; also say whether it had to be repaired.

        An empty text means no arguments. What does not fit is repaired where only one reading is possible: a code
        fence around it, an object encoded twice, a trailing comma, and what :func:`repair_arguments` knows.

        Raises:
            ToolArgumentsError: it does not fit; the message names each field at fault.
        """
        if len(tool_input) > _MAX_INPUT_CHARS:
            raise ToolArgumentsError("the arguments are too long")
        text = tool_input.strip() or "{}"
        try:
            return self._keywords(self._validator.validate_json(text, strict=True)), False
        except ValidationError as error:
            checked, repaired = self._leniently(text, error)
        return self._keywords(checked), repaired

    def arguments(self, tool_input: str) -> dict[str, Any]:
        """The keyword arguments alone; see :meth:`read`."""
        return self.read(tool_input)[0]

    def _leniently(self, text: str, strict: ValidationError) -> tuple[Any, bool]:
        try:
            return self._validator.validate_json(text), any(map(_is_read_from_text, _faults(strict)))
        except ValidationError:
            text = self._mended(strip_wrapping(text))
        try:
            return self._validator.validate_json(text), True
        except ValidationError as error:
            raise invalid_arguments(error) from None

    def _mended(self, text: str) -> str:
        if len(text) > _MAX_MENDED_CHARS:
            return text
        try:
            return to_json(repair_arguments(from_json(text, allow_inf_nan=False), self._wanted)).decode()
        except ValueError:
            return text


def invalid_arguments(error: ValidationError, *path: str) -> ToolArgumentsError:
    """Tell a model what is wrong with its arguments; ``path`` says where the checked value stands in them."""
    faults = _faults(error)[:_SHOWN_FAULTS]
    fields = [{"field": ".".join(map(str, (*path, *f["loc"]))), "problem": f["msg"]} for f in faults]
    if not all(each["field"] for each in fields):
        return ToolArgumentsError(f"the arguments must be one JSON object: {faults[0]['msg']}")
    return ToolArgumentsError("; ".join(f"{each['field']}: {each['problem']}" for each in fields), fields)


def _faults(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False)


def _is_read_from_text(fault: ErrorDetails) -> bool:
    return fault["type"] in _READ_FROM_TEXT and isinstance(fault["input"], str)
