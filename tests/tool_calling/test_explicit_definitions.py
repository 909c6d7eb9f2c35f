"""Definitions given in code: the given schema rules, and a function is given what it takes."""

import datetime
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from pydantic_core import to_json

from tests.tool_calling.calls import EMPTY, called
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallback

MONTH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "month": {"type": "integer", "minimum": 1, "maximum": 12},
        "year": {"type": "integer"},
        "calendar": {"type": "string", "enum": ["julian", "gregorian"]},
    },
    "required": ["month"],
    "additionalProperties": False,
}


def defined(function: Callable[..., Any], schema: dict[str, Any], name: str = "defined") -> FunctionToolCallback:
    return FunctionToolCallback.from_function(function, definition=ToolDefinition(name, "Do it", schema))


class Calendar:
    def days_in(self, month, year=2026):  # type: ignore[no-untyped-def]
        return f"{month} of {year}"

    def days_among(self, year=0, **others):  # type: ignore[no-untyped-def]
        return others


async def dated(day, /, **values):  # type: ignore[no-untyped-def]
    return values


async def everything(**values):  # type: ignore[no-untyped-def]
    return values


async def test_an_untyped_method_is_a_tool_and_receives_its_parameters() -> None:
    definition = ToolDefinition("daysInMonth", "Count the days of a month", MONTH)
    callback = MethodToolCallback.from_function(Calendar().days_in, definition=definition)
    assert callback.definition == definition
    assert await callback.call('{"month": 2}', EMPTY) == "2 of 2026"
    assert await callback.call('{"month": 2, "year": 2024, "calendar": "julian"}', EMPTY) == "2 of 2024"


async def test_keywords_receive_whatever_else_the_schema_allows() -> None:
    assert await defined(everything, MONTH).call('{"month": 2, "calendar": "julian"}', EMPTY) == (
        '{"month":2,"calendar":"julian"}'
    )

    async def some(month, *args, _secret="kept", **rest):  # type: ignore[no-untyped-def]
        return [month, args, _secret, rest]

    free = MONTH | {"additionalProperties": True}
    for bound, given in (
        (partial(everything, year=2026), "year"),
        (partial(partial(dated, 2026), year=1), "day"),
        (Calendar().days_among, "self"),
    ):
        forged = await defined(bound, free).call(f'{{"month": 1, "{given}": 9, "other": 2}}', EMPTY)
        assert f'"{given}":9' not in forged
        assert '"other":2' in forged
    told = await defined(some, free).call('{"month": 1, "_secret": "forged", "other": [1]}', EMPTY)
    assert told == '[1,[],"kept",{"other":[1]}]'


@pytest.mark.parametrize(
    ("arguments", "at_fault"),
    [
        ({"month": 0}, ["month"]),
        ({"month": "June"}, ["month"]),
        ({"month": 1.5}, ["month"]),
        ({"month": None}, ["month"]),
        ({"year": "none", "calendar": "lunar"}, ["month", "year", "calendar"]),
        ({"month": 1, "day": 2}, ["day"]),
    ],
)
async def test_arguments_are_checked_by_the_given_schema(arguments: dict[str, Any], at_fault: list[str]) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        await defined(everything, MONTH).call(to_json(arguments).decode(), EMPTY)
    assert {each["field"] for each in caught.value.fields} == set(at_fault)


async def test_with_a_definition_only_the_types_of_the_signature_count() -> None:
    async def visit(city: Annotated[str, Field(max_length=3)], day: datetime.date | None = None) -> str:
        return f"{city} {day!r}"

    schema = {"properties": {"city": {"type": "string"}, "day": {"type": "string"}}, "required": ["city"]}
    callback = defined(visit, schema)
    assert await callback.call('{"city": "Paris", "day": "2026-11-20"}', EMPTY) == "Paris datetime.date(2026, 11, 20)"
    with pytest.raises(ToolArgumentsError, match="day: "):
        await callback.call('{"city": "Paris", "day": "tomorrow"}', EMPTY)


async def test_a_parameter_is_matched_by_its_exposed_name() -> None:
    async def translate(from_: str, time_zone: Annotated[str, Field(alias="timeZone")] = "UTC", to: str = "en") -> str:
        return f"{from_} {to} {time_zone}"

    schema = {"properties": {"from": {"type": "string"}, "timeZone": {"type": "string"}}, "required": ["from"]}
    assert await defined(translate, schema).call('{"from": "zh", "timeZone": "CET", "to": "x"}', EMPTY) == "zh en CET"


async def test_two_names_that_differ_by_an_underscore_stay_two() -> None:
    async def both(id: int, id_: int) -> str:  # noqa: A002
        return f"{id} {id_}"

    async def one(id_: int) -> str:
        return str(id_)

    schema = {"properties": {"id": {"type": "integer"}, "id_": {"type": "integer"}}}
    assert await defined(both, schema).call('{"id": 1, "id_": 2}', EMPTY) == "1 2"
    assert await defined(one, schema).call('{"id": 1, "id_": 2}', EMPTY) == "2"


