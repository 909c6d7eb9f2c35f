"""What a schema says, what the validator accepts and what the function receives are one thing."""

import datetime
import enum
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, model_validator

from tests.tool_calling.calls import EMPTY, callback_of, only, schema_of
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.schema import input_of_function


class Color(enum.Enum):
    RED = "red"


class Size(enum.Enum):
    SMALL = (10, 10)
    LARGE = (20, 20)


class Filter(BaseModel):
    status: str = "any"
    days: int = 0


@dataclass
class Plan:
    days: Annotated[int, "number of days"]
    place: str = ""
    number: int = field(default=7, init=False)
    _token: list[str] = field(default_factory=lambda: ["internal"])


class Period(BaseModel):
    start: int
    end: int

    @model_validator(mode="after")
    def _in_order(self) -> "Period":
        if self.end < self.start:
            raise ValueError("end must not be before start")
        return self


@dataclass
class Range:
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end must not be before start")


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


def given(filters: Filter) -> str:
    return repr(filters)


def with_field(
    text: str = Field("open", description="Which", max_length=9),
    number: int = Field(10, le=50),
    names: list[str] = Field(default_factory=lambda: ["a"]),
    other: str = Field(alias="otherName"),
) -> str:
    return f"{text} {number} {names} {other}"


async def test_a_field_as_a_default_is_read_as_in_a_class() -> None:
    callback = FunctionToolCallback.from_function(with_field)
    assert callback.definition.input_schema["required"] == ["otherName"]
    assert callback.definition.input_schema["properties"] == {
        "text": {"type": "string", "default": "open", "description": "Which", "maxLength": 9},
        "number": {"type": "integer", "default": 10, "maximum": 50},
        "names": {"type": "array", "items": {"type": "string"}},
        "otherName": {"type": "string"},
    }
    assert await callback.call('{"otherName": "b"}', EMPTY) == "open 10 ['a'] b"
    with pytest.raises(ToolArgumentsError, match="number"):
        await callback.call('{"otherName": "b", "number": 99}', EMPTY)


def test_a_field_as_a_default_is_refused_beside_a_given_schema() -> None:
    definition = ToolDefinition("t", "t", {"type": "object", "properties": {"otherName": {"type": "string"}}})
    with pytest.raises(ToolDefinitionError, match="parameter text: its Field has no effect"):
        FunctionToolCallback.from_function(with_field, definition=definition)


@pytest.mark.parametrize("default", [math.inf, -math.inf, math.nan, [math.inf]], ids=str)
async def test_a_default_that_json_cannot_carry_is_not_in_the_schema_but_applies(default: Any) -> None:
    async def find(limit: float | list[float] = default) -> str:
        return repr(limit)

    callback = FunctionToolCallback.from_function(find)
    assert "default" not in callback.definition.input_schema["properties"]["limit"]
    assert await callback.call("", EMPTY) == repr(default)


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (Filter, '{"older": 1}'),
        (Plan, '{"days": 1, "older": 1}'),
        (Plan, '{"days": 1, "_token": []}'),
        (Plan, '{"days": 1, "number": 1}'),
        (list[Filter], '[{"older": 1}]'),
        (dict[str, Plan], '{"a": {"days": 1, "number": 1}}'),
        (Open, '{"filters": {"older": 1}}'),
    ],
)
async def test_a_property_that_the_schema_forbids_is_refused_at_every_level(kind: Any, sent: str) -> None:
    class Deep(Open):
        filters: Filter = Filter()

    with pytest.raises(ToolArgumentsError):
        await callback_of(Deep if kind is Open else kind).call(f'{{"value": {sent}}}', EMPTY)


async def test_a_type_that_allows_other_properties_receives_them_beside_one_that_does_not() -> None:
    class Deep(Open):
        filters: Filter = Filter()

    assert await callback_of(Deep).call('{"value": {"note": 1}}', EMPTY) == (
        "Deep(filters=Filter(status='any', days=0), note=1)"
    )


async def test_a_type_that_says_so_itself_ignores_other_properties() -> None:
    class Lenient(BaseModel):
        model_config = ConfigDict(extra="ignore")
        filters: Filter = Filter()

    callback = callback_of(Lenient)
    assert schema_of(Lenient)["additionalProperties"] is True
    assert await callback.call('{"value": {"note": 1}}', EMPTY) == "Lenient(filters=Filter(status='any', days=0))"
    with pytest.raises(ToolArgumentsError):
        await callback.call('{"value": {"filters": {"note": 1}}}', EMPTY)


async def test_an_input_within_the_name_of_its_parameter_is_unwrapped_as_a_repair() -> None:
    finished = await only(("given", '{"filters": {"status": "new", "days": 3}}'), tools=[given])
    assert finished.repaired
    assert finished.result == "Filter(status='new', days=3)"
    assert (await only(("given", '{"other": {"days": 3}}'), tools=[given])).error_kind == "invalid-arguments"


