"""Defining tools: what may be written, and what a model is then told."""

import datetime
import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata
from app.tool_calling.errors import ToolArgumentsError
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.method_callback import MethodToolCallback, MethodToolCallbackProvider

EMPTY = ToolContext()


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Place(BaseModel):
    """Where it is."""

    name: str
    country: str = "CN"


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


class Letter(BaseModel):
    to: Place
    title: str = "none"


def read_only(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of one's own: a tool that answers at once."""
    return tool(timeout=1, return_direct=True, **options)


def schema_of(annotation: Any) -> dict[str, Any]:
    """The schema of a tool's one parameter ``value``, and of nothing else."""
    return dict(callback_of(annotation).definition.input_schema["properties"]["value"])


def callback_of(annotation: Any) -> FunctionToolCallback:
    """A tool that takes ``value`` and ``other`` and tells what Python was given as ``value``."""

    async def told(value: Any, other: int = 0) -> str:
        return repr(value)

    told.__annotations__["value"] = annotation
    return FunctionToolCallback.of(told)


async def test_a_marked_function_is_a_tool_with_what_the_mark_says() -> None:
    @tool(name="getTime", description="Tell the time", return_direct=True, timeout=2)
    def now() -> str:
        return "12:00"

    callback = FunctionToolCallback.of(now)
    assert (callback.definition.name, callback.definition.description) == ("getTime", "Tell the time")
    assert callback.metadata == ToolMetadata(return_direct=True, timeout=2)
    assert now() == "12:00", "a marked function stays a function"


async def test_a_mark_without_parentheses_marks_functions_methods_and_classes() -> None:
    """``@tool`` is ``@tool()``: what is marked stays what it is, and says everything about itself."""

    @tool
    async def now(zone: str) -> str:
        """Tell the time."""
        return zone

    class Clock:
        @tool
        def later(self) -> str:
            """Tell the time of later."""
            return "13:00"

    @tool
    class Reader:
        """Read."""

        def __call__(self) -> str:
            return "read"

    (later,) = MethodToolCallbackProvider(Clock()).tool_callbacks()
    made = [FunctionToolCallback.of(now), later, FunctionToolCallback.of(Reader())]
    assert [(each.definition.name, each.definition.description) for each in made] == [
        ("now", "Tell the time."),
        ("later", "Tell the time of later."),
        ("Reader", "Read."),
    ]
    assert await made[0].call('{"zone": "UTC"}', EMPTY) == "UTC"
    assert [await each.call("", EMPTY) for each in made[1:]] == ["13:00", "read"]


async def test_what_is_given_in_code_wins_over_the_mark() -> None:
    @tool(name="marked", description="marked")
    def function() -> None: ...

    callback = FunctionToolCallback.of(function, name="given", description="given", metadata=ToolMetadata(timeout=3))
    assert (callback.definition.name, callback.definition.description) == ("given", "given")
    assert callback.metadata.timeout == 3


async def test_a_decorator_of_ones_own_can_be_built_on_tool() -> None:
    class Clock:
        @read_only(name="getTime", description="Tell the time")
        def now(self) -> str:
            return "12:00"

    (callback,) = MethodToolCallbackProvider(Clock()).tool_callbacks()
    assert callback.definition.name == "getTime"
    assert callback.metadata == ToolMetadata(return_direct=True, timeout=1)
    assert await callback.call("", EMPTY) == "12:00"


async def test_a_mark_below_another_decorator_is_still_seen_and_so_are_the_parameters() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return f"logged {function(*args, **kwargs)}"

        return wrapper

    @logged
    @tool(name="double")
    def twice(number: int) -> int:
        return 2 * number

    callback = FunctionToolCallback.of(twice)
    assert callback.definition.name == "double"
    assert await callback.call('{"number": 2}', EMPTY) == "logged 4"


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("kind", "tool_input", "result"),
    [
        ("function", '{"name": "杭州"}', "杭州, CN"),
        ("plain", '{"name": "杭州", "country": "x"}', "杭州, x"),
        ("with context", '{"name": "杭州"}', "杭州 of acme"),
        ("supplier", "", "supplied"),
        ("consumer", '{"name": "杭州"}', "Done"),
    ],
)
async def test_every_kind_of_function_can_be_a_tool(
    kind: str, tool_input: str, result: str, asynchronous: bool
) -> None:
    seen: list[Place] = []

    def function(place: Place) -> str:
        return f"{place.name}, {place.country}"

    def plain(name: str, country: str) -> str:
        return f"{name}, {country}"

    def with_context(place: Place, context: ToolContext) -> str:
        return f"{place.name} of {context.get('tenant')}"

    def supplier() -> str:
        return "supplied"

    def consumer(place: Place) -> None:
        seen.append(place)

    kinds: dict[str, Callable[..., Any]] = {
        "function": function,
        "plain": plain,
        "with context": with_context,
        "supplier": supplier,
        "consumer": consumer,
    }
    chosen = kinds[kind]
    callback = FunctionToolCallback.of(_as_async(chosen) if asynchronous else chosen, name="it", description="It")
    assert await callback.call(tool_input, ToolContext({"tenant": "acme"})) == result
    assert seen == ([Place(name="杭州")] if kind == "consumer" else [])


