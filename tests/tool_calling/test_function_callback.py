"""Functions and methods as tools, plain and within decorators."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Annotated, Any

import pytest

from tests.tool_calling.calls import EMPTY, only
from toolchat.tool_calling.callback import DelegatingToolCallbackResolver, StaticToolCallbackResolver
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


async def test_without_docstring_the_name_in_words_describes_the_tool() -> None:
    assert FunctionToolCallback.from_function(echo, name="getCityTime").definition.description == "get city time"


@pytest.mark.parametrize(("made_of", "key"), [(Shop, "number"), (Branch, "branch")])
async def test_every_marked_method_of_an_object_is_a_tool_inherited_or_overridden(
    made_of: Callable[[], object], key: str
) -> None:
    callbacks = {each.definition.name: each for each in MethodToolCallbackProvider(made_of()).tool_callbacks()}
    assert set(callbacks) == {"findOrder", "opening_hours", "_private"}
    assert await callbacks["findOrder"].call('{"number": 7}', EMPTY) == f'{{"{key}":7}}'
    assert await callbacks["opening_hours"].call("", EMPTY) == "9-17"
    assert await callbacks["_private"].call("", EMPTY) == "Done"
    assert callbacks["_private"].metadata.return_direct


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


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of the usual kind, which knows nothing of coroutines."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Ready:
    """Something of one's own that can be awaited."""

    def __await__(self) -> Generator[Any, None, str]:
        yield from asyncio.sleep(0).__await__()
        return "ready"


async def test_a_plain_decorator_around_a_coroutine_function_is_awaited() -> None:
    loops = []

    @plainly
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return 2 * number

    assert (await only(("double", '{"number": 2}'), tools=[double])).result == "4"
    assert loops == [asyncio.get_running_loop()]


async def test_a_plain_function_may_return_anything_that_can_be_awaited() -> None:
    def later() -> Awaitable[str]:
        return Ready()

    def nothing() -> Coroutine[Any, Any, None]:
        return asyncio.sleep(0)

    assert (await only(("later", ""), tools=[later])).result == "ready"
    assert (await only(("nothing", ""), tools=[nothing])).result == "Done"


def _numbers() -> Generator[int, None, None]:
    yield 1


async def _async_numbers() -> AsyncGenerator[int, None]:
    yield 1


class _Numbers:
    def __call__(self) -> Generator[int, None, None]:
        yield 1


@pytest.mark.parametrize("function", [_numbers, _async_numbers, _Numbers()])
def test_a_generator_stops_the_definition(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match=r"^tool numbers: a generator cannot be a tool"):
        FunctionToolCallback.from_function(function, name="numbers")


class Kiosk:
    name = "shop"

    @tool(name="openingHours", timeout=2)
    @staticmethod
    def hours(day: str = "Monday") -> str:
        """Tell when the shop is open."""
        return f"{day} 9-17"

    @tool
    @classmethod
    async def called(cls, title: str) -> str:
        """Tell the shop's name."""
        return f"{title} {cls.name}"

    @staticmethod
    @tool
    def below() -> str:
        """Tell where the mark stands."""
        return "below"


class Stand(Kiosk):
    name = "branch"


async def test_the_mark_may_stand_above_a_static_or_a_class_method() -> None:
    found = {each.definition.name: each for each in MethodToolCallbackProvider(Stand()).tool_callbacks()}
    assert set(found) == {"openingHours", "called", "below"}
    assert await found["openingHours"].call('{"day": "Sunday"}', EMPTY) == "Sunday 9-17"
    assert found["openingHours"].metadata.timeout == 2
    assert list(found["called"].definition.input_schema["properties"]) == ["title"]
    assert await found["called"].call('{"title": "the"}', EMPTY) == "the branch"
    assert (Kiosk.hours(), await Kiosk.called("a"), Kiosk.below()) == ("Monday 9-17", "a shop", "below")