async def test_a_model_with_a_default_of_its_own_is_an_ordinary_parameter() -> None:
    def given(filters: Filter = Filter(status="open", days=30)) -> str:
        return repr(filters)

    callback = FunctionToolCallback.from_function(given)
    assert callback.definition.input_schema["properties"]["filters"]["default"] == {"status": "open", "days": 30}
    assert await callback.call("{}", EMPTY) == "Filter(status='open', days=30)"


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (RootModel[list[str]], '["a"]'),
        (RootModel[int], "1"),
        (RootModel[Annotated[Cat | Dog, Field(discriminator="kind")]], '{"kind": "dog", "age": 1}'),
    ],
    ids=["list", "number", "union"],
)
async def test_a_root_model_that_is_no_object_is_an_ordinary_parameter(kind: Any, sent: str) -> None:
    def given(value: Any) -> str:
        return repr(value.root)

    given.__annotations__["value"] = kind
    callback = FunctionToolCallback.from_function(given)
    assert [*callback.definition.input_schema["properties"]] == ["value"]
    assert not (await callback.result(f'{{"value": {sent}}}', EMPTY)).repaired


async def test_the_default_of_a_secret_is_not_shown() -> None:
    async def open_door(code: SecretStr = SecretStr("4711")) -> str:
        return code.get_secret_value()

    callback = FunctionToolCallback.from_function(open_door)
    assert "default" not in callback.definition.input_schema["properties"]["code"]
    assert await callback.call("{}", EMPTY) == "4711"


@pytest.mark.parametrize("kind", [Period, Range])
def test_a_rule_across_fields_says_what_is_wrong(kind: Any) -> None:
    def span(span: Any) -> None: ...

    span.__annotations__["span"] = kind
    with pytest.raises(ToolArgumentsError) as caught:
        input_of_function(span, "span").arguments('{"start": 2, "end": 1}')
    assert caught.value.message == "Value error, end must not be before start"
    with pytest.raises(ToolArgumentsError, match="must be one JSON object"):
        input_of_function(span, "span").arguments("[]")


@pytest.mark.parametrize(
    ("kind", "sent", "received"),
    [
        (Iterable[int], "[1, 2]", "[1, 2]"),
        (datetime.date | int, "5", "5"),
        (datetime.date, '"2026-11-20"', "datetime.date(2026, 11, 20)"),
        (Annotated[bytes, Field(max_length=2, min_length=2)], '"aGk="', "b'hi'"),
        (Decimal, "12345678901234567.89", "Decimal('12345678901234567.89')"),
        (bytes, '"aGVsbG8"', "b'hello'"),
        (list[Decimal | None], "[0.1, 12345678901234567.89]", "[Decimal('0.1'), Decimal('12345678901234567.89')]"),
        (bytes, '"aGVsbG8="', "b'hello'"),
        (bytes, '"-_8="', r"b'\xfb\xff'"),
        (bytes, '"+/8="', r"b'\xfb\xff'"),
        (Annotated[str, Field(pattern=r"^(?!x)")], '"abc"', "'abc'"),
    ],
    ids=str,
)
async def test_a_value_of_the_schema_reaches_the_function_as_its_type(kind: Any, sent: str, received: str) -> None:
    assert await callback_of(kind).call(f'{{"value": {sent}}}', EMPTY) == received
    assert "x-" not in json.dumps(schema_of(kind))


@pytest.mark.parametrize(
    ("kind", "sent", "reason"),
    [
        (Iterable[int], '[1, "x"]', "value.1: "),
        (bytes, '"no base64!"', "base64"),
        (datetime.datetime, '"20240101"', "20240101 is no date-time: write it as in ISO 8601"),
        (datetime.datetime, "1700000000.5", "is no date-time"),
        (datetime.date | None, "0", "is no date"),
        (list[datetime.time], '["12"]', "is no time"),
        (Annotated[str, Field(pattern=r"^(?!x)")], '"xyz"', "match pattern"),
    ],
    ids=str,
)
async def test_any_other_value_is_refused_before_the_function_runs(kind: Any, sent: str, reason: str) -> None:
    with pytest.raises(ToolArgumentsError, match=reason):
        await callback_of(kind).call(f'{{"value": {sent}}}', EMPTY)


async def test_a_dataclass_shows_its_described_arguments_and_hides_the_others() -> None:
    def plan(plan: Plan) -> str:
        """Plan a trip.

        Args:
            place: where to
        """
        return repr(plan)

    callback = FunctionToolCallback.from_function(plan)
    assert callback.definition.input_schema["properties"] == {
        "days": {"type": "integer", "description": "number of days"},
        "place": {"type": "string", "default": "", "description": "where to"},
    }
    assert await callback.call('{"days": 1}', EMPTY) == "Plan(days=1, place='', number=7, _token=['internal'])"
