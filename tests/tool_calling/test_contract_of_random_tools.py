"""The contract of schema, validator and function, held by tools with random signatures."""

import enum
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import jsonschema
import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field

from tests.tool_calling.schema_examples import examples
from toolchat.tool_calling.errors import ToolArgumentsError
from toolchat.tool_calling.input_validation import ToolInput
from toolchat.tool_calling.schema import input_of_function


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2


class Point(NamedTuple):
    x: int
    y: float = 0


class Filter(BaseModel):
    status: Annotated[str, "which"] = Field("any", alias="theStatus")
    days: int = Field(0, ge=0, le=9)


@dataclass
class Plan:
    size: Size
    near: "Plan | None" = None
    number: int = field(default=7, init=False)
    _token: str = "internal"


class Nested(BaseModel):
    plans: list[Plan] = []
    filters: dict[str, Filter]
    items: list[Point] = []


TYPES_AND_DEFAULTS: list[tuple[Any, list[Any]]] = [
    (str, ["", "x"]),
    (bool, [True]),
    (float, [0.5, math.inf, math.nan]),
    (bytes, [b"\xff\xfe"]),
    (date, [date(2026, 11, 20)]),
    (Decimal, [Decimal("1.10")]),
    (Annotated[int, Field(ge=1, lt=9)], [3]),
    (Annotated[str, Field(min_length=2, max_length=4)], ["abc"]),
    (Annotated[list[int], Field(min_length=1, max_length=3)], [[1]]),
    (int | None, [None, 1]),
    (Literal["a", 1], ["a"]),
    (Color, list(Color)),
    (Size, list(Size)),
    (Point, [Point(1)]),
    (tuple[int, str], [(1, "x")]),
    (Filter, [Filter(theStatus="open")]),
    (Plan, []),
    (Nested, []),
]
WRAPPED: list[Callable[[Any], Any]] = [
    lambda kind: kind,
    lambda kind: list[kind],  # type: ignore[valid-type]
    lambda kind: kind | None,
    lambda kind: dict[str, kind],  # type: ignore[valid-type]
    lambda kind: Iterable[kind],  # type: ignore[valid-type]
]


@st.composite
def parameters(draw: st.DrawFn, name: str) -> inspect.Parameter:
    kind, defaults = draw(st.sampled_from(TYPES_AND_DEFAULTS))
    default = draw(st.sampled_from([inspect.Parameter.empty, *defaults]))
    if default is inspect.Parameter.empty:
        kind = draw(st.sampled_from(WRAPPED))(kind)
    alias = draw(st.sampled_from([None, f"{name}Alias"]))
    options: Any = {"description": draw(st.sampled_from([None, "text"])), "alias": alias}
    form = draw(st.sampled_from(["plain", "annotated", "default"]))
    if form == "annotated":
        kind = Annotated[kind, Field(**options)]
    elif form == "default":
        default = Field(... if default is inspect.Parameter.empty else default, **options)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _function(given: list[inspect.Parameter]) -> Callable[..., Any]:
    def function(**arguments: Any) -> None: ...

    function.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in given}
    return function


FUNCTIONS = st.integers(1, 3).flatmap(lambda count: st.tuples(*(parameters(f"p{at}") for at in range(count))))


def _forbidden(schema: Any, value: Any) -> Iterator[Any]:
    """Copies of an example in which some object lacks a property, or has one that no schema names."""

    def objects(part: Any) -> Iterator[Any]:
        if isinstance(part, dict):
            yield part
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            yield from objects(inner)

    for at, found in enumerate(objects(value)):
        for name in (*found, None):
            changed = deepcopy(value)
            target = next(each for place, each in enumerate(objects(changed)) if place == at)
            target.pop(name) if name else target.update({"noSuchProperty": {}})
            if not jsonschema.Draft202012Validator(schema).is_valid(changed):
                yield changed


def _check(tool_input: ToolInput, function: Callable[..., Any]) -> None:
    schema = json.loads(json.dumps(tool_input.schema, allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(schema)
    found = list(examples(schema, schema))
    for example in found:
        jsonschema.validate(example, schema)
        arguments = tool_input.arguments(json.dumps(example))
        bound = inspect.signature(function).bind(**arguments)
        assert not any(type(each).__name__ == "FieldInfo" for each in bound.arguments.values())
    for example in found[:1]:
        for changed in _forbidden(schema, example):
            with pytest.raises(ToolArgumentsError):
                tool_input.arguments(json.dumps(changed))


@given(FUNCTIONS)
def test_a_schemas_examples_reach_the_function_and_what_it_forbids_is_refused(
    drawn: tuple[inspect.Parameter, ...],
) -> None:
    function = _function(list(drawn))
    _check(input_of_function(function, "random"), function)


@pytest.mark.parametrize(("kind", "defaults"), TYPES_AND_DEFAULTS, ids=lambda each: str(each)[:40])
def test_every_type_and_default_of_the_random_tools_is_in_some_example(kind: Any, defaults: list[Any]) -> None:
    for default in (inspect.Parameter.empty, *defaults):
        parameter = inspect.Parameter("p", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        tool_input = input_of_function(_function([parameter]), "each")
        assert list(examples(tool_input.schema, tool_input.schema))
        _check(tool_input, _function([parameter]))
