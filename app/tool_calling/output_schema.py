"""From a function's return annotation to the JSON Schema of its results."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

__all__ = ["output_schema_of"]


class _GivenTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes of names: they say nothing that the names do not."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - as pydantic calls it
        """No title but the one that was given."""
        return False


def output_schema_of(function: Callable[..., Any]) -> Mapping[str, Any]:
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
