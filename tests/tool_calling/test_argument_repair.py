"""Arguments that do not fit as a model wrote them, and can be meant in one way only."""

import datetime
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_core import to_json

from tests.chat.played import asked, asks, says
from tests.tool_calling.calls import Place, call, callback_of, called, executing, schema_of
from toolchat.service.api.schemas import ChatAnswer
from toolchat.tool_calling.function_callback import FunctionToolCallback


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Level(enum.IntEnum):
    LOW = 1
    MIDDLE = 2
    HIGH = 9


class Way(BaseModel):
    """Where it goes."""

    to: Place
    via: list[Place] = []
    fast: bool = True


class Listed(BaseModel):
    value: list[int]
    other: int = 1


class Named(BaseModel):
    value: str
    other: int = 1


@dataclass
class Stop:
    number: int = 7
    after: "Stop | None" = None


@pytest.mark.parametrize(
    ("annotation", "sent", "meant"),
    [
        (int, "3", "3"),
        (float, "1.5", "1.5"),
        (list[int], "[1, 2]", "[1, 2]"),
        (list[int], ["1", 2], "[1, 2]"),
        (set[int], "[1]", "{1}"),
        (dict[str, int], '{"a": 1}', "{'a': 1}"),
        (dict[str, list[int]], {"a": "[1]"}, "{'a': [1]}"),
        (tuple[int, Place], [1, '{"name": "x"}'], "(1, Place(name='x', country='CN'))"),
        (Place, '{"name": "x"}', "Place(name='x', country='CN')"),
        (Way, {"to": '{"name": "x"}', "via": '[{"name": "y"}]', "fast": "false"},
         "Way(to=Place(name='x', country='CN'), via=[Place(name='y', country='CN')], fast=False)"),
        (Way, '{"to": "{\\"name\\": \\"x\\"}"}', "Way(to=Place(name='x', country='CN'), via=[], fast=True)"),
        (Place, {"name": "x", "country": None}, "Place(name='x', country='CN')"),
        (Listed | Named, '{"value": "[1]"}', "Named(value='[1]', other=1)"),
        (Stop, {"number": None, "after": {"number": None, "after": None}},
         "Stop(number=7, after=Stop(number=7, after=None))"),
        (Unit, "CELSIUS", "<Unit.CELSIUS: 'C'>"),
        (list[Unit], ["C", "FAHRENHEIT"], "[<Unit.CELSIUS: 'C'>, <Unit.FAHRENHEIT: 'F'>]"),
        (Level, "HIGH", "<Level.HIGH: 9>"),
        (Level, "9", "<Level.HIGH: 9>"),
        (dict[str, Level], {"a": "LOW"}, "{'a': <Level.LOW: 1>}"),
        (Annotated[list[int], Field(max_length=2)] | Literal["all"], "[1]", "[1]"),
        (str, 3, "'3'"),
        (list[str], [1, "b", 10**20], f"['1', 'b', '{10**20}']"),
        (dict[str, str | bool], {"a": 2}, "{'a': '2'}"),
        (Literal["1", "2"], 2, "'2'"),
        (Annotated[str, Field(pattern=r"^\d{3}$")], 404, "'404'"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_value_with_one_reading_is_repaired_and_marked(annotation: Any, sent: Any, meant: str) -> None:
    finished = await called(callback_of(annotation), to_json({"value": sent}).decode())
    assert (finished.result, finished.repaired) == (meant, True)
    assert finished.to_dict()["repaired"] is True


@pytest.mark.parametrize(
    ("annotation", "sent", "given"),
    [
        (str, "3", "'3'"),
        (str, '{"a": 1}', "'{\"a\": 1}'"),
        (int | str, "3", "'3'"),
        (list[int] | str, "[1]", "'[1]'"),
        (Any, "[1]", "'[1]'"),
        (float, 3, "3.0"),
        (int, 3.0, "3"),
        (Unit, "C", "<Unit.CELSIUS: 'C'>"),
        (Level, 9, "<Level.HIGH: 9>"),
        (int | None, None, "None"),
        (Place, {"name": "x"}, "Place(name='x', country='CN')"),
    ],
    ids=str,
)
async def test_a_value_that_fits_is_left_alone_and_not_called_repaired(annotation: Any, sent: Any, given: str) -> None:
    finished = await called(callback_of(annotation), to_json({"value": sent}).decode())
    assert (finished.result, finished.repaired) == (given, False)
    assert "repaired" not in finished.to_dict()


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (bool, "perhaps"),
        (Annotated[int, Field(ge=1, lt=9)], 9),
        (Annotated[str, Field(pattern="^[A-Z]+$")], "abc"),
        (Literal["C", "F"], "K"),
        (datetime.date, "tomorrow"),
        (tuple[int, str], [1]),
        (int, "1.5"),
        (int, ""),
        (int, None),
        (str, True),
        (Unit, 3),
        (str, None),
        (list[int], "[1, 2"),
        (list[int], '{"a": 1}'),
        (Place, '{"country": "CN"}'),
        (Place, {"name": None}),
        (Level, "low"),
        (Level, 3),
        (dict[str, int], {"a": None}),
        (Listed | Named, {"value": "[1]", "other": None}),
    ],
    ids=str,
)
async def test_a_value_without_a_single_reading_runs_nothing(annotation: Any, sent: Any) -> None:
    finished = await called(callback_of(annotation), to_json({"value": sent}).decode())
    assert (finished.error_kind, finished.repaired) == ("invalid-arguments", False)


@pytest.mark.parametrize(
    ("annotation", "text", "given"),
    [
        (str, '{"value": 3.10}', "'3.10'"),
        (str, '{"value": "one\ntwo\tthree\r\n"}', "'one\\ntwo\\tthree\\r\\n'"),
        (list[str], '{"value": ["a\nb"],\n"other": 1,}', "['a\\nb']"),
        (str, '{"value": "one\\\\\ntwo\\"\n"}', "'one\\\\\\ntwo\"\\n'"),
        (str, '{"value": "' + "line\n" * 20_000 + '"}', repr("line\n" * 20_000)),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_text_stays_as_the_model_wrote_it(annotation: Any, text: str, given: str) -> None:
    finished = await called(callback_of(annotation), text, max_result_chars=200_000)
    assert (finished.result, finished.repaired) == (given, True)


@pytest.mark.parametrize(
    "arguments", ['{"": ""}', '{"input": {}}', '{"args": [], "kwargs": {"": null}}', "null", "[]", '""']
)
async def test_a_tool_without_parameters_accepts_every_form_of_no_arguments(arguments: str) -> None:
    async def ping() -> str:
        return "pong"

    finished = await called(FunctionToolCallback.from_function(ping), arguments)
    assert (finished.result, finished.repaired) == ("pong", True)


@pytest.mark.parametrize("arguments", ['{"city": "Paris"}', "[1]", '{"": "x"}', "3", "false"])
async def test_a_tool_without_parameters_is_not_called_with_something(arguments: str) -> None:
    async def ping() -> str:
        return "pong"

    assert (await called(FunctionToolCallback.from_function(ping), arguments)).error_kind == "invalid-arguments"


@pytest.mark.parametrize(
    "arguments",
    ['```json\n{"value": 3}\n```', '"{\\"value\\": 3}"', '{"value": 3,}', '\ufeff{"value": "3"}',
     '{"value": 3, "other": null}'],
)  # fmt: skip
async def test_json_in_a_wrapping_and_null_for_a_default_are_repairs_too(arguments: str) -> None:
    finished = await called(callback_of(int), arguments)
    assert (finished.result, finished.repaired) == ("3", True)


async def test_a_failed_repair_reports_the_remaining_error() -> None:
    finished = await called(callback_of(Place), '{"value": "{\\"name\\": true}", "other": "1"}')
    assert '"field":"value.name"' in finished.result


def test_an_enum_of_numbers_adds_its_names_to_the_description() -> None:
    names = "1 = LOW, 2 = MIDDLE, 9 = HIGH"
    assert schema_of(Level) == {"type": "integer", "enum": [1, 2, 9], "description": names}
    described = schema_of(Annotated[Level, "How much"])
    assert described["description"] == f"How much ({names})"
    assert schema_of(Unit) == {"type": "string", "enum": ["C", "F"]}


async def test_a_repaired_call_may_come_from_the_cache_and_is_marked_as_both() -> None:
    callback = FunctionToolCallback.from_function(callback_of(int)._function, cache_seconds=60)
    asked_twice = [call("told", '{"value": "3"}', str(number)) for number in range(2)]
    *_, one, two = await executing(*asked_twice, tools=[callback])
    records = sorted((each.to_dict() for each in (one, two)), key=lambda each: "cached" in each)  # type: ignore[union-attr]
    assert [(each["repaired"], each.get("cached")) for each in records] == [(True, None), (True, True)]


async def test_repaired_calls_are_marked_in_the_answer() -> None:
    items = '[{"id": "1", "text": "cook", "status": "pending"}]'
    calls = [("todoUpdate", {"items": items}), ("todoRead", "[]"), ("todoRead", "")]
    document, requests = await asked(*map(asks, calls), says("Done."))
    assert [each.get("repaired") for each in document["tool_calls"]] == [True, True, None]
    assert [each["outcome"] for each in document["tool_calls"]] == ["ok"] * 3
    assert "cook" in document["tool_calls"][1]["result"]
    assert len(requests) == 4, "none of the calls was sent back to the model"
    ChatAnswer.model_validate(document)
