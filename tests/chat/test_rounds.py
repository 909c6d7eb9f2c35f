"""Every round of a turn passes the advisors in the same way, the one that goes on after an approval as well."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from tests.chat.scripted import calls, client_of, says, told
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.request import Approval, ChatRequest, Emit
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback, ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ProceedToolCall

Change = Callable[[tuple[ToolCallback, ...]], tuple[ToolCallback, ...]]


class Changing(Advisor):
    """Changes the tools of each request that passes."""

    def __init__(self, change: Change, order: int) -> None:
        self.order, self._change = order, change

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        return await chain.proceed(request.with_tools(self._change(request.tools)), emit)


class Wrapped(ToolCallback):
    """A tool whose result is redacted."""

    def __init__(self, tool: ToolCallback) -> None:
        self.definition, self.metadata, self._tool = tool.definition, tool.metadata, tool

    async def call(self, tool_input: str, context: ToolContext) -> str:
        return f"redacted {await self._tool.call(tool_input, context)}"


def pay_tool(name: str, *, guarded: bool) -> ToolCallback:
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    return FunctionToolCallback.from_function(pay, name=name, requires_approval=guarded)


def wrap(tools: tuple[ToolCallback, ...], guarded: bool) -> tuple[ToolCallback, ...]:
    return tuple(Wrapped(tool) for tool in tools)


def remove(tools: tuple[ToolCallback, ...], guarded: bool) -> tuple[ToolCallback, ...]:
    return tuple(tool for tool in tools if tool.definition.name != "pay")


def add(tools: tuple[ToolCallback, ...], guarded: bool) -> tuple[ToolCallback, ...]:
    return (*tools, pay_tool("payMore", guarded=guarded))


def rename(tools: tuple[ToolCallback, ...], guarded: bool) -> tuple[ToolCallback, ...]:
    renamed = [Wrapped(tool) for tool in tools]
    for each in renamed:
        each.definition = replace(each.definition, name=f"my_{each.definition.name}")
    return tuple(renamed)


CALLS = calls(*((name, '{"amount":1}') for name in ("pay", "payMore", "my_pay")))
CHANGES = [wrap, remove, add, rename]


@pytest.mark.parametrize(("change", "order"), list(product(CHANGES, [280, 350])))
@pytest.mark.parametrize("stream", [False, True])
async def test_what_an_advisor_does_to_tools_holds_after_an_approval(
    change: Callable[[tuple[ToolCallback, ...], bool], tuple[ToolCallback, ...]], order: int, stream: bool
) -> None:
    results = []
    for guarded in (False, True):
        advisor = Changing(lambda tools, guarded=guarded: change(tools, guarded), order)  # type: ignore[misc]
        client, model = client_of(CALLS, says("done"), advisors=[advisor])
        own = pay_tool("pay", guarded=guarded)
        spec = client.prompt("?").tools(own)
        response = await (spec.stream() if stream else spec.call()).response(*[_ignore] * stream)
        while response.finish_reason == APPROVAL_REQUIRED:
            approvals = {call.id: Approval(True) for call in response.waiting_calls}
            spec = client.resume(response, approvals).tools(own)
            response = await (spec.stream() if stream else spec.call()).response(*[_ignore] * stream)
        results.append((told(model.prompts[-1]), [tool.name for tool in model.prompts[-1].tools]))
    fresh, resumed = results
    assert resumed == fresh


async def _ignore(_: object) -> None: ...


class Auditing(Advisor):
    """Counts the calls, doubles their amount, and marks the results."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.seen: list[str] = []

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        return await chain.proceed(request, emit)

    async def around_tool_call(self, call: ToolCall, context: ToolContext, proceed: ProceedToolCall) -> ToolResult:
        self.seen.append(call.arguments)
        result = await proceed(replace(call, arguments=call.arguments.replace("1", "2")), context)
        return result._replace(text=f"{result.text} by {self.order}")


@pytest.mark.parametrize("guarded", [False, True])
async def test_advisors_wrap_each_call_outermost_first(guarded: bool) -> None:
    outer, inner = Auditing(100), Auditing(400)
    client, model = client_of(calls(("pay", '{"amount":"1"}')), says("done"), advisors=[inner, outer])
    own = pay_tool("pay", guarded=guarded)
    response = await client.prompt("?").tools(own).call().response()
    if guarded:
        response = await client.resume(response, {"call_0": Approval(True)}).tools(own).call().response()
    assert told(model.prompts[1]) == ["paid 2 by 400 by 100"]
    assert (outer.seen, inner.seen) == (['{"amount":"1"}'], ['{"amount":"2"}'])
    (execution,) = response.executions
    assert execution.repaired  # a text where a number is needed
    assert execution.call.arguments == '{"amount":"1"}'


async def test_an_advisor_that_returns_no_result_fails_the_call() -> None:
    class Careless(Auditing):
        async def around_tool_call(self, call: ToolCall, context: ToolContext, proceed: ProceedToolCall) -> ToolResult:
            return (await proceed(call, context)).text  # type: ignore[return-value]

    client, model = client_of(calls(("pay", '{"amount":1}')), says("done"), advisors=[Careless(1)])
    await client.prompt("?").tools(pay_tool("pay", guarded=False)).call().response()
    assert told(model.prompts[1]) == ['{"error":{"kind":"failed","message":"the tool failed"}}']


@pytest.mark.parametrize("arguments", ['{"amount":1}', '{"amount":1,"cents":0}'])
async def test_an_advisor_cannot_change_a_call_to_one_that_needs_approval(arguments: str) -> None:
    paid: list[int] = []

    async def pay(amount: int) -> None:
        """Pay an amount."""
        paid.append(amount)

    class Changes(Auditing):
        async def around_tool_call(self, call: ToolCall, context: ToolContext, proceed: ProceedToolCall) -> ToolResult:
            return await proceed(replace(call, arguments='{"amount":1000}'), context)

    client, model = client_of(calls(("pay", arguments)), says("done"), advisors=[Changes(1)])
    own = FunctionToolCallback.from_function(pay, requires_approval=lambda given, _: bool(given["amount"] > 100))
    await client.prompt("?").tools(own).call().response()
    assert (paid, "changed it to a call that needs approval" in told(model.prompts[1])[0]) == ([], True)
