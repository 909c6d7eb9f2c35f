"""Schemas that are not generated from Python types: conversion to JSON Schema 2020-12, and validation by them.

A schema may come from another server. No reference to another document is followed, and the time of a validation grows
only with the product of the lengths of the schema and of the arguments.

Imports ``jsonschema``, so this module is imported by the first given schema.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError as Fault
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from pydantic import ValidationError
from pydantic_core import (
    InitErrorDetails,
    PydanticCustomError,
    SchemaError,
    SchemaValidator as CoreValidator,
    core_schema,
    from_json,
)

from toolchat.tool_calling.json_schema import Schema, is_json, map_subschemas, resolve

_MAX_VALUES = 20_000
"""Values in the arguments; their validation takes up to 0.2 s, in which the event loop waits."""
_MAX_PROBLEMS, _MAX_PROBLEM_CHARS = 10, 200
_OLD = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "additionalItems")
"""Keywords that change what a reference means, or that draft 2020-12 does not have."""
_UNVALIDATED = ("uniqueItems", "unevaluatedItems", "unevaluatedProperties")
"""Keywords whose validation can take more than that time; they are for the model only."""
_METASCHEMA = Draft202012Validator(Draft202012Validator.META_SCHEMA, format_checker=FormatChecker(["regex"]))


def upgraded(schema: Schema, *, strict: bool = False) -> dict[str, Any]:
    """Convert a schema of any draft to JSON Schema 2020-12.

    Args:
        schema: the schema, which stays unchanged.
        strict: an invalid value of a keyword is a ``ValueError``; otherwise the keyword is dropped.
    """

    def convert(part: dict[str, Any]) -> dict[str, Any]:
        if isinstance(reference := part.get("$ref"), str) and (problem := _reference_problem(reference, schema)):
            if strict:
                raise ValueError(problem)
            del part["$ref"]
        return _without_old_forms(part)

    converted = map_subschemas(schema, convert)
    while faults := list(_METASCHEMA.iter_errors(converted)):
        if strict:
            raise ValueError(f"{'.'.join(map(str, faults[0].absolute_path))}: {faults[0].message:.100}")
        for fault in reversed(faults):
            with suppress(LookupError):  # it was dropped with what is around it
                _drop(converted, *fault.absolute_path)
    return converted


def _reference_problem(reference: str, root: Schema) -> str:
    """Why a reference leads to no schema; empty if it leads to one."""
    passed, target = set[str](), resolve(reference, root)
    while isinstance(target, Mapping) and isinstance(following := target.get("$ref"), str):
        if following in passed:
            return f"{reference} leads in a circle"
        passed.add(following)
        target = resolve(following, root)
    return "" if isinstance(target, Mapping | bool) else f"{reference} leads to no schema"


def _drop(part: Any, place: Any, *inner: Any) -> None:
    if inner:
        _drop(part[place], *inner)
    else:
        del part[place]


def _without_old_forms(part: dict[str, Any]) -> dict[str, Any]:
    """Replace the forms of drafts 3 and 4, and drop values that are not JSON."""
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.title()}"
        if isinstance(part.get(exclusive), bool) and part.pop(exclusive) and bound in part:
            part[exclusive] = part.pop(bound)
    if part.pop("nullable", False) is True and isinstance(part.get("type"), str):  # OpenAPI 3.0
        part["type"] = [part["type"], "null"]
    if isinstance(part.get("items"), list):
        part |= {"prefixItems": part["items"], "items": part.get("additionalItems", True)}
    required = _required(part)
    kept = {name: _plain(value) for name, value in part.items() if name not in _OLD and is_json(value)}
    return kept | {"required": required} if required else {k: v for k, v in kept.items() if k != "required"}


def _required(part: Mapping[str, Any]) -> list[Any]:
    """The names of required properties; draft 3 says it in the property, where ``True`` waits for the schema around."""
    own = part.get("required")
    names = [own] if own is True else [each for each in own if isinstance(each, str)] if isinstance(own, list) else []
    properties = part.get("properties")
    for name, each in properties.items() if isinstance(properties, dict) else ():
        if isinstance(each, dict) and True in each.get("required", ()):
            names.append(name)
            each["required"].remove(True)
            if not each["required"]:
                del each["required"]
    return list(dict.fromkeys(names))


def _plain(value: Any) -> Any:
    """A whole number as ``int``, which is what JSON Schema calls an integer, and a tuple as a list."""
    if isinstance(value, tuple):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


@dataclass(frozen=True, slots=True)
class SchemaValidator:
    """Validates JSON text by a valid schema as pydantic's validators do; the text must be an object."""

    schema: Schema

    def validate_json(self, text: str, strict: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Validate JSON text, always strictly; raises pydantic's ``ValidationError``."""
        try:
            value = _parse(text)
            _ROOT.set(self.schema)
            _FITS.set({})
            problems = list(map(_problem, islice(_Validator(self.schema).iter_errors(value), _MAX_PROBLEMS)))
        except ValueError as error:
            problems = [_details(str(error))]
        except RecursionError:
            problems = [_details("it is nested too deeply")]
        if problems:
            raise ValidationError.from_exception_data("arguments", problems)
        return value


def _parse(text: str) -> dict[str, Any]:
    from_json(text, allow_inf_nan=False)  # has limits that the standard library lacks
    value = json.loads(text, parse_float=_finite)
    if not isinstance(value, dict):
        raise ValueError("Input should be an object")  # noqa: TRY004 - not an argument
    if _count(value) > _MAX_VALUES:
        raise ValueError(f"it has more than {_MAX_VALUES} values")
    return value


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text:.20} is too large")
    return _plain(number)  # type: ignore[no-any-return]


