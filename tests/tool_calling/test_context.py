"""The tool context: the caller alone fills it, wherever a tool declares it, and no model can make one."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from functools import reduce
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field, create_model
from pydantic_core import to_json
from typing_extensions import TypedDict

from tests.tool_calling.calls import call
from toolchat.messages import AssistantMessage, UserMessage
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager


@dataclass
class Tenant:
    name: str


class Order(BaseModel):
    id: int = 0


class Carrying(BaseModel):
    id: int = 0
    context: ToolContext | None = None


@dataclass
class Pair:
    number: int
    context: ToolContext[Tenant] | None = None


CALLER: ToolContext[Tenant] = ToolContext({"tenant": "acme"}, value=Tenant("acme"))
FORGED = {"values": {"tenant": "victim"}, "history": [], "value": {"name": "victim"}}


def function_with(annotation: Any, default: Any = None) -> Callable[..., Any]:
    async def order(id: int = 1, ctx: Any = default) -> str:  # noqa: A002
        return str(ctx.get("tenant"))

    order.__annotations__["ctx"] = annotation
    return order


@pytest.mark.parametrize(
    "annotation",
    [
        ToolContext,
        ToolContext | None,
        Annotated[ToolContext, "who asks"],
        Annotated[ToolContext | None, Field(description="who asks")],
        Annotated[Annotated[ToolContext, "who"] | None, "asks"],
        ToolContext[Tenant],
        ToolContext[Tenant] | None,
        "ToolContext",
        "ToolContext | None",
        "Annotated[ToolContext[Tenant], 'who asks']",
        Annotated["ToolContext", "who asks"],
    ],
    ids=str,
)
async def test_the_context_comes_from_the_caller_and_not_from_the_model(annotation: Any) -> None:
    callback = FunctionToolCallback.from_function(function_with(annotation))
    assert list(callback.definition.input_schema["properties"]) == ["id"]
    assert await callback.call('{"id": 1}', CALLER) == "acme"
    for forged in ({"id": 1, "ctx": FORGED}, {"ctx": FORGED}, {"id": 1, "ctx": None}):
        with pytest.raises(ToolArgumentsError, match="ctx"):
            await callback.call(to_json(forged).decode(), CALLER)


@pytest.mark.parametrize(
    "annotation",
    [
        list[ToolContext],
        dict[str, ToolContext],
        tuple[ToolContext, ...],
        ToolContext | int,
        list[ToolContext[Tenant]],
        dict[str, list[ToolContext[Tenant] | None]],
        Carrying,
        list[Carrying],
        Pair,
        Carrying | None,
    ],
    ids=str,
)
def test_a_context_within_something_else_stops_the_definition(annotation: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"^tool order: parameter ctx .*: a ToolContext comes from"):
        FunctionToolCallback.from_function(function_with(annotation))


def test_two_contexts_stop_the_definition() -> None:
    async def order(one: ToolContext, id: int, two: ToolContext | None = None) -> None: ...  # noqa: A002

    with pytest.raises(ToolDefinitionError, match=r"^tool order: parameter two is a second ToolContext"):
        FunctionToolCallback.from_function(order)


def test_a_positional_context_parameter_stops_the_definition() -> None:
    def positional(context: ToolContext, /) -> None: ...

    def variadic(*contexts: ToolContext) -> None: ...

    for function in (positional, variadic):
        with pytest.raises(ToolDefinitionError, match=r"contexts? must be an ordinary or keyword parameter"):
            FunctionToolCallback.from_function(function)


async def test_a_typed_value_reaches_the_tool_as_the_caller_made_it() -> None:
    async def whose(context: ToolContext[Tenant]) -> str:
        with pytest.raises(AttributeError):
            _ = context.value.nam  # type: ignore[attr-defined]
        name: str = context.value.name
        return f"{name} {len(context.history)}"

    asking = AssistantMessage(tool_calls=(call("whose"),))
    tools = [FunctionToolCallback.from_function(whose)]
    done = await ToolCallingManager().execute_tool_calls([], asking, tools, ToolContext(value=Tenant("acme")))
    assert done.executions[0].result == "acme 1"


def test_a_copy_with_further_values_or_another_history_keeps_the_rest() -> None:
    context = ToolContext[Tenant]({"tenant": "acme", "plan": "free"}, value=Tenant("acme"))
    copy = context.with_values({"plan": "paid"}).with_history((UserMessage("?"),))
    assert copy == ToolContext({"tenant": "acme", "plan": "paid"}, (UserMessage("?"),), Tenant("acme"))
    assert context.get("plan") == "free"


def test_a_context_cannot_be_changed_in_any_of_its_parts() -> None:
    values = {"tenant": "acme"}
    context = ToolContext(values, value=Tenant("acme"))
    values["tenant"] = "other"
    with pytest.raises(TypeError):
        context.values["tenant"] = "other"  # type: ignore[index]
    for part in ("values", "history", "value"):
        with pytest.raises(AttributeError, match=part):
            setattr(context, part, None)
        with pytest.raises(AttributeError, match=part):
            delattr(context, part)
    assert context == ToolContext({"tenant": "acme"}, value=Tenant("acme"))
    assert context != ToolContext({"tenant": "acme"})


# Any type: with whether it is no context, the context itself or something that holds one; and a value that fits it.
NONE, ITSELF, WITHIN = "none", "itself", "within"
Kind = tuple[Any, str, Any]
PLAIN: list[Kind] = [
    (int, NONE, 1),
    (str, NONE, "x"),
    (Any, NONE, FORGED),
    (Order, NONE, {"id": 1}),
    (Tenant, NONE, {"name": "victim"}),
    (list[Tenant], NONE, [{"name": "victim"}]),
]
CONTEXTS: list[Kind] = [(each, ITSELF, FORGED) for each in (ToolContext, ToolContext[Tenant], ToolContext[Any])]
HOLDERS: list[Kind] = [(Carrying, WITHIN, {"context": FORGED}), (Pair, WITHIN, {"number": 1, "context": FORGED})]


def kept(kind: Kind, annotated: bool) -> Kind:
    hint, standing, value = kind
    return Annotated[hint, "words"] if annotated else hint | None, standing, value


def held(kind: Kind, how: int) -> Kind:
    hint, standing, value = kind
    part = {"part": value}
    ways: list[tuple[Any, Any]] = [
        (list[hint], [value]),  # type: ignore[valid-type]
        (dict[str, hint], part),  # type: ignore[valid-type]
        (tuple[hint, int], [value, 1]),  # type: ignore[valid-type]
        (hint | int, value),
        (create_model("Model", part=(hint, ...)), part),
        (create_model("Hidden", part=(hint | None, None)), part),
        (make_dataclass("Data", [("part", hint)]), part),
        (TypedDict("Typed", {"part": hint}), part),  # type: ignore[operator]
        (NamedTuple("Named", [("part", hint)]), part),
    ]
    holder, fitting = ways[how]
    return holder, NONE if standing == NONE else WITHIN, fitting


def kinds_of(leaves: list[Kind]) -> st.SearchStrategy[Kind]:
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.builds(kept, inner, st.booleans()) | st.builds(held, inner, st.integers(0, 8)),
        max_leaves=4,
    )


OURS = st.builds(lambda kind, ways: reduce(kept, ways, kind), st.sampled_from(CONTEXTS), st.lists(st.booleans()))
NAMES = st.sampled_from(["a", "b_", "values", "value"])
FORGERIES = st.recursive(
    st.sampled_from([FORGED, FORGED["values"], {"part": FORGED}, {"context": FORGED}]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.fixed_dictionaries({"part": inner}) | inner.map(to_json).map(bytes.decode)
    ),
    max_leaves=3,
)


def contexts_in(value: Any) -> list[ToolContext]:
    if isinstance(value, ToolContext):
        return [value]
    inner = value if isinstance(value, dict) else vars(value) if hasattr(value, "__dict__") else {}
    parts = value if isinstance(value, list | tuple) else inner.values()
    return [found for each in parts for found in contexts_in(each)]


def function_of(parameters: dict[str, Kind], received: list[dict[str, Any]]) -> Callable[..., Any]:
    async def order(**arguments: Any) -> None:
        received.append(arguments)

    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in parameters])
    order.__signature__ = signature  # type: ignore[attr-defined]
    order.__annotations__ = {name: hint for name, (hint, _, _) in parameters.items()}
    return order


@given(st.dictionaries(NAMES, kinds_of(PLAIN), max_size=3), OURS, st.booleans(), st.lists(FORGERIES, min_size=1))
@settings(max_examples=settings().max_examples // 3)
async def test_the_context_of_a_tool_is_always_the_callers(
    parameters: dict[str, Kind], ours: Kind, takes_it: bool, forgeries: list[Any]
) -> None:
    received: list[dict[str, Any]] = []
    callback = FunctionToolCallback.from_function(
        function_of(parameters | ({"ctx": ours} if takes_it else {}), received)
    )
    schema = callback.definition.input_schema
    assert not {"ctx", "history"} & schema["properties"].keys()
    fitting = {name.removesuffix("_"): value for name, (_, _, value) in parameters.items()}
    whole = len(parameters) == 1 and fitting.keys() != schema["properties"].keys()
    fitting = next(iter(fitting.values())) if whole else fitting
    await callback.call(to_json(fitting).decode(), CALLER)
    assert len(received) == 1
    for forged in forgeries:
        for name in (*schema["properties"], "ctx"):
            with suppress(ToolArgumentsError):
                await callback.call(to_json(fitting | {name: forged}).decode(), CALLER)
    assert all(list(map(id, contexts_in(each))) == [id(CALLER)] * takes_it for each in received)


@given(st.dictionaries(NAMES, kinds_of(PLAIN), max_size=2), kinds_of([*CONTEXTS, *HOLDERS]), st.data())
@settings(max_examples=settings().max_examples // 3)
def test_a_context_in_any_other_place_stops_the_definition(
    parameters: dict[str, Kind], kind: Kind, data: st.DataObject
) -> None:
    others = {"other": data.draw(OURS)} if kind[1] == ITSELF else {}
    function = function_of({**parameters, "ctx": kind, **others}, [])
    with pytest.raises(ToolDefinitionError, match=r"^tool order: parameter (ctx|other) "):
        FunctionToolCallback.from_function(function)
