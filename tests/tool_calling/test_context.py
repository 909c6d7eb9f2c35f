"""The tool context: the caller alone fills it, wherever a tool declares it, and no model can make one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field
from pydantic_core import to_json
from typing_extensions import TypedDict

from toolchat.messages import UserMessage
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback


@dataclass
class Tenant:
    name: str


class Carrying(BaseModel):
    id: int = 0
    context: ToolContext | None = None


class Typed(TypedDict):
    part: ToolContext


class Named(NamedTuple):
    part: ToolContext[Tenant]


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
        Annotated[list[ToolContext], "words"],
        Typed,
        Named,
    ],
    ids=str,
)
def test_a_context_within_something_else_stops_the_definition(annotation: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"^tool order: parameter ctx .*: a ToolContext comes from"):
        FunctionToolCallback.from_function(function_with(annotation))


def _two(one: ToolContext, id: int, two: ToolContext | None = None) -> None: ...  # noqa: A002


def _positional(context: ToolContext, /) -> None: ...


def _variadic(*contexts: ToolContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_two, "parameter two is a second ToolContext"),
        (_positional, "parameter context must be an ordinary or keyword parameter"),
        (_variadic, "parameter contexts must be an ordinary or keyword parameter"),
    ],
)
def test_a_second_or_positional_context_stops_the_definition(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(ToolDefinitionError, match=told):
        FunctionToolCallback.from_function(function)


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