def _count(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count, parts))


def _problem(fault: Fault) -> InitErrorDetails:
    fault = best_match([fault])  # of a union, the fault of the member that fits best
    text = str(fault.message)
    if len(text) > _MAX_PROBLEM_CHARS:  # it quotes the value
        text = f"does not fit {json.dumps({fault.validator: fault.validator_value}):.{_MAX_PROBLEM_CHARS}}"
    return _details(text, *fault.absolute_path)


def _details(text: str, *place: str | int) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError("given_schema", "{text}", {"text": text}), loc=place, input=None)


_ROOT: ContextVar[Schema] = ContextVar("_ROOT")
_FITS: ContextVar[dict[tuple[str, int], bool]] = ContextVar("_FITS")
"""Whether a value fits the target of a reference, by the value's identity, during one validation.

References can multiply, so that a short schema has more ways to a value than can be tried: each is tried once.
"""


def _reference(validator: Any, reference: str, value: Any, _: Schema) -> Iterator[Fault]:
    fits, key = _FITS.get(), (reference, id(value))
    if key not in fits:
        fits[key] = True  # while it is being tried: a schema that is its own part adds nothing to itself
        target = resolve(reference, _ROOT.get())
        faults = [] if target is None else list(validator.descend(value, target))
        fits[key] = not faults
        yield from faults
    elif not fits[key]:
        yield Fault(f"does not fit {reference}")


def _required_names(_validator: Any, names: list[str], value: Any, _: Schema) -> Iterator[Fault]:
    for name in names if isinstance(value, dict) else ():
        if name not in value:
            yield Fault("Field required", path=[name])


def _additional(validator: Any, allowed: Any, value: Any, schema: Schema) -> Iterator[Fault]:
    known, patterns = schema.get("properties", ()), schema.get("patternProperties", ())
    for name, each in value.items() if isinstance(value, dict) else ():
        if name in known or any(re.search(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield Fault("Extra inputs are not permitted", path=[name])
        else:
            yield from validator.descend(each, allowed, path=name)


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> Callable[[str], object]:
    try:
        return CoreValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
    except SchemaError:
        # Rust's regular expressions, which take linear time, have no look-around.
        return re.compile(pattern).search


def _pattern(_validator: Any, pattern: str, value: Any, _: Schema) -> Iterator[Fault]:
    if isinstance(value, str) and not _matcher(pattern)(value):
        yield Fault(f"does not match {pattern}")


def _multiple_of(_validator: Any, factor: float, value: Any, _: Schema) -> Iterator[Fault]:
    # As floats, 19.99 is no multiple of 0.01.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and Fraction(str(value)) % Fraction(str(factor)):
        yield Fault(f"{value} is not a multiple of {factor}")


_Validator = extend(
    Draft202012Validator,
    dict.fromkeys(_UNVALIDATED, lambda *_: ())
    | {
        "$ref": _reference,
        "required": _required_names,
        "additionalProperties": _additional,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
    },
)
