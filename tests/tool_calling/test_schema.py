"""From signatures to schemas, and from a model's JSON to arguments."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, Field

from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.schema import input_of_function
from toolchat.tool_calling.signature import docstring_summary

T = TypeVar("T")


class Store(Generic[T]):
    def put(self, item: T) -> str:
        return repr(item)


class Numbers(Store[int]): ...


class Order(BaseModel):
    """An order."""

    id: int = Field(description="The order's number", ge=1)
    note: str = ""


@dataclass
class Point:
    x: int
    y: int = 0


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


def test_a_tool_without_input_has_an_empty_object() -> None:
    assert input_of_function(nothing, "nothing").schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


@pytest.mark.parametrize("model", [Order, Point])
def test_a_single_model_is_the_whole_input(model: Any) -> None:
    def function(request: Any) -> None: ...

    function.__annotations__["request"] = model
    tool_input = input_of_function(function, "whole")
    assert tool_input.schema["additionalProperties"] is False
    text = '{"id": 1}' if model is Order else '{"x": 1}'
    assert isinstance(tool_input.arguments(text)["request"], model)


def test_a_comma_inside_a_string_is_no_trailing_comma() -> None:
    assert input_of_function(forecast, "forecast").arguments('{"city": "a,}\\",]", }') == {"city": 'a,}",]', "days": 1}


def test_the_error_names_every_field_at_fault() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        input_of_function(forecast, "forecast").arguments('{"days": 99}')
    assert [field["field"] for field in caught.value.fields] == ["city", "days"]


def _untyped(x) -> None: ...  # type: ignore[no-untyped-def]


def _variadic(*x: int) -> None: ...


def _callable(x: Callable[[], None]) -> None: ...


def _unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def _twice(x: int, y: Annotated[int, Field(alias="x")]) -> None: ...


@pytest.mark.parametrize("function", [_untyped, _variadic, _callable, _unknown, _twice])
def test_a_parameter_that_json_cannot_carry_stops_the_definition(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="tool broken: "):
        input_of_function(function, "broken")


def _any_item(x: T) -> None: ...


def _any_items(x: list[T]) -> None: ...


@pytest.mark.parametrize("function", [_any_item, _any_items, Store().put, Numbers().put])
def test_a_type_variable_that_nothing_binds_stops_the_definition(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="nothing says which type ~T is"):
        input_of_function(function, "broken")
