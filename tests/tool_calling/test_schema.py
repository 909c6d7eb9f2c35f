"""From signatures to schemas, and from a model's JSON to arguments: schema, validator and function say one thing."""

import datetime
import enum
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, model_validator

from tests.tool_calling.calls import EMPTY, callback_of, only, schema_of
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.schema import input_of_function
from toolchat.tool_calling.signature import docstring_summary

T = TypeVar("T")


class Store(Generic[T]):
    def put(self, item: T) -> str:
        return repr(item)


class Numbers(Store[int]): ...


def forecast(city: Annotated[str, "City name"], days: Annotated[int, Field(ge=1, le=14)] = 1) -> None:
    """Tell the weather."""


DOCSTRINGS = {
    "Google": """Do two
    things.

    Only the first paragraph counts.

    Args:
        first: how many
            of them: all.
        second (str, optional): which.
        *rest: others.

    Returns:
        Nothing.
    """,
    "NumPy": """Do two things.

    Parameters
    ----------
    first : int
        how many
        of them: all.
    second : {'x', 'y'}, optional
        which.

    Returns
    -------
    None
    """,
    "NumPy, in one entry": """Do two things.

    Parameters
    ----------
    first, second : int
        how many of them: all. which.
    """,
    "Sphinx": """Do two things.

    :param first: how many
        of them: all.
    :param str second: which.
    :type first: int
    :returns: nothing
    """,
    "Sphinx, without a blank line": """Do two things.
    :param int first: how many of them: all.
    :param second: which.
    """,
    "Google, without a blank line": """Do two things.
    Arguments:
      first: how many of them: all.
      second: which.
    """,
    "a full-width colon": """Do two things.

    Args:
        first：how many of them: all.
        second：which.
    """,
}


def aliased(time_zone: Annotated[str, Field(alias="timeZoneId", description="Zone")], from_: str) -> None: ...


def twins(id: int, id_: int, self: int, cls: int, _: int = 0) -> None: ...  # noqa: A002


def nothing() -> None: ...


def test_a_signature_becomes_an_object_schema_without_titles() -> None:
    assert input_of_function(forecast, "forecast").schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("style", DOCSTRINGS)
def test_descriptions_come_from_the_docstring_too(style: str) -> None:
    def documented(first: int, second: str = "x") -> None: ...

    documented.__doc__ = DOCSTRINGS[style]
    properties = input_of_function(documented, "documented").schema["properties"]
    assert properties["first"]["description"].startswith("how many of them: all.")
    assert properties["second"]["description"].endswith("which.")
    assert docstring_summary(documented) == "Do two things."


@pytest.mark.parametrize(
    "text",
    ["Do it.\n\nArgs:\n    - no name\n", "Do it.\n\nArgs:\n", "Do it.\n\n:param: x\n:type", "Do it.\n\n:: \n:a\n@param",
     "Do\n:func:`it`.",
     "Do it.\n\nParameters\n----------\n", "Do it.\n\nExample::\n\n    Args: x\n", "Do it.\n\nArgs:\n    a: \x00\n"],
)  # fmt: skip
def test_an_odd_docstring_is_a_description_all_the_same(text: str) -> None:
    def documented(first: int) -> None: ...

    documented.__doc__ = text
    assert input_of_function(documented, "documented").schema["properties"] == {"first": {"type": "integer"}}
    assert docstring_summary(documented).replace("`", "") == "Do it."


def test_the_names_that_the_model_sees_may_be_other_than_pythons() -> None:
    tool_input = input_of_function(aliased, "aliased")
    assert list(tool_input.schema["properties"]) == ["timeZoneId", "from"]
    assert tool_input.arguments('{"timeZoneId": "UTC", "from": "en"}') == {"time_zone": "UTC", "from_": "en"}


def test_every_parameter_of_a_plain_function_has_a_name_of_its_own() -> None:
    tool_input = input_of_function(twins, "twins")
    assert list(tool_input.schema["properties"]) == ["id", "id_", "self", "cls", "_"]
    given = {"id": 1, "id_": 2, "self": 3, "cls": 4, "_": 5}
    assert tool_input.arguments(json.dumps(given)) == given


