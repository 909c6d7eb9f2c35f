"""From what a tool returns to what a model is told: text, JSON, and never too much of it."""

import base64
import datetime
import decimal
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import attrs
import pytest
from pydantic import BaseModel, Field, RootModel
from pydantic_core import from_json

from tests.chat.scripted import calls, client_of, says
from tests.tool_calling.calls import EMPTY, Place, only
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import convert_result, quoted_result, truncate

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


async def test_a_huge_result_is_cut_and_twenty_more_turns_stay_small() -> None:
    async def huge(page: int) -> str:
        return "长" * 5_000_000

    tools = [FunctionToolCallback.from_function(huge)]
    turns = [calls(("huge", f'{{"page": {page}}}')) for page in range(20)]
    client, model = client_of(*turns, says("read"), max_rounds=30, max_result_chars=1000)
    assert await client.prompt("?").tools(*tools).call().content() == "read"
    assert len(model.prompts) == 21
    assert len(repr(model.prompts[-1].messages).encode()) < 20 * 3 * 1100 + 5000
