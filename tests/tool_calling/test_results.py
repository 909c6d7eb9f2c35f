"""From what a tool returns to what a model is told: text, JSON, its schema, and never too much of it."""

import base64
import datetime
import decimal
import itertools
import sqlite3
import threading
import typing
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import attrs
import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic_core import from_json, to_json

from tests.tool_calling.calls import EMPTY, Place, only
from toolchat.models.openai.mapping import map_tool_definition
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import ToolAnswer, convert_result, quoted_result, shorten, truncate

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@dataclass
class Point:
    x: int
    y: int


@attrs.define
class Parcel:
    at: Any
    _code: str


@dataclass
class Account:
    name: str
    _token: str = "secret"
    _parent: "Account | None" = None


class Stock(NamedTuple):
    item: str
    owner: Any


class Bank(BaseModel):
    accounts: list[Stock] = Field(serialization_alias="theAccounts")
    _key: str = "secret"


@dataclass
class Counted:
    stocks: dict[str, Stock]


def _rows() -> list[sqlite3.Row]:
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    return database.execute("SELECT 7 AS id, 'pen' AS item").fetchall()


def _cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "null"),
        ("北京", "北京"),
        ("\ud800", "?"),
        ({"城市": "北京"}, '{"城市":"北京"}'),
        ([1, 2.5, True, None], "[1,2.5,true,null]"),
        ({1}, "[1]"),
        (datetime.date(2026, 11, 20), '"2026-11-20"'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (b"\xff", '"_w=="'),
        (float("nan"), "null"),
        ({"bad": "\ud800", "rate": float("inf")}, '{"bad":"?","rate":null}'),
        ([Stock("a", Account("b"))], '[{"item":"a","owner":{"name":"b"}}]'),
        ({"rows": _rows()}, '{"rows":[{"id":7,"item":"pen"}]}'),
        (Counted({"a": Stock("a", Account("b"))}), '{"stocks":{"a":{"item":"a","owner":{"name":"b"}}}}'),
        ({"bad": "\ud800", "day": datetime.date(2026, 11, 20)}, '{"bad":"?","day":"2026-11-20"}'),
        (Place(name="杭州"), '{"name":"杭州","country":"CN"}'),
        (Point(1, 2), '{"x":1,"y":2}'),
        ([Parcel(Point(1, 2), "secret")], '[{"at":{"x":1,"y":2}}]'),
        (Account("a"), '{"name":"a"}'),
        ({1: [Account("a"), (Account("北京"),)]}, '{"1":[{"name":"a"},[{"name":"北京"}]]}'),
        (Bank(accounts=[Stock("a", Point(1, 2))]), '{"theAccounts":[["a",{"x":1,"y":2}]]}'),
        (RootModel[list[Point]]([Point(1, 2)]), '[{"x":1,"y":2}]'),
        (Parcel(deque([Account("\ud800")]), "secret"), '{"at":[{"name":"?"}]}'),
        (MappingProxyType({"a": {1: 2}.values()}), '{"a":[2]}'),
    ],
)
def test_every_value_with_a_json_form_becomes_text(result: object, text: str) -> None:
    assert convert_result(result) == text


class Order:
    """An ordinary object: nothing says what of it is meant for others."""

    def __init__(self) -> None:
        self.number, self.password = 7, "secret"


