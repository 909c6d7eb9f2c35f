"""Advisors around a question: their order, what they may change, the tools included, and what they may tell."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product

import pytest

from tests.chat.scripted import ADD, MarkingAdvisor, WatchedModel, add, answer_of, calls, client_of, offered, says, told
from toolchat.chat.advisors.base import Advisor, AdvisorChain, BaseAdvisor
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.request import Approval, ChatRequest, Emit, Notice
from toolchat.messages import ToolCall, UserMessage
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback, ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ProceedToolCall


class Politely(BaseAdvisor):
    """Changes the question before and the answer after."""

    order = 10

    def before(self, request: ChatRequest) -> ChatRequest:
        return replace(request, messages=(*request.messages, UserMessage("Please.")))

    def after(self, response: ChatResponse) -> ChatResponse:
        return replace(response, message=says(f"{response.message.text} Thank you."))


async def test_an_advisor_for_one_question_changes_it_before_and_its_answer_after() -> None:
    client, model = client_of(says("ok"))
    assert await client.prompt("?").advisors(Politely()).call().content() == "ok Thank you."
    assert await client.prompt("?").call().content() == "ok"
    assert [prompt.messages[-1] for prompt in model.prompts] == [UserMessage("Please."), UserMessage("?")]
    *_, last = [event async for event in client.prompt("?").advisors(Politely()).stream().events()]
    assert isinstance(last, ChatResponse)
    assert last.message.text == "ok Thank you."


async def test_a_chain_can_be_entered_behind_any_of_its_advisors() -> None:
    outer, middle, inner = MarkingAdvisor(1, " outer"), MarkingAdvisor(2, " middle"), MarkingAdvisor(3, " inner")
    advisors: tuple[Advisor, ...] = (inner, outer, middle)
    chain = AdvisorChain.of(advisors, WatchedModel([says("ok")]))
    assert await answer_of(chain) == "ok inner middle outer"
    assert await answer_of(chain.copy_after(outer)) == "ok inner middle"
    assert await answer_of(chain.copy_after(inner)) == "ok"
    with pytest.raises(ValueError, match="not in tuple"):
        chain.copy_after(BaseAdvisor())


@pytest.mark.parametrize(
    "name",
    ["", "Todo", "to do", "a\n", "a\ndata: x", "todo1", "进度", "delta", "usage", "done", "error", "tool_call_started",
     "tool_call_finished"],
)  # fmt: skip
def test_a_notice_with_a_name_that_a_stream_cannot_carry_is_refused(name: str) -> None:
    # Other characters break the event's form, and the service's own names mean something else to clients.
    with pytest.raises(ValueError, match="notice"):
        Notice(name, {})
    assert Notice("my_progress", {}).name == "my_progress"


async def test_text_that_is_put_behind_an_answer_afterwards_is_a_piece_of_the_stream() -> None:
    class Signed(BaseAdvisor):
        def after(self, response: ChatResponse) -> ChatResponse:
            return response.with_text(f"{response.message.text} (signed)")

    client, _ = client_of(says("ok"), advisors=(Signed(),))
    pieces = [piece async for piece in client.prompt("?").stream().content()]
    assert pieces == ["o", "k", " (signed)"]


DOUBLE = ("double", '{"n":4}')
Tools = tuple[ToolCallback, ...]


@dataclass(eq=False)
class Offering(Advisor):
    """Changes what each turn offers, and notes what it was given."""

    change: Callable[[Tools], Tools]
    order: int = 320
    given: list[list[str]] = field(default_factory=list)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        self.given.append([each.definition.name for each in request.tools])
        return await chain.proceed(request.with_tools(self.change(request.tools)), emit)


async def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def adding(*added: Callable[..., object]) -> Offering:
    callbacks = tuple(map(FunctionToolCallback.from_function, added))
    return Offering(lambda tools: (*tools, *callbacks) if tools else ())


async def test_a_tool_that_an_advisor_inside_the_loop_adds_is_offered_and_can_be_called_in_every_turn() -> None:
    advisor = adding(double)
    client, model = client_of(calls(DOUBLE, ADD), calls(DOUBLE), says("8"), advisors=[advisor])
    response = await client.prompt("?").tools("add").call().response()
    assert [each.result for each in response.executions] == ["8", "3", "8"]
    assert offered(model) == [["add", "double"]] * 3
    # The loop keeps what the question offers; what the advisor adds is added anew.
    assert advisor.given == [["add"]] * 3


async def test_the_offered_tools_may_change_in_every_round() -> None:
    both = (FunctionToolCallback.from_function(add), FunctionToolCallback.from_function(double))
    turns = iter(both)
    client, model = client_of(
        calls(ADD, DOUBLE), calls(ADD, DOUBLE), says("done"), advisors=[Offering(lambda _: (next(turns, both[0]),))]
    )
    response = await client.prompt("?").tools(*both).call().response()
    assert [each.error_kind for each in response.executions] == [None, "unknown-tool", "unknown-tool", None]
    assert offered(model) == [["add"], ["double"], ["add"]]


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


def wrap(tools: Tools, guarded: bool) -> Tools:
    return tuple(Wrapped(tool) for tool in tools)


def remove_pay(tools: Tools, guarded: bool) -> Tools:
    return tuple(tool for tool in tools if tool.definition.name != "pay")


def add_more(tools: Tools, guarded: bool) -> Tools:
    return (*tools, pay_tool("payMore", guarded=guarded))


def rename(tools: Tools, guarded: bool) -> Tools:
    renamed = [Wrapped(tool) for tool in tools]
    for each in renamed:
        each.definition = replace(each.definition, name=f"my_{each.definition.name}")
    return tuple(renamed)


PAY_CALLS = calls(*((name, '{"amount":1}') for name in ("pay", "payMore", "my_pay")))
CHANGES = [wrap, remove_pay, add_more, rename]


@pytest.mark.parametrize(("change", "order"), list(product(CHANGES, [280, 350])))
@pytest.mark.parametrize("stream", [False, True])
async def test_what_an_advisor_does_to_tools_holds_after_an_approval(
    change: Callable[[Tools, bool], Tools], order: int, stream: bool
) -> None:
    results = []
    for guarded in (False, True):
        advisor = Offering(lambda tools, guarded=guarded: change(tools, guarded), order)  # type: ignore[misc]
        client, model = client_of(PAY_CALLS, says("done"), advisors=[advisor])
        own = pay_tool("pay", guarded=guarded)
        spec = client.prompt("?").tools(own)
        response = await (spec.stream() if stream else spec.call()).response(*[_ignore] * stream)
        while response.finish_reason == APPROVAL_REQUIRED:
            approvals = {call.id: Approval(True) for call in response.waiting_calls}
            spec = client.resume(response, approvals).tools(own)
            response = await (spec.stream() if stream else spec.call()).response(*[_ignore] * stream)
        offers = [tool.name for tool in model.prompts[-1].tools]
        results.append((told(model.prompts[-1]), offers, len(model.prompts)))
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
