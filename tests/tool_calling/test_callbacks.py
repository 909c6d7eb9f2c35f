"""Functions and methods as tools."""

from typing import Annotated

import pytest

from tests.tool_calling.calls import EMPTY
from toolchat.tool_calling.callback import (
    DelegatingToolCallbackResolver,
    StaticToolCallbackProvider,
    StaticToolCallbackResolver,
    ToolCallbackProvider,
)
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider


def roll_dice(sides: int = 6) -> int:
    """Roll one die."""
    return sides


async def echo(text: str) -> str:
    return text


class Shop:
    """Two marked methods, one static, one that is none of the model's business."""

    @tool(name="findOrder", description="Find an order")
    async def find(self, number: Annotated[int, "Its number"]) -> dict[str, int]:
        return {"number": number}

    @staticmethod
    @tool()
    def opening_hours() -> str:
        """Tell when the shop is open."""
        return "9-17"

    @tool(return_direct=True)
    def _private(self) -> None: ...

    def unmarked(self) -> None: ...

    @property
    def price(self) -> int:
        raise AssertionError("a property is not read")


class Branch(Shop):
    @tool(name="findOrder", description="Find an order of the branch")
    async def find(self, number: int) -> dict[str, int]:
        return {"branch": number}


async def test_a_plain_function_is_a_tool_by_its_name_and_docstring() -> None:
    callback = FunctionToolCallback.from_function(roll_dice)
    assert (callback.definition.name, callback.definition.description) == ("roll_dice", "Roll one die.")
    assert await callback.call('{"sides": 8}', EMPTY) == "8"


async def test_without_docstring_the_name_in_words_describes_the_tool() -> None:
    assert FunctionToolCallback.from_function(echo, name="getCityTime").definition.description == "get city time"


async def test_every_marked_method_of_an_object_is_a_tool() -> None:
    callbacks = {each.definition.name: each for each in MethodToolCallbackProvider(Shop()).tool_callbacks()}
    assert set(callbacks) == {"findOrder", "opening_hours", "_private"}
    assert await callbacks["findOrder"].call('{"number": 7}', EMPTY) == '{"number":7}'
    assert await callbacks["opening_hours"].call("", EMPTY) == "9-17"
    assert await callbacks["_private"].call("", EMPTY) == "Done"
    assert callbacks["_private"].metadata.return_direct


async def test_an_inherited_method_may_be_overridden() -> None:
    callbacks = {each.definition.name: each for each in MethodToolCallbackProvider(Branch()).tool_callbacks()}
    assert set(callbacks) == {"findOrder", "opening_hours", "_private"}
    assert await callbacks["findOrder"].call('{"number": 7}', EMPTY) == '{"branch":7}'


def test_an_object_without_marked_methods_and_a_repeated_name_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="int has no method"):
        MethodToolCallbackProvider(1).tool_callbacks()
    with pytest.raises(
        ToolDefinitionError, match=r"two tools have the name findOrder: .*\.Shop\.find and .*\.Branch\.find"
    ):
        MethodToolCallbackProvider(Shop(), Branch()).tool_callbacks()


def test_resolvers_find_by_name_and_the_first_hit_wins() -> None:
    first, second = (
        FunctionToolCallback.from_function(roll_dice),
        FunctionToolCallback.from_function(echo, name="roll_dice"),
    )
    resolver = DelegatingToolCallbackResolver(StaticToolCallbackResolver([first]), StaticToolCallbackResolver([second]))
    assert resolver.resolve("roll_dice") is first
    assert resolver.resolve("nothing") is None
    with pytest.raises(ToolDefinitionError, match=r"two tools have the name roll_dice: .*\.roll_dice and .*\.echo"):
        StaticToolCallbackResolver([first, second])


def test_a_static_provider_offers_its_callbacks() -> None:
    provider = StaticToolCallbackProvider(FunctionToolCallback.from_function(echo))
    assert isinstance(provider, ToolCallbackProvider)
    assert [each.definition.name for each in provider.tool_callbacks()] == ["echo"]
