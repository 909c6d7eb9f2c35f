"""A tool that breaks the contract of schema and validator stops the start, in one line."""

import enum
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.schema import input_of_function


class Color(enum.Enum):
    RED = "red"


class Size(enum.Enum):
    SMALL = (10, 10)
    LARGE = (20, 20)


class Lazy(BaseModel):
    items: Iterable[int] = ()


def _buy(item: str, shop: str, unit: Color = Color.RED) -> None: ...


def _default(item: int = Field(9, le=5)) -> None: ...


def _given(item: str, limit: Annotated[int, Field(le=50)] = 100) -> None: ...


def _example(item: int = Field(examples=[math.inf])) -> None: ...


def _enum(size: Size) -> None: ...


def _literal(color: Literal[Color.RED]) -> None: ...


def _nested(filters: list[Lazy]) -> None: ...


def _bound(item: Annotated[int, Field(ge="a")]) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (partial(_buy, shopp="acme"), "shopp"),  # type: ignore[call-arg]
        (partial(_buy, "pen", "acme", Color.RED, 1), "too many positional"),  # type: ignore[call-arg]
        (_default, "parameter item: its own 9 is refused: "),
        (_given, "parameter limit: its own 100 is refused: "),
        (_enum, r"parameter size: its own \[10, 10\] is refused: "),
        (_literal, "parameter color: its own 'red' is refused: "),
        (_nested, r"parameter filters: .*write list\[\.\.\.\]"),
        (_example, "cannot be written as JSON"),
        (_bound, "parameter item has a type"),
    ],
)
def test_a_tool_that_breaks_the_contract_stops_the_definition_in_one_line(
    function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=f"^tool broken: .*{reason}") as caught:
        input_of_function(function, "broken")
    assert "\n" not in str(caught.value)


def _none(item: int = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
    ...


def test_none_as_the_default_of_another_type_is_no_fault() -> None:
    assert input_of_function(_none, "none").arguments('{"item": null}') == {"item": None}
