"""Defining tools: which functions, methods and objects may be one, and what a mark says about them."""

import functools
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from tests.tool_calling.calls import EMPTY, Place
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider, to_callbacks


async def test_a_mark_without_parentheses_marks_functions_methods_and_classes() -> None:
    # ``@tool`` is ``@tool()``: what is marked stays what it is, and says everything about itself.

    @tool
    async def now(zone: str) -> str:
        """Tell the time."""
        return zone

    class Clock:
        @tool
        def later(self) -> str:
            """Tell the time of later."""
            return "13:00"

    @tool
    class Reader:
        """Read."""

        async def __call__(self) -> str:
            return "read"

    (later,) = MethodToolCallbackProvider(Clock()).tool_callbacks()
    made = [FunctionToolCallback.from_function(now), later, FunctionToolCallback.from_function(Reader())]
    assert [(each.definition.name, each.definition.description) for each in made] == [
        ("now", "Tell the time."),
        ("later", "Tell the time of later."),
        ("Reader", "Read."),
    ]
    assert await made[0].call('{"zone": "UTC"}', EMPTY) == "UTC"
    assert [await each.call("", EMPTY) for each in made[1:]] == ["13:00", "read"]


async def test_a_mark_below_another_decorator_is_still_seen_and_so_are_the_parameters() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return f"logged {function(*args, **kwargs)}"

        return wrapper

    @logged
    @tool(name="double")
    def twice(number: int) -> int:
        return 2 * number

    callback = FunctionToolCallback.from_function(twice)
    assert callback.definition.name == "double"
    assert await callback.call('{"number": 2}', EMPTY) == "logged 4"


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("kind", "tool_input", "result"),
    [
        ("function", '{"name": "杭州"}', "杭州, CN"),
        ("plain", '{"name": "杭州", "country": "x"}', "杭州, x"),
        ("with context", '{"name": "杭州"}', "杭州 of acme"),
        ("supplier", "", "supplied"),
        ("consumer", '{"name": "杭州"}', "Done"),
    ],
)
async def test_every_kind_of_function_can_be_a_tool(
    kind: str, tool_input: str, result: str, asynchronous: bool
) -> None:
    seen: list[Place] = []

    def function(place: Place) -> str:
        return f"{place.name}, {place.country}"

    def plain(name: str, country: str) -> str:
        return f"{name}, {country}"

    def with_context(place: Place, context: ToolContext) -> str:
        return f"{place.name} of {context.get('tenant')}"

    def supplier() -> str:
        return "supplied"

    def consumer(place: Place) -> None:
        seen.append(place)

    kinds: dict[str, Callable[..., Any]] = {
        "function": function,
        "plain": plain,
        "with context": with_context,
        "supplier": supplier,
        "consumer": consumer,
    }
    chosen = kinds[kind]
    callback = FunctionToolCallback.from_function(
        _as_async(chosen) if asynchronous else chosen, name="it", description="It"
    )
    assert await callback.call(tool_input, ToolContext({"tenant": "acme"})) == result
    assert seen == ([Place(name="杭州")] if kind == "consumer" else [])


def _as_async(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(**arguments: Any) -> Any:
        return function(**arguments)

    return run


async def test_a_partial_is_a_tool_and_hides_its_arguments_from_the_model() -> None:
    @tool(name="search", timeout=2)
    async def search(tenant: str, query: str, limit: int = 3, *, context: ToolContext) -> str:
        """Search the shop.

        :param query: what to look for
        """
        return f"{tenant} {query} {limit} {context.get('user')}"

    for given in (functools.partial(search, "acme", limit=1), functools.partial(search, tenant="acme", limit=1)):
        (callback,) = to_callbacks(functools.update_wrapper(given, search))
        assert (callback.definition.name, callback.definition.description) == ("search", "Search the shop.")
        assert callback.metadata.timeout == 2
        assert callback.definition.input_schema["properties"] == {
            "query": {"type": "string", "description": "what to look for"}
        }
        assert await callback.call('{"query": "lamp"}', ToolContext({"user": "ann"})) == "acme lamp 1 ann"
        assert to_callbacks(given) == (callback,), "a callback keeps its cached results"
    assert FunctionToolCallback.from_function(functools.partial(search, "acme", limit=1)).definition.name == "search"


async def test_a_chinese_name_is_converted_and_goes_into_the_description() -> None:
    @tool(name="查询天气")
    async def forecast(城市: Annotated[str, "城市名"], 天数: int = 1) -> str:
        """查询某个城市的天气。"""
        return f"{城市}{天数}天"

    callback = FunctionToolCallback.from_function(forecast)
    definition = callback.definition
    assert (definition.name, definition.description) == ("_____22cf3c76", "查询天气: 查询某个城市的天气。")
    assert callback.definition.input_schema["properties"]["城市"] == {"type": "string", "description": "城市名"}
    assert await callback.call('{"城市": "北京"}', EMPTY) == "北京1天"
