"""Schemas given in code or by other servers: what arguments fit them, and what the function is given."""

import datetime
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json

from tests.tool_calling.calls import EMPTY, called
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallback
from toolchat.tool_calling.given_schemas import SchemaValidator, upgraded
from toolchat.tool_calling.json_schema import normalized

INFINITE = float("inf")
CLOSED = {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^x-": {}}, "additionalProperties": False}
LAUGHING = {
    "anyOf": [{"$ref": "#/$defs/0"}],
    "$defs": {**{str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 8} for n in range(30)}, "30": {"type": "integer"}},
}
CIRCLE = {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}}
TREE = {"type": "array", "items": {"$ref": "#/properties/p"}}


# The schema of the property "p", values of it that fit, and values that do not.
ODDITIES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "number", "maximum": 1.5}, [1, 1.5, 0.7], [1.6, 2, "1"]),
    ({"type": "number", "minimum": 0.1}, [0.1, 1], [0, 0.09]),
    ({"type": "number", "multipleOf": 0.01}, [19.99, 0.07, 3, 1e15], [0.001, 19.999]),
    ({"type": "integer", "multipleOf": 2}, [4, 4.0, -2], [5, True]),
    ({"type": "integer"}, [5, 5.0], [5.5, True, "5"]),
    ({"maximum": 100, "exclusiveMaximum": True}, [50, 99.9], [100]),
    ({"maximum": 100, "exclusiveMaximum": False}, [100], [101]),
    ({"minimum": 0, "exclusiveMinimum": False}, [0], [-1]),
    ({"exclusiveMinimum": True}, [-5, 0], []),
    ({"minLength": 1.0}, ["a"], [""]),
    ({"minLength": "1", "maxLength": -1, "type": "string"}, ["", "abc"], [5]),
    ({"type": "nonsense"}, [1, "a", None], []),
    ({"type": ["string", "null"]}, ["a", None], [5]),
    ({"type": []}, [1, "a"], []),
    ({"required": False, "type": "string"}, ["a"], [5]),
    ({"required": None, "type": "string"}, ["a"], [5]),
    ({"type": "object", "properties": {"q": {"required": True}}}, [{"q": 1}], [{}]),
    (
        {"properties": {"q": {"required": True, "properties": {"r": {"required": True}}}}},
        [{"q": {"r": 1}}],
        [{"q": {}}],
    ),
    ({"type": "object", "required": ["q", "q", 5]}, [{"q": 1}], [{}]),
    ({"type": "object", "properties": {"q": True, "r": False}}, [{}, {"q": 1}], [{"r": 1}]),
    ({"type": "object", "properties": {"q": None}}, [{"q": 1}, {}], []),
    ({"type": "array"}, [[], [1, "a"]], [{}]),
    ({"type": "array", "items": True}, [[1]], [1]),
    ({"type": "array", "items": {}}, [[1]], [1]),
    ({"type": "array", "items": [{"type": "string"}]}, [["a"], ["a", 1], []], [[1]]),
    ({"type": "array", "items": [{"type": "string"}], "additionalItems": False}, [["a"]], [["a", "b"]]),
    ({"type": "array", "prefixItems": [{"type": "number"}] * 2, "maxItems": 2}, [[1, 2]], [["a"], [1, 2, 3]]),
    ({"type": "array", "prefixItems": [{"type": "string"}, {}], "items": False}, [["a", 1]], [["a", 1, 1]]),
    ({"allOf": 5, "anyOf": [], "type": "string"}, ["a"], [5]),
    ({"anyOf": [True, {"type": "string"}]}, ["a", 5], []),
    ({"default": INFINITE, "type": "number"}, [1], []),
    ({"maximum": INFINITE, "multipleOf": 0}, [1], []),
    ({"enum": "ab", "const": "a"}, ["a"], ["b"]),
    ({"type": "string", "pattern": "("}, ["a"], [5]),
    ({"type": "string", "pattern": 5, "format": 5, "description": 5}, ["a"], [5]),
    ({"$ref": "http://127.0.0.1:9/schema"}, [1, "a"], []),
    ({"$ref": "#/$defs/gone"}, [1], []),
    ({"$ref": "#/properties/p"}, [1], []),
    ({"$ref": 5, "type": "string"}, ["a"], [5]),
    ({"$ref": "#foo", "type": "integer", "$defs": {"x": {"$anchor": "foo", "type": "string"}}}, [5], ["a"]),
    ({"$dynamicRef": "#foo", "type": "integer"}, [5], ["a"]),
    ({"type": "string", "nullable": True}, ["a", None], [5]),
    ({"type": "string", "nullable": False}, ["a"], [None]),
    ({"type": "string", "pattern": "^(a+)+$"}, ["aaa"], ["a" * 60 + "b"]),
    ({"type": "string", "pattern": "^(?!x)"}, ["a"], ["x"]),
    (
        {"$id": "http://elsewhere/", "items": {"$ref": "#/properties/p/not"}, "not": {"type": "string"}},
        [["a"]],
        ["a", [5]],
    ),
    (TREE, [[], [[], [[]]]], [5, [[5]]]),
    ({"uniqueItems": True, "unevaluatedItems": False}, [[{}, {}], [1, 1]], []),
    (CLOSED, [{"a": 1, "x-b": 1}, {}], [{"b": 1}, {"a": "b"}]),
    ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "b"}]),
    ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["ab", 1], ["a"]),
]


def around(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"p": schema}}


def fits(schema: dict[str, Any], value: Any) -> bool:
    try:
        return bool(SchemaValidator(schema).validate_json(json.dumps(value)) == value)
    except ValidationError:
        return False