@pytest.mark.parametrize(
    ("result", "type_name"),
    [
        (Order(), "Order"),
        ([Order()], "Order"),
        ({"orders": {"first": Order()}}, "Order"),
        (Parcel(Order(), "x"), "Order"),
        ({"lock": threading.Lock()}, "lock"),
        (_cycle(), "list"),
    ],
)
async def test_a_result_without_a_json_form_is_an_error_and_logged_with_its_type(
    result: object, type_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def give() -> Any:
        return result

    finished = await only(("give", ""), tools=[give])
    assert (finished.outcome, finished.error_kind) == ("error", "tool-result")
    assert finished.result == '{"error":{"kind":"tool-result","message":"the tool failed"}}'
    (record,) = caplog.records
    assert (vars(record)["tool"], vars(record)["result_type"]) == ("give", type_name)


async def _find() -> dict[str, int] | None:
    return None


async def _forget() -> None: ...


async def _unsaid():  # type: ignore[no-untyped-def]
    return None


def _forget_blocking() -> None: ...


class _Forgetting:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "told", "quoted"),
    [
        (_find, "null", "null"),
        (_unsaid, "null", "null"),
        (_forget, "Done", '"Done"'),
        (_forget_blocking, "Done", '"Done"'),
        (_Forgetting(), "Done", '"Done"'),
    ],
)
async def test_none_becomes_done_only_for_functions_annotated_with_none(
    function: Callable[..., Any], told: str, quoted: str
) -> None:
    assert await FunctionToolCallback.from_function(function).call("", EMPTY) == told
    assert await FunctionToolCallback.from_function(function, result_converter=quoted_result).call("", EMPTY) == quoted
    own = FunctionToolCallback.from_function(_find, result_converter=lambda result: f"found {result}")
    assert await own.call("", EMPTY) == "found None"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("text", '"text"'),
        ("12:00", '"12:00"'),
        ('{"a": "b"}', '{"a": "b"}'),
        ("[1, 2]", "[1, 2]"),
        ("true story", '"true story"'),
        ("NaN", '"NaN"'),
        (None, "null"),
        ({"a": 1}, '{"a":1}'),
        (datetime.date(2026, 11, 20), '"2026-11-20"'),
    ],
)
async def test_a_tool_may_quote_its_text_as_spring_ai_does(result: object, told: str) -> None:
    @tool(result_converter=quoted_result)
    async def give() -> object:
        return result

    assert (await only(("give", ""), tools=[give])).result == told


async def test_a_converter_that_fails_is_a_tool_that_fails() -> None:
    @tool(result_converter=lambda result: result.nothing)
    async def give() -> int:
        return 1

    assert (await only(("give", ""), tools=[give])).error_kind == "failed"


async def test_the_bytes_of_an_image_become_its_type_and_data() -> None:
    async def draw() -> bytes:
        return PNG

    told = from_json((await only(("draw", ""), tools=[draw])).result)
    assert told["mimeType"] == "image/png"
    assert base64.b64decode(told["data"]) == PNG


def test_a_long_result_is_shortened_in_the_middle_with_a_mark() -> None:
    cut = truncate("长" * 1000, 256)
    assert cut.startswith("长" * 192)
    assert cut.endswith("长" * 32)
    assert "776 characters left out" in cut
    assert truncate("short", 256) == "short"


LIMIT = 1000
DATA = base64.b64encode(bytes(range(256)) * 400).decode()
IMAGE = {"mimeType": "image/png", "data": DATA}
URL = f"data:image/png;base64,{DATA}"


async def told_of(result: Any) -> Any:
    """What a model is told_of of a result, read as JSON."""

    async def give() -> Any:
        return result

    text = (await only(("give", ""), tools=[FunctionToolCallback.from_function(give)], max_result_chars=LIMIT)).result
    assert len(text) <= LIMIT
    return from_json(text, allow_inf_nan=False)


LARGE_PNG = PNG + bytes(90_000)
WITHOUT_DATA = {"mimeType": "image/png", "data": f"[{len(DATA)} characters left out]"}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (LARGE_PNG, WITHOUT_DATA | {"data": f"[{len(base64.b64encode(LARGE_PNG))} characters left out]"}),
        (IMAGE, WITHOUT_DATA),
        ([IMAGE, {"text": "two", "image": IMAGE}], [WITHOUT_DATA, {"text": "two", "image": WITHOUT_DATA}]),
        ({"picture": URL, "title": "a"}, {"picture": f"[{len(URL)} characters left out]", "title": "a"}),
        (bytes(9_000), "[12000 characters left out]"),
        ([10**1500], ["[1501 characters left out]"]),
        ({"a" * 2000: 1}, {"...": "[1 fields left out]"}),
    ],
    ids=["image", "image as JSON", "images", "data URL", "bytes", "number", "name"],
)
async def test_values_that_cannot_be_shortened_are_left_out(result: Any, expected: Any) -> None:
    assert await told_of(result) == expected