def _as_async(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(**arguments: Any) -> Any:
        return function(**arguments)

    return run


async def test_a_callable_object_is_a_tool_by_its_class() -> None:
    @tool(description="Greet")
    class Greeter:
        async def __call__(self, name: str) -> str:
            return f"Hello {name}"

    callback = FunctionToolCallback.of(Greeter())
    assert (callback.definition.name, callback.definition.description) == ("Greeter", "Greet")
    assert await callback.call('{"name": "Ann"}', EMPTY) == "Hello Ann"


async def test_any_method_becomes_a_tool_by_a_definition_given_in_code() -> None:
    class Calendar:
        def days_in(self, month, year=2026):  # type: ignore[no-untyped-def]
            return 28 if month == 2 else 31

    class Typed:
        def days_in(self, month: int) -> int:
            return 28 if month == 2 else 31

    definition = ToolDefinition(
        "daysInMonth",
        "Count the days of a month",
        {"type": "object", "properties": {"month": {"type": "integer", "minimum": 1}}, "required": ["month"]},
    )
    callback = MethodToolCallback.of(Typed().days_in, definition=definition)
    assert callback.definition is definition
    assert await callback.call('{"month": 2}', EMPTY) == "28"
    with pytest.raises(Exception, match="tool daysInMonth: parameter month has no type"):
        MethodToolCallback.of(Calendar().days_in, definition=definition)


@pytest.mark.parametrize(
    ("annotation", "schema", "sent", "given"),
    [
        (str, {"type": "string"}, '"x"', "'x'"),
        (bool, {"type": "boolean"}, "true", "True"),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", "None"),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, '"x"', "'x'"),
        (Literal["C", "F"], {"type": "string", "enum": ["C", "F"]}, '"F"', "'F'"),
        (Unit, {"type": "string", "enum": ["C", "F"]}, '"C"', "<Unit.CELSIUS: 'C'>"),
        (
            datetime.date,
            {"type": "string", "format": "date"},
            '"2026-11-20"',
            "datetime.date(2026, 11, 20)",
        ),
        (
            datetime.datetime,
            {"type": "string", "format": "date-time"},
            '"2026-11-20T08:00:00"',
            "datetime.datetime(2026, 11, 20, 8, 0)",
        ),
        (
            datetime.timedelta,
            {"type": "string", "format": "duration"},
            '"PT10M"',
            "datetime.timedelta(seconds=600)",
        ),
        (list[int], {"type": "array", "items": {"type": "integer"}}, "[1, 2]", "[1, 2]"),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1, 1]", "{1}"),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
            '[1, "x"]',
            "(1, 'x')",
        ),
        (
            dict[str, int],
            {"type": "object", "additionalProperties": {"type": "integer"}},
            '{"a": 1}',
            "{'a': 1}",
        ),
        (Annotated[int, Field(ge=1, lt=9)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, "8", "8"),
        (
            Annotated[str, Field(pattern="^[A-Z]+$", max_length=3)],
            {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 3},
            '"ABC"',
            "'ABC'",
        ),
        (
            Place,
            {
                "type": "object",
                "description": "Where it is.",
                "properties": {"name": {"type": "string"}, "country": {"type": "string", "default": "CN"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            '{"name": "x"}',
            "Place(name='x', country='CN')",
        ),
    ],
    ids=str,
)
async def test_a_type_is_told_as_json_schema_and_a_value_arrives_as_that_type(
    annotation: Any, schema: dict[str, Any], sent: str, given: str
) -> None:
    assert schema_of(annotation) == schema
    assert await callback_of(annotation).call(f'{{"value": {sent}}}', EMPTY) == given


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (bool, '"perhaps"'),
        (int, "1.5"),
        (Literal["C", "F"], '"K"'),
        (Unit, '"K"'),
        (datetime.date, '"tomorrow"'),
        (datetime.timedelta, '"soon"'),
        (set[int], '{"a": 1}'),
        (tuple[int, str], "[1]"),
        (Annotated[int, Field(ge=1, lt=9)], "9"),
        (Annotated[str, Field(pattern="^[A-Z]+$")], '"abc"'),
        (Place, "{}"),
        (str, "null"),
    ],
    ids=str,
)
async def test_a_value_outside_its_type_never_reaches_the_tool(annotation: Any, sent: str) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        await callback_of(annotation).call(f'{{"value": {sent}}}', EMPTY)
    assert caught.value.fields[0]["field"].startswith("value")


async def test_a_default_is_told_to_the_model_and_taken_when_the_argument_is_missing() -> None:
    async def book(day: datetime.date, seats: int = 2, unit: Unit = Unit.CELSIUS, wait: str | None = None) -> str:
        return f"{seats} {unit.name} {wait}"

    callback = FunctionToolCallback.of(book)
    schema = callback.definition.input_schema
    assert schema["required"] == ["day"]
    defaults = {name: part.get("default", "none") for name, part in schema["properties"].items()}
    assert defaults == {"day": "none", "seats": 2, "unit": "C", "wait": None}
    assert await callback.call('{"day": "2026-11-20"}', EMPTY) == "2 CELSIUS None"


def test_a_nested_model_that_is_used_once_stands_where_it_is_used() -> None:
    def post(letter: Letter) -> None: ...

    schema = FunctionToolCallback.of(post).definition.input_schema
    assert "$defs" not in schema
    assert schema["properties"]["to"]["properties"]["name"] == {"type": "string"}


def test_a_nested_model_that_is_used_twice_is_told_once() -> None:
    def send(parcel: Parcel) -> None: ...

    schema = FunctionToolCallback.of(send).definition.input_schema
    assert list(schema["$defs"]) == ["Place"]
    assert schema["properties"]["sender"] == schema["properties"]["receiver"] == {"$ref": "#/$defs/Place"}


@pytest.mark.parametrize(
    ("model", "sent", "given"),
    [
        (
            Comment,
            '{"text": "a", "replies": [{"text": "b"}]}',
            "Comment(text='a', replies=[Comment(text='b', replies=[])])",
        ),
        (
            Branch,
            '{"length": 1, "left": {"length": 2}}',
            "Branch(length=1, left=Branch(length=2, left=None))",
        ),
    ],
)
async def test_a_recursive_model_refers_to_itself_as_the_whole_input_and_as_a_part(
    model: Any, sent: str, given: str
) -> None:
    async def whole(value: Any) -> str:
        return repr(value)

    whole.__annotations__["value"] = model
    callback = FunctionToolCallback.of(whole)
    schema = callback.definition.input_schema
    assert schema["type"] == "object"
    assert list(schema["$defs"]) == [model.__name__]
    assert await callback.call(sent, EMPTY) == given
    assert schema_of(model) == {"$ref": f"#/$defs/{model.__name__}"}
    assert await callback_of(model).call(f'{{"value": {sent}}}', EMPTY) == given


def _objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for each in schema for found in _objects(each)]
    if not isinstance(schema, dict):
        return []
    return [schema] * ("properties" in schema) + [found for each in schema.values() for found in _objects(each)]


