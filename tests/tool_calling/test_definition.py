"""Defining tools: what may be one, what is said about it in a mark or in code, and the names that providers accept."""

import functools
import re
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import pytest
from hypothesis import given, strategies as st

from tests.tool_calling.calls import EMPTY, Place
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolMetadata, ToolOptions, provider_name, tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider, to_callbacks

ALL: dict[str, Any] = {
    "name": "other",
    "description": "Something else.",
    "return_direct": True,
    "requires_approval": False,
    "approver": "",
    "approver_may_edit": False,
    "timeout": 3.0,
    "cache_seconds": 60.0,
    "max_calls": 4,
    "max_identical_calls": 2,
    "exclusive": True,
    "retries": 2,
    "read_only": True,
    "examples": ("Do it",),
    "result_converter": repr,
}


async def plain(city: str) -> str:
    """Do something."""
    return city


@tool(name="marked", description="Marked", return_direct=True, timeout=2, max_calls=7, exclusive=True, retries=1)
async def marked() -> str:
    return "text"


async def test_every_option_of_the_decorator_exists_in_code() -> None:
    assert set(ALL) == set(get_type_hints(ToolOptions))
    in_code = FunctionToolCallback.from_function(plain, **ALL)
    by_mark = FunctionToolCallback.from_function(tool(**ALL)(plain_copy()))
    for callback in (in_code, by_mark):
        assert (callback.definition.name, callback.definition.description) == ("other", "Something else.")
        assert callback.metadata == ToolMetadata(**{each: ALL[each] for each in ALL if hasattr(ToolMetadata, each)})
        assert await callback.call('{"city": "Rome"}', EMPTY) == "'Rome'"


def plain_copy() -> Any:
    async def plain(city: str) -> str:
        return city

    return plain


def test_metadata_keep_the_decorators_values_for_defaults() -> None:
    changed = FunctionToolCallback.from_function(
        marked, metadata=ToolMetadata(timeout=9, requires_approval=False, cache_seconds=5)
    )
    assert changed.metadata == ToolMetadata(
        return_direct=True, timeout=9, cache_seconds=5, max_calls=7, exclusive=True, retries=1
    )


def test_an_option_in_code_overrides_decorator_and_metadata_but_none_is_no_name() -> None:
    callback = FunctionToolCallback.from_function(
        marked,
        name="given",
        description=None,
        result_converter=None,
        metadata=ToolMetadata(timeout=9),
        return_direct=False,
        timeout=None,
        max_calls=None,
        exclusive=False,
        retries=0,
    )
    assert (callback.definition.name, callback.metadata) == ("given", ToolMetadata())
    assert callback.definition.description == "Marked"
    assert FunctionToolCallback.from_function(marked, name=None).definition.name == "marked"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": 5}, "name of a tool must be text, not 5"),
        ({"description": ["a"]}, "description of a tool must be text, not ['a']"),
        ({"result_converter": "json"}, "result_converter of a tool must be a function that returns text"),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_line(options: Any, told: str) -> None:
    for define in (lambda: tool(**options), lambda: FunctionToolCallback.from_function(plain, **options)):
        with pytest.raises(ToolDefinitionError) as caught:
            define()
        assert str(caught.value) == told


@pytest.mark.parametrize("word", ["retry", "sandbox", "metadata"])
def test_a_word_that_is_none_is_refused(word: str) -> None:
    unknown: Any = {word: 1}
    with pytest.raises(TypeError, match=f"a tool has no option {word}"):
        tool(**unknown)
    if word != "metadata":
        with pytest.raises(TypeError, match=f"a tool has no option {word}"):
            FunctionToolCallback.from_function(plain, **unknown)


NAMES = st.text(st.sampled_from("ab._/-天气 \ud800"), min_size=1, max_size=80)


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        *((valid, "", valid) for valid in ("get_weather", "get-weather", "A" * 64, "_")),
        ("orders.find", "", "orders_find_cc4ca2ef"),
        ("get_issue", "gh", "gh_get_issue"),
    ],
)
def test_a_name_changes_only_where_providers_refuse_it(name: str, prefix: str, expected: str) -> None:
    assert provider_name(name, prefix) == expected
    assert len(provider_name("a" * 60, "github")) == 64


@given(NAMES, NAMES)
def test_every_name_is_valid_for_providers_and_keeps_its_identity(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", provider_name(one))
    assert (provider_name(one) == provider_name(other)) == (one == other)


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


def _of_model(place: Place) -> str:
    return f"{place.name}, {place.country}"


def _plain(name: str, country: str) -> str:
    return f"{name}, {country}"


def _with_context(place: Place, context: ToolContext) -> str:
    return f"{place.name} of {context.get('tenant')}"


def _supplier() -> str:
    return "supplied"


def _consumer(place: Place) -> None:
    assert place == Place(name="杭州")


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("function", "tool_input", "result"),
    [
        (_of_model, '{"name": "杭州"}', "杭州, CN"),
        (_plain, '{"name": "杭州", "country": "x"}', "杭州, x"),
        (_with_context, '{"name": "杭州"}', "杭州 of acme"),
        (_supplier, "", "supplied"),
        (_consumer, '{"name": "杭州"}', "Done"),
    ],
)
async def test_every_kind_of_function_can_be_a_tool(
    function: Callable[..., Any], tool_input: str, result: str, asynchronous: bool
) -> None:
    chosen = _as_async(function) if asynchronous else function
    callback = FunctionToolCallback.from_function(chosen, name="it", description="It")
    assert await callback.call(tool_input, ToolContext({"tenant": "acme"})) == result


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

    for bound in (functools.partial(search, "acme", limit=1), functools.partial(search, tenant="acme", limit=1)):
        (callback,) = to_callbacks(functools.update_wrapper(bound, search))
        assert (callback.definition.name, callback.definition.description) == ("search", "Search the shop.")
        assert callback.metadata.timeout == 2
        assert callback.definition.input_schema["properties"] == {
            "query": {"type": "string", "description": "what to look for"}
        }
        assert await callback.call('{"query": "lamp"}', ToolContext({"user": "ann"})) == "acme lamp 1 ann"
        assert to_callbacks(bound) == (callback,), "a callback keeps its cached results"
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


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"retries": 1, "requires_approval": True}, "retries is not for a tool that requires approval"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"max_calls": 0}, "max_calls must be a whole number of at least 1"),
        ({"max_calls": "3"}, "max_calls must be a whole number of at least 1"),
        ({"max_calls": True}, "max_calls must be a whole number of at least 1"),
        ({"max_identical_calls": -2}, "max_identical_calls must be a whole number of at least 1"),
        ({"timeout": -1}, "timeout must be a number of at least 0.001"),
        ({"timeout": "3"}, "timeout must be a number of at least 0.001"),
        ({"timeout": float("nan")}, "timeout must be a number of at least 0.001"),
        ({"exclusive": "no"}, "exclusive must be True or False"),
    ],
)
def test_invalid_or_unsafe_metadata_stop_the_definition(options: dict[str, Any], told: str) -> None:
    def ask() -> None: ...

    for function, said in ((ask, options), (tool(**options)(ask), {})):
        with pytest.raises(ToolDefinitionError, match=rf"^tool ask: {told}$"):
            FunctionToolCallback.from_function(function, **said)
