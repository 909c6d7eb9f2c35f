"""What a definition says about the results of its tool."""

import typing
from dataclasses import dataclass
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import BaseModel, Field
from pydantic_core import from_json

from toolchat.models.openai.mapping import map_tool_definition
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import ToolAnswer, convert_result, quoted_result


@dataclass
class Quote:
    price: Annotated[float, Field(title="价格 / price", description="CNY")]
    note: str = ""


class Shown(BaseModel):
    quote: Quote


class OldDictionary(typing.TypedDict):
    price: float


def quote() -> Quote:
    """Give a quote."""
    return Quote(1.5)


class Quotes:
    """Give quotes."""

    async def __call__(self, city: str) -> list[Quote]:
        return []


def shown() -> Shown | None:
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


@pytest.mark.parametrize("function", [quote, Quotes(), shown, private, answered])
def test_the_titles_that_a_result_type_gives_are_in_the_definition_and_no_others(function: Any) -> None:
    fields = properties_of(function)
    assert fields["price"]["title"] == "价格 / price"
    assert "title" not in fields["note"]
    assert fields.keys() <= {"price", "note", "quote"}


def test_the_schema_is_that_of_the_whole_result() -> None:
    described = [FunctionToolCallback.from_function(each).definition.output_schema for each in (quote, Quotes(), shown)]
    assert [each.get("type") for each in described] == ["object", "array", None]
    assert [part["type"] for part in described[2]["anyOf"] if "type" in part] == ["null"]


def test_a_tool_with_a_custom_converter_has_no_output_schema() -> None:
    assert FunctionToolCallback.from_function(quote, result_converter=repr).definition.output_schema == {}
    assert FunctionToolCallback.from_function(quote).with_converter(repr).definition.output_schema == {}
    assert FunctionToolCallback.from_function(quote).with_converter(quoted_result).definition.output_schema


def plain() -> str:
    """Say something."""
    return ""


def anything() -> Any:
    """Say anything."""


def old() -> OldDictionary:
    """Give a dictionary of a kind that pydantic does not read on every Python."""
    return {"price": 1}


@pytest.mark.parametrize("function", [plain, anything])
def test_a_result_without_named_fields_has_no_schema(function: Any) -> None:
    assert FunctionToolCallback.from_function(function).definition.output_schema == {}


def test_a_result_type_that_cannot_be_read_does_not_hinder_the_tool() -> None:
    assert isinstance(FunctionToolCallback.from_function(old).definition.output_schema, dict)


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
