"""The types of a tool's parameters, models within models too: what a model is told, and what the tool is given."""

import datetime
import enum
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from tests.tool_calling.calls import EMPTY, Place, callback_of, schema_of
from toolchat.tool_calling.function_callback import FunctionToolCallback


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
PAIR = {"prefixItems": [NUMBER, TEXT], "items": {"anyOf": [NUMBER, TEXT]}, "minItems": 2, "maxItems": 2}
PLACE = {"properties": {"name": TEXT, "country": TEXT | {"default": "CN"}}, "required": ["name"]}
UPPER = Annotated[str, Field(pattern="^[A-Z]+$", max_length=3)]


@pytest.mark.parametrize(
    ("annotation", "schema", "sent", "given"),
    [
        (str, TEXT, '"x"', "'x'"),
        (bool, {"type": "boolean"}, "true", "True"),
        (int | None, {"anyOf": [NUMBER, {"type": "null"}]}, "null", "None"),
        (int | str, {"anyOf": [NUMBER, TEXT]}, '"x"', "'x'"),
        (Literal["C", "F"], {"type": "string", "enum": ["C", "F"]}, '"F"', "'F'"),
        (Unit, {"type": "string", "enum": ["C", "F"]}, '"C"', "<Unit.CELSIUS: 'C'>"),
        (datetime.date, TEXT | {"format": "date"}, '"2026-11-20"', "datetime.date(2026, 11, 20)"),
        (datetime.datetime, TEXT | {"format": "date-time"}, '"2026-11-20T08:00:00"',
         "datetime.datetime(2026, 11, 20, 8, 0)"),
        (datetime.timedelta, TEXT | {"format": "duration"}, '"PT10M"', "datetime.timedelta(seconds=600)"),
        (list[int], {"type": "array", "items": NUMBER}, "[1, 2]", "[1, 2]"),
        (set[int], {"type": "array", "items": NUMBER, "uniqueItems": True}, "[1, 1]", "{1}"),
        (tuple[int, str], {"type": "array"} | PAIR, '[1, "x"]', "(1, 'x')"),
        (dict[str, int], {"type": "object", "additionalProperties": NUMBER}, '{"a": 1}', "{'a': 1}"),
        (Annotated[int, Field(ge=1, lt=9)], NUMBER | {"minimum": 1, "exclusiveMaximum": 9}, "8", "8"),
        (UPPER, TEXT | {"pattern": "^[A-Z]+$", "maxLength": 3}, '"ABC"', "'ABC'"),
        (Place, {"type": "object", "additionalProperties": False} | PLACE, '{"name": "x"}',
         "Place(name='x', country='CN')"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_type_becomes_json_schema_and_values_arrive_as_that_type(
    annotation: Any, schema: dict[str, Any], sent: str, given: str
) -> None:
    assert schema_of(annotation) == schema
    assert await callback_of(annotation).call(f'{{"value": {sent}}}', EMPTY) == given


async def test_a_default_is_in_the_schema_and_applies_to_a_missing_argument() -> None:
    async def book(day: datetime.date, seats: int = 2, unit: Unit = Unit.CELSIUS, wait: str | None = None) -> str:
        return f"{seats} {unit.name} {wait}"

    callback = FunctionToolCallback.from_function(book)
    schema = callback.definition.input_schema
    assert schema["required"] == ["day"]
    defaults = {name: part.get("default", "none") for name, part in schema["properties"].items()}
    assert defaults == {"day": "none", "seats": 2, "unit": "C", "wait": None}
    assert await callback.call('{"day": "2026-11-20"}', EMPTY) == "2 CELSIUS None"


class Comment(BaseModel):
    text: str
    replies: list["Comment"] = []


@dataclass
class Branch:
    length: int
    left: "Branch | None" = None


class Parcel(BaseModel):
    sender: Place
    receiver: Place


def test_a_nested_model_is_inlined_and_one_used_twice_is_defined_once() -> None:
    def visit(place: Place | None) -> None: ...

    def send(parcel: Parcel) -> None: ...

    assert "$defs" not in FunctionToolCallback.from_function(visit).definition.input_schema
    schema = FunctionToolCallback.from_function(send).definition.input_schema
    assert list(schema["$defs"]) == ["Place"]
    assert schema["properties"]["sender"] == schema["properties"]["receiver"] == {"$ref": "#/$defs/Place"}


def test_a_union_with_a_discriminator_refers_to_nothing_that_is_missing() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]
        discriminator: int = 0

    class Dog(BaseModel):
        kind: Literal["dog"]

    schema = schema_of(Annotated[Cat | Dog, Field(discriminator="kind")])
    assert "$defs" not in str(schema)
    assert [each["properties"]["kind"]["const"] for each in schema["oneOf"]] == ["cat", "dog"]
    assert "discriminator" in schema["oneOf"][0]["properties"]


@pytest.mark.parametrize(
    ("model", "sent", "given"),
    [
        (
            Comment,
            '{"text": "a", "replies": [{"text": "b"}]}',
            "Comment(text='a', replies=[Comment(text='b', replies=[])])",
        ),
        (Branch, '{"length": 1, "left": {"length": 2}}', "Branch(length=1, left=Branch(length=2, left=None))"),
    ],
)
async def test_a_recursive_model_refers_to_itself_as_the_whole_input_and_as_a_part(
    model: Any, sent: str, given: str
) -> None:
    async def whole(value: Any) -> str:
        return repr(value)

    whole.__annotations__["value"] = model
    callback = FunctionToolCallback.from_function(whole)
    schema = callback.definition.input_schema
    assert schema["type"] == "object"
    assert list(schema["$defs"]) == [model.__name__]
    assert await callback.call(sent, EMPTY) == given
    assert schema_of(model) == {"$ref": f"#/$defs/{model.__name__}"}
    assert await callback_of(model).call(f'{{"value": {sent}}}', EMPTY) == given


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    place: Place | None = None


class Counts(RootModel[dict[str, int]]):
    """How many there are of each."""


async def test_an_open_model_is_open_at_its_root_only() -> None:
    async def keep(value: Open) -> str:
        return repr(value.model_extra)

    callback = FunctionToolCallback.from_function(keep)
    schema = callback.definition.input_schema
    assert schema["additionalProperties"] is True
    assert schema["properties"]["place"]["anyOf"][0]["additionalProperties"] is False
    assert await callback.call('{"name": "a", "color": "red"}', EMPTY) == "{'color': 'red'}"


async def test_a_mapping_as_input_describes_its_values() -> None:
    async def keep(value: Counts) -> str:
        return repr(value.root)

    callback = FunctionToolCallback.from_function(keep)
    assert callback.definition.input_schema["additionalProperties"] == {"type": "integer"}
    assert await callback.call('{"apples": 2}', EMPTY) == "{'apples': 2}"


def test_a_property_named_title_and_a_default_with_a_title_are_left_alone() -> None:
    def save(title: str, more: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006

    properties = FunctionToolCallback.from_function(save).definition.input_schema["properties"]
    assert properties["title"] == {"type": "string"}
    assert properties["more"]["default"] == {"title": "x"}


class Size(IntEnum):
    """Sizes of our shirts."""

    SMALL = 1


class Shirt(BaseModel):
    """A shirt as the shop stores it."""

    size: Size
    size_of_gift: Annotated[Size, Field(description="Its size")]
    place: Annotated[Place, Field(description="Where it lies")]


@pytest.mark.parametrize("shared", [False, True])
def test_a_docstring_of_a_class_is_not_sent_but_the_description_of_a_field_is(shared: bool) -> None:
    def order(shirt: Shirt) -> None: ...

    def exchange(one: Shirt, other: Shirt) -> None: ...

    schema = FunctionToolCallback.from_function(exchange if shared else order).definition.input_schema
    assert [text for text in ("shirt as", "Where it is.", "Sizes of") if text in str(schema)] == []
    properties = (schema["$defs"]["Shirt"] if shared else schema)["properties"]
    assert properties["place"]["description"] == "Where it lies"
    assert properties["size_of_gift"]["description"].startswith("Its size")
    assert "1 = SMALL" in str(schema)