async def test_long_texts_within_json_are_cut_and_short_ones_are_kept() -> None:
    result = await told_of({"title": "Rome", "text": "a word " * 1000, "more": "another " * 1000, "found": True})
    assert (result["title"], result["found"]) == ("Rome", True)
    for name, start, end in (("text", "a word a", " word "), ("more", "another ", "another ")):
        assert result[name].startswith(start)
        assert result[name].endswith(end)
        assert "characters left out" in result[name]


async def test_a_list_and_an_object_keep_their_first_entries_and_count_the_others() -> None:
    rows = await told_of([{"number": number} for number in range(500)])
    assert rows[:-1] == [{"number": number} for number in range(len(rows) - 1)]
    assert rows[-1] == f"[{500 - len(rows) + 1} entries left out]"
    fields = await told_of({f"field {number}": "a short text" for number in range(500)})
    assert len(fields) > 10
    assert fields.pop("...") == f"[{500 - len(fields)} fields left out]"
    assert list(fields) == [f"field {number}" for number in range(len(fields))]


async def test_the_json_text_of_a_tool_is_json_for_it_too() -> None:
    assert await told_of(to_json(IMAGE).decode()) == WITHOUT_DATA


@pytest.mark.parametrize("words", ["[links](x) ", "{not json} ", '"quoted" words ', "1, 2, "])
def test_text_that_only_begins_like_json_is_cut_as_text(words: str) -> None:
    text = words * 1000
    cut = shorten(text, LIMIT)
    assert cut.startswith(text[: LIMIT * 3 // 4])
    assert cut.endswith(text[-LIMIT // 8 :])


async def test_a_long_error_stays_an_error_that_a_model_can_read() -> None:
    async def fails() -> None:
        raise ToolExecutionError("no such place " * 1000, kind="no-such-place")

    finished = await only(("fails", ""), tools=[fails], max_result_chars=LIMIT)
    assert from_json(finished.result)["error"]["kind"] == "no-such-place"


class _Endless(Sequence[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return index


@dataclass(frozen=True, slots=True)
class _Record:
    numbers: Any


@attrs.define
class _Parcel:
    numbers: Any


class _Numbers(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    numbers: Any


class _Stream(BaseModel):
    numbers: Iterable[int]


async def _counted() -> AsyncIterator[int]:
    yield 1


ITERATORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: itertools.count(), "count"),
    (lambda: (number for number in itertools.count()), "generator"),
    (lambda: {"numbers": itertools.count()}, "count"),
    (lambda: {"numbers": (number for number in itertools.count())}, "generator"),
    (lambda: [(itertools.repeat("x"),)], "repeat"),
    (lambda: _Record(number for number in itertools.count()), "generator"),
    (lambda: [_Parcel(number for number in itertools.count())], "generator"),
    (lambda: _Numbers(numbers=(number for number in itertools.count())), "generator"),
    (lambda: _Stream(numbers=itertools.count()), "ValidatorIterator"),
    (lambda: {"one": {"range": range(10**12)}}, "range"),
    (lambda: map(str, range(3)), "map"),
    (lambda: _counted(), "async_generator"),
]


@pytest.mark.parametrize(("make", "type_name"), ITERATORS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_an_iterator_in_a_result_is_refused_and_logged_with_its_type(
    make: Callable[[], Any], type_name: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def later() -> Any:
        return make()

    tool = FunctionToolCallback.from_function(later if is_async else make, name="endless")
    finished = await only(("endless", ""), tools=[tool])
    assert (finished.outcome, finished.error_kind) == ("error", "tool-result")
    (record,) = caplog.records
    assert vars(record)["result_type"] == type_name


async def test_a_sequence_gives_no_more_items_than_its_length() -> None:
    async def count() -> Any:
        return _Endless()

    assert (await only(("count", ""), tools=[count])).result == "[0,1]"


def _numbers() -> Iterator[int]:
    return itertools.count()


async def _numbers_later() -> Annotated[Iterator[int], "Numbers"]:
    return itertools.count()


def _numbers_awaited() -> Awaitable[AsyncIterator[int]]:
    raise NotImplementedError


def _generated() -> Generator[int, None, None]:
    yield 1


@pytest.mark.parametrize("function", [_numbers, _numbers_later, _numbers_awaited, _generated])
def test_a_function_that_promises_an_iterator_is_refused_when_it_is_defined(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="since it may never end: return a list"):
        FunctionToolCallback.from_function(function)


@dataclass
class Quote:
    price: Annotated[float, Field(title="价格 / price", description="CNY")]
    note: str = ""


class Shown(BaseModel):
    quote: Quote


def quote() -> Quote:
    """Give a quote."""
    return Quote(1.5)


class Quotes:
    """Give quotes."""

    async def __call__(self, city: str) -> list[Quote]:
        return []


def shown_inside() -> Shown | None:
    """Give a quote inside."""
    return None


@dataclass
class Private:
    price: Annotated[float, Field(title="价格 / price")]
    note: str
    _cost: float = 1


def private() -> Private:
    """Give a quote and hide the cost."""
    return Private(1.5, "")


def answered() -> ToolAnswer[Quote]:
    """Give a quote to the client."""
    return ToolAnswer("1.5", Quote(1.5))


def properties_of(function: Any) -> dict[str, Any]:
    schema = FunctionToolCallback.from_function(function).definition.output_schema
    parts = (schema, *schema.get("$defs", {}).values())
    return {name: field for part in parts for name, field in part.get("properties", {}).items()}


@pytest.mark.parametrize("function", [quote, Quotes(), shown_inside, private, answered])
def test_the_titles_that_a_result_type_gives_are_in_the_definition_and_no_others(function: Any) -> None:
    fields = properties_of(function)
    assert fields["price"]["title"] == "价格 / price"
    assert "title" not in fields["note"]
    assert fields.keys() <= {"price", "note", "quote"}


def test_the_schema_is_that_of_the_whole_result() -> None:
    described = [
        FunctionToolCallback.from_function(each).definition.output_schema for each in (quote, Quotes(), shown_inside)
    ]
    assert [each.get("type") for each in described] == ["object", "array", None]
    assert [part["type"] for part in described[2]["anyOf"] if "type" in part] == ["null"]


def test_a_tool_with_a_custom_converter_has_no_output_schema() -> None:
    assert FunctionToolCallback.from_function(quote, result_converter=repr).definition.output_schema == {}
    assert FunctionToolCallback.from_function(quote).with_converter(repr).definition.output_schema == {}
    assert FunctionToolCallback.from_function(quote).with_converter(quoted_result).definition.output_schema


def plain_text() -> str:
    """Say something."""
    return ""


def anything_else() -> Any:
    """Say anything_else."""


class OldDictionary(typing.TypedDict):
    price: float


def old() -> OldDictionary:
    """Give a dictionary of a kind that pydantic does not read on every Python."""
    return {"price": 1}


def test_a_result_type_that_cannot_be_read_does_not_hinder_the_tool() -> None:
    assert isinstance(FunctionToolCallback.from_function(old).definition.output_schema, dict)


@pytest.mark.parametrize("function", [plain_text, anything_else])
def test_a_result_without_named_fields_has_no_schema(function: Any) -> None:
    assert FunctionToolCallback.from_function(function).definition.output_schema == {}


class Step(typing.NamedTuple):
    name: str
    seconds: float


@dataclass
class Run:
    steps: list[Step]
    raw: bytes = b"\xfb\xff"


def measure() -> Run:
    """Give what cannot be measured."""
    return Run([Step("load", float("nan"))])


def test_a_result_fits_the_schema_of_its_type() -> None:
    schema = FunctionToolCallback.from_function(measure).definition.output_schema
    jsonschema.validate(from_json(convert_result(measure())), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"steps": [["load", 1]]}, schema)


def test_a_provider_is_not_sent_the_schema_of_results() -> None:
    definition = FunctionToolCallback.from_function(quote).definition
    assert definition.output_schema
    assert "价格" not in str(map_tool_definition(definition))
