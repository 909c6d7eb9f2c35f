"""Functions within decorators: what is awaited, what may be none, and where the mark may stand."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest

from tests.tool_calling.calls import EMPTY, only
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider


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


def test_a_wrapped_generator_stops_the_definition_by_its_annotation() -> None:
    with pytest.raises(ToolDefinitionError, match=r"^tool numbers: an iterator cannot be a result"):
        FunctionToolCallback.from_function(plainly(_numbers), name="numbers")


@pytest.mark.parametrize(
    ("function", "type_name"), [(lambda: _numbers(), "generator"), (lambda: _async_numbers(), "async_generator")]
)
async def test_a_generator_that_comes_back_all_the_same_is_the_authors_fault(
    function: Callable[..., Any], type_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    finished = await only(("wrapper", ""), tools=[FunctionToolCallback.from_function(function, name="wrapper")])
    assert (finished.outcome, finished.error_kind) == ("error", "tool-result")
    assert [vars(record)["result_type"] for record in caplog.records] == [type_name]


class Shop:
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


class Branch(Shop):
    name = "branch"


async def test_the_mark_may_stand_above_a_static_or_a_class_method() -> None:
    found = {each.definition.name: each for each in MethodToolCallbackProvider(Branch()).tool_callbacks()}
    assert set(found) == {"openingHours", "called", "below"}
    assert await found["openingHours"].call('{"day": "Sunday"}', EMPTY) == "Sunday 9-17"
    assert found["openingHours"].metadata.timeout == 2
    assert list(found["called"].definition.input_schema["properties"]) == ["title"]
    assert await found["called"].call('{"title": "the"}', EMPTY) == "the branch"
    assert (Shop.hours(), await Shop.called("a"), Shop.below()) == ("Monday 9-17", "a shop", "below")