def test_a_comma_inside_a_string_is_no_trailing_comma() -> None:
    assert input_of_function(forecast, "forecast").arguments('{"city": "a,}\\",]", }') == {"city": 'a,}",]', "days": 1}


def test_the_error_names_every_field_at_fault() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        input_of_function(forecast, "forecast").arguments('{"days": 99}')
    assert [field["field"] for field in caught.value.fields] == ["city", "days"]


def _untyped(x) -> None: ...  # type: ignore[no-untyped-def]


def _variadic(*x: int) -> None: ...


def _twice(x: int, y: Annotated[int, Field(alias="x")]) -> None: ...


def taking(annotation: Any, *default: Any) -> Callable[..., Any]:
    """A function of one parameter."""

    def function(item: Any) -> None: ...

    function.__annotations__["item"] = annotation
    function.__defaults__ = default or None
    return function


@pytest.mark.parametrize("function", [_untyped, _variadic, taking(Callable[[], None]), taking("Nowhere"), _twice])
def test_a_parameter_that_json_cannot_carry_stops_the_definition(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="tool broken: "):
        input_of_function(function, "broken")


@pytest.mark.parametrize("function", [taking(T), taking(list[T]), Store().put, Numbers().put])  # type: ignore[valid-type]
def test_a_type_variable_that_nothing_binds_stops_the_definition(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="nothing says which type ~T is"):
        input_of_function(function, "broken")


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


class Lazy(BaseModel):
    items: Iterable[int] = ()


def _buy(item: str, shop: str, unit: Color = Color.RED) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (partial(_buy, shopp="acme"), "shopp"),  # type: ignore[call-arg]
        (partial(_buy, "pen", "acme", Color.RED, 1), "too many positional"),  # type: ignore[call-arg]
        (taking(int, Field(9, le=5)), "parameter item: its own 9 is refused: "),
        (taking(Annotated[int, Field(le=50)], 100), "parameter item: its own 100 is refused: "),
        (taking(Size), r"parameter item: its own \[10, 10\] is refused: "),
        (taking(Literal[Color.RED]), "parameter item: its own 'red' is refused: "),
        (taking(list[Lazy]), r"parameter item: .*write list\[\.\.\.\]"),
        (taking(int, Field(examples=[math.inf])), "cannot be written as JSON"),
        (taking(Annotated[int, Field(ge="a")]), "parameter item has a type"),
    ],
)
def test_a_tool_that_breaks_the_contract_stops_the_definition_in_one_line(
    function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=f"^tool broken: .*{reason}") as caught:
        input_of_function(function, "broken")
    assert "\n" not in str(caught.value)


def test_none_as_the_default_of_another_type_is_no_fault() -> None:
    assert input_of_function(taking(int, None), "none").arguments('{"item": null}') == {"item": None}


@pytest.mark.parametrize(
    ("annotation", "default", "required"),
    [
        (int, (), ["item"]),
        (int, (...,), ["item"]),
        (int, (Field(...),), ["item"]),
        (Annotated[int, Field(description="a number")], (), ["item"]),
        (int, (1,), None),
        (int, (Field(1),), None),
        (list[int], (Field(default_factory=list),), None),
        (Annotated[int, Field(default=1)], (), None),
        (Annotated[int, Field(default_factory=int)], (), None),
    ],
)
def test_an_argument_is_required_unless_its_parameter_or_field_has_a_default(
    annotation: Any, default: tuple[Any, ...], required: list[str] | None
) -> None:
    tool_input = input_of_function(taking(annotation, *default), "tool")
    assert tool_input.schema.get("required") == required
    if required:
        with pytest.raises(ToolArgumentsError, match="item: Field required"):
            tool_input.arguments("{}")
    else:
        assert tool_input.arguments("{}")["item"] in (0, 1, [])


def test_a_tool_without_input_has_an_empty_object() -> None:
    assert input_of_function(nothing, "nothing").schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