@pytest.mark.parametrize(("schema", "right", "wrong"), ODDITIES, ids=repr)
def test_an_odd_schema_accepts_right_values_and_refuses_wrong_ones(
    schema: dict[str, Any], right: list[Any], wrong: list[Any]
) -> None:
    converted = upgraded(around(schema))
    assert [each for each in right if not fits(converted, {"p": each})] == []
    assert [each for each in wrong if fits(converted, {"p": each})] == []


@pytest.mark.parametrize("schema", [each for each, _, _ in ODDITIES] + [LAUGHING, CIRCLE], ids=repr)
def test_every_provider_accepts_an_odd_schema(schema: dict[str, Any]) -> None:
    for whole in (around(schema), schema):
        before = repr(whole)
        sent = normalized(upgraded(whole))
        Draft202012Validator.check_schema(sent)
        json.dumps(sent, allow_nan=False)
        assert list(faults(sent)) == []
        assert not {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} & sent.keys()
        assert isinstance(sent["properties"], dict)
        assert normalized(sent) == sent
        assert repr(whole) == before


def faults(part: Any) -> Iterator[str]:
    """What OpenAI refuses anywhere in a schema."""
    if isinstance(part, list):
        yield from (fault for each in part for fault in faults(each))
    if isinstance(part, dict):
        if part.get("type") == "array" and not isinstance(part.get("items"), dict):
            yield "array schema missing items"
        if part.get("additionalProperties") is False and "properties" not in part:
            yield "object schema missing properties"
        yield from (fault for each in part.values() for fault in faults(each))


def test_a_root_that_is_a_union_offers_what_any_member_takes_and_one_of_parts_requires_what_they_do() -> None:
    a, b = {"const": "a"}, {"const": "b"}
    members = [{"properties": {"by": a, "x": {}}}, {"properties": {"by": b}}]
    assert normalized({"oneOf": members})["properties"] == {"by": {"anyOf": [a, b]}, "x": {}}
    parts = [{"properties": {"p": a}, "required": ["p"]}, {"anyOf": members, "required": ["x"]}]
    assert normalized({"allOf": parts, "required": ["q"]})["required"] == ["q", "p"]


def test_the_items_of_a_full_tuple_are_those_of_its_places() -> None:
    number, text = {"type": "number"}, {"type": "string"}
    pair = {"type": "array", "prefixItems": [number, number], "maxItems": 2}
    mixed = {"type": "array", "prefixItems": [number, text], "maxItems": 2}
    shown = normalized({"properties": {"pair": pair, "mixed": mixed}})["properties"]
    assert (shown["pair"]["items"], shown["mixed"]["items"]) == (number, {"anyOf": [number, text]})


def test_references_that_multiply_or_lead_in_a_circle_end() -> None:
    converted = upgraded({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": LAUGHING["$defs"]})
    assert fits(converted, {"p": 5})
    assert not fits(converted, {"p": "five"})
    itself = {"properties": {"p": {"allOf": [{"$ref": "#/properties/p"}, {"type": "integer"}]}}}
    assert fits(upgraded(itself), {"p": 5})
    assert not fits(upgraded(itself), {"p": "five"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "EOF while parsing"),
        ('{"p": NaN}', "expected value"),
        ('{"p": 1e999}', "1e999 is too large"),
        ("[]", "Input should be an object"),
        (json.dumps({"p": [0] * 30_000}), "it has more than 20000 values"),
        ('{"p": ' + "[" * 190 + "]" * 190 + "}", "it is nested too deeply"),
        (json.dumps({"q": "x" * 1000}), "does not fit"),
    ],
)
def test_text_that_cannot_be_validated_is_refused(text: str, problem: str) -> None:
    tree = {"items": {"allOf": [{"allOf": [{"allOf": [{"$ref": "#/properties/p"}]}]}]}}
    schema = {"properties": {"p": tree, "q": {"maxLength": 5}}}
    with pytest.raises(ValidationError, match=problem):
        SchemaValidator(schema).validate_json(text)


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


async def test_among_all_other_keywords_the_context_is_still_the_callers() -> None:
    async def whose(context: ToolContext, **others: Any) -> str:
        return f"{context.get('tenant')} {others}"

    forged = '{"context": {"values": {"tenant": "victim"}}, "a": 1}'
    assert await defined(whose, {"type": "object"}).call(forged, ToolContext({"tenant": "acme"})) == "acme {'a': 1}"


async def test_an_error_names_the_place_within_what_was_sent() -> None:
    schema = {
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"properties": {"both": {"maximum": 4}}}},
    }
    with pytest.raises(ToolArgumentsError) as caught:
        await defined(everything, schema).call('{"node": {"both": 5}}', EMPTY)
    assert [each["field"] for each in caught.value.fields] == ["node.both"]


async def test_a_missing_required_argument_is_reported_to_the_model() -> None:
    async def days_in(month: int) -> int:
        return month

    optional = {"type": "object", "properties": {"month": {"type": "integer"}}}
    with pytest.raises(ToolArgumentsError, match="month: Field required"):
        await defined(days_in, optional).call("{}", EMPTY)
    assert await defined(days_in, {"type": "object"}).call('{"month": 3}', EMPTY) == "3"


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_a_union_at_the_root_shows_the_properties_of_its_members(keyword: str) -> None:
    members = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}]
    schema = {keyword: members, "$defs": {"b": {"properties": {"b": {"type": "integer"}}}}}
    assert normalized(schema)["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