async def test_a_single_model_takes_the_whole_input_and_the_context_is_the_callers() -> None:
    class Request(BaseModel):
        city: str
        days: int = 1

    async def forecast(request: Request, context: ToolContext) -> str:
        return f"{request!r} for {context.get('tenant')}"

    schema = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
    callback = defined(forecast, schema)
    forged = '{"city": "Paris", "context": {"values": {"tenant": "victim"}}}'
    assert await callback.call(forged, ToolContext({"tenant": "acme"})) == "Request(city='Paris', days=1) for acme"
    with pytest.raises(ToolArgumentsError, match="city: Field required"):
        await callback.call('{"days": 2}', EMPTY)


async def test_among_all_other_keywords_the_context_is_still_the_callers() -> None:
    async def whose(context: ToolContext, **others: Any) -> str:
        return f"{context.get('tenant')} {others}"

    callback = defined(whose, {"type": "object"})
    forged = '{"context": {"values": {"tenant": "victim"}}, "a": 1}'
    assert await callback.call(forged, ToolContext({"tenant": "acme"})) == "acme {'a': 1}"


async def test_a_missing_required_argument_is_reported_to_the_model() -> None:
    async def days_in(month: int) -> int:
        return month

    optional = {"type": "object", "properties": {"month": {"type": "integer"}}}
    with pytest.raises(ToolArgumentsError, match="month: Field required"):
        await defined(days_in, optional).call("{}", EMPTY)
    assert await defined(days_in, {"type": "object"}).call('{"month": 3}', EMPTY) == "3"


NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/Node"}},
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^(?!x)[a-z]+$", "maxLength": 3},
                "size": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"const": "a"}, "maxItems": 2},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {}], "minItems": 2},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                "mixed": {"type": ["boolean", "string"]},
                "both": {"allOf": [{"type": "integer"}, {"minimum": 3}, {"type": "integer", "multipleOf": 2}]},
            },
            "required": ["name"],
            "additionalProperties": {"type": "integer"},
        }
    },
}


@pytest.mark.parametrize(
    "node",
    [
        {"name": "abc", "size": 1.5, "tags": ["a", "a"], "pair": [1, "x"], "mixed": True, "both": 4, "more": 1},
        {"name": "abc", "size": None, "parts": [{"name": "b", "parts": []}], "mixed": "x"},
    ],
)
async def test_references_unions_and_bounds_are_understood(node: dict[str, Any]) -> None:
    sent = to_json({"node": node}).decode()
    assert await defined(everything, NODE).call(sent, EMPTY) == sent


@pytest.mark.parametrize(
    "change",
    [
        {"name": "abcd"},
        {"name": "xa"},
        {"size": 0},
        {"size": "large"},
        {"tags": ["b"]},
        {"tags": ["a", "a", "a"]},
        {"pair": [1]},
        {"pair": ["x", 1]},
        {"parts": [{}]},
        {"mixed": [1.5]},
        {"both": 5},
        {"more": "x"},
    ],
    ids=str,
)
async def test_arguments_that_break_a_reference_union_or_bound_run_nothing(change: dict[str, Any]) -> None:
    finished = await called(defined(everything, NODE), to_json({"node": {"name": "abc"} | change}).decode())
    assert finished.error_kind == "invalid-arguments"
    assert "node." in finished.result


async def test_arguments_of_a_given_schema_are_repaired_too() -> None:
    arguments = '{"month": "6", "year": null, "calendar": "julian",}'
    finished = await called(defined(everything, MONTH), arguments)
    assert (finished.result, finished.repaired) == ('{"month":6,"calendar":"julian"}', True)


def _needs_more(month: int, day: int) -> None: ...


def _positional(month: int, /) -> None: ...


def _callable(month: Callable[[], None]) -> None: ...


@pytest.mark.parametrize(
    ("function", "schema", "told"),
    [
        (_needs_more, MONTH, "parameter day is none that the given schema allows"),
        (_positional, MONTH, "parameter month must be an ordinary or keyword parameter"),
        (_callable, MONTH, "parameter month has a type that JSON cannot carry"),
        (everything, {"properties": {"a": {"$ref": "#/$defs/A"}}}, "the given schema cannot be used: "),
        (everything, {"properties": {"a": {"type": "text"}}}, "the given schema cannot be used: "),
        (everything, {"properties": {"a": {"type": "string", "pattern": "("}}}, "the given schema cannot be used: "),
        (everything, {"properties": 5}, "the given schema cannot be used: "),
    ],
)
def test_a_function_and_a_schema_that_do_not_fit_each_other_stop_the_definition(
    function: Callable[..., Any], schema: dict[str, Any], told: str
) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        defined(function, schema, "broken")
    assert str(caught.value).startswith(f"tool broken: {told}")
