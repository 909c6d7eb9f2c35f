"""Tools that are inherited from generic classes: what stands for a type variable."""

from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

from tests.tool_calling.calling import EMPTY
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider, tool

T = TypeVar("T")
U = TypeVar("U")


class Page(BaseModel, Generic[U]):
    first: U


class Store(Generic[T]):
    @tool
    async def put(self, item: T, more: Annotated[list[T] | None, "More"] = None, page: Page[T] | None = None) -> str:
        """Put an item."""
        return repr((item, more, page))


class Numbers(Store[int]): ...


class Lists(Store[list[U]], Generic[U]):
    @tool
    async def add(self, item: U) -> str:
        """Add an item."""
        return repr(item)


class ListsOfNumbers(Lists[int]): ...


class Middle(Store[T]): ...


class Below(Middle[int]): ...


def schemas(tool_object: object) -> dict[str, Any]:
    callbacks = MethodToolCallbackProvider(tool_object).tool_callbacks()
    return {each.definition.name: each.definition.input_schema["properties"] for each in callbacks}


@pytest.mark.parametrize("store", [Numbers(), Below(), Store[int]()], ids=lambda store: type(store).__name__)
async def test_the_bases_of_a_class_say_what_a_variable_stands_for(store: Store[int]) -> None:
    properties = schemas(store)["put"]
    assert properties["item"] == {"type": "integer"}
    assert properties["more"]["anyOf"][0] == {"type": "array", "items": {"type": "integer"}}
    assert properties["page"]["anyOf"][0]["properties"] == {"first": {"type": "integer"}}
    (callback,) = MethodToolCallbackProvider(store).tool_callbacks()
    assert (
        await callback.call('{"item": 1, "more": [2], "page": {"first": 3}}', EMPTY) == "(1, [2], Page[int](first=3))"
    )


def test_a_variable_means_something_else_in_each_class_that_has_it() -> None:
    found = schemas(ListsOfNumbers())
    assert found["put"]["item"] == {"type": "array", "items": {"type": "integer"}}
    assert found["add"]["item"] == {"type": "integer"}


def test_a_callable_object_of_a_generic_class_is_resolved_too() -> None:
    class Reader(Generic[T]):
        async def __call__(self, item: T) -> str:
            return repr(item)

    class NumberReader(Reader[int]): ...

    schema = FunctionToolCallback.from_function(NumberReader()).definition.input_schema
    assert schema["properties"] == {"item": {"type": "integer"}}


def test_a_variable_that_nobody_says_anything_about_takes_everything() -> None:
    assert schemas(Store())["put"]["item"] == {}