@pytest.mark.parametrize("annotation", [Comment, Branch, Parcel, list[Letter], dict[str, Place], Place | None], ids=str)
def test_every_object_at_every_level_is_closed(annotation: Any) -> None:
    objects = _objects(callback_of(annotation).definition.input_schema)
    assert len(objects) > 1
    assert all(each["additionalProperties"] is False for each in objects)


def test_a_property_named_title_and_a_default_with_a_title_are_left_alone() -> None:
    def save(title: str, more: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006

    properties = FunctionToolCallback.of(save).definition.input_schema["properties"]
    assert properties["title"] == {"type": "string"}
    assert properties["more"]["default"] == {"title": "x"}


async def test_names_and_descriptions_may_be_chinese() -> None:
    @tool(name="查询天气")
    async def forecast(城市: Annotated[str, "城市名"], 天数: int = 1) -> str:
        """查询某个城市的天气。"""
        return f"{城市}{天数}天"

    callback = FunctionToolCallback.of(forecast)
    assert (callback.definition.name, callback.definition.description) == ("查询天气", "查询某个城市的天气。")
    assert callback.definition.input_schema["properties"]["城市"] == {"type": "string", "description": "城市名"}
    assert await callback.call('{"城市": "北京"}', EMPTY) == "北京1天"


async def test_the_schema_is_made_once_and_calls_leave_it_as_it_is() -> None:
    callback = callback_of(Parcel)
    before = callback.definition.input_schema
    for _ in range(3):
        await callback.call('{"value": {"sender": {"name": "a"}, "receiver": {"name": "b"}}}', EMPTY)
    assert callback.definition.input_schema is before
    assert callback.in_sandbox().definition.input_schema is before
