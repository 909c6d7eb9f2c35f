"""Advisors inside the tool loop that offer other tools than the question does."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chat.scripted import ADD, Turn, WatchedModel, add, calls, client_of, offered, says, told
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient
from toolchat.chat.request import Approval, ChatRequest, Emit
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback

DOUBLE, SHIP = ("double", '{"n":4}'), ("ship", '{"number":1}')

Tools = tuple[ToolCallback, ...]


@dataclass(eq=False)
class Offering(Advisor):
    """Changes what each turn offers, and notes what it was given."""

    change: Callable[[Tools], Tools]
    order: int = 320
    given: list[list[str]] = field(default_factory=list)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        self.given.append([each.definition.name for each in request.tools])
        changed = ChatRequest(request.messages, self.change(request.tools), request.context, request.options)
        return await chain.proceed(changed, emit)


@dataclass
class Dock:
    """A tool that needs consent, and what it has done."""

    shipped: list[int] = field(default_factory=list)

    @tool(requires_approval=True)
    async def ship(self, number: int) -> str:
        """Ship an order."""
        self.shipped.append(number)
        return f"shipped {number}"


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


async def test_a_tool_removed_by_an_advisor_inside_the_loop_cannot_run() -> None:
    advisor = Offering(lambda tools: tools[:1])
    client, model = client_of(calls(ADD, ("receipt", '{"number":1}')), says("3"), advisors=[advisor])
    response = await client.prompt("?").tools("add", "receipt").call().response()
    assert [each.error_kind for each in response.executions] == [None, "unknown-tool"]
    assert offered(model) == [["add"], ["add"]]


async def test_the_offered_tools_may_change_in_every_round() -> None:
    both = (FunctionToolCallback.from_function(add), FunctionToolCallback.from_function(double))
    turns = iter(both)
    client, model = client_of(
        calls(ADD, DOUBLE), calls(ADD, DOUBLE), says("done"), advisors=[Offering(lambda _: (next(turns, both[0]),))]
    )
    response = await client.prompt("?").tools(*both).call().response()
    assert [each.error_kind for each in response.executions] == [None, "unknown-tool", "unknown-tool", None]
    assert offered(model) == [["add"], ["double"], ["add"]]


async def test_an_advisor_outside_the_loop_changes_the_tools_of_the_whole_request() -> None:
    advisor = adding(double)
    advisor.order = 250
    client, model = client_of(calls(DOUBLE), says("8"), advisors=[advisor])
    response = await client.prompt("?").tools("add").call().response()
    assert [each.result for each in response.executions] == ["8"]
    assert (advisor.given, offered(model)) == ([["add"]], [["add", "double"]] * 2)


async def paused_at(*turns: Turn, dock: Dock) -> tuple[ChatClient, WatchedModel, ChatResponse]:
    """A question that waits for consent to a call of a tool that only an advisor offers."""
    client, model = client_of(*turns, advisors=[adding(dock.ship, double)])
    paused = await client.prompt("Ship").tools("add").call().response()
    assert (paused.finish_reason, dock.shipped) == (APPROVAL_REQUIRED, [])
    return client, model, paused


async def test_an_added_tool_that_needs_approval_pauses_and_then_runs() -> None:
    dock = Dock()
    client, model, paused = await paused_at(calls(SHIP, DOUBLE), says("done"), dock=dock)
    yes = {"call_0": Approval(True), "call_1": Approval(True)}
    response = await client.resume(paused, yes).tools("add").call().response()
    assert (dock.shipped, told(model.prompts[1])) == ([1], ["shipped 1", "8"])
    assert response.message.text == "done"
    assert offered(model) == [["add", "ship", "double"]] * 2


async def test_going_on_does_not_ask_the_model_for_the_paused_turn_again() -> None:
    dock = Dock()
    client, model, paused = await paused_at(calls(SHIP), says("done"), dock=dock)
    events = [each async for each in client.resume(paused, {"call_0": Approval(True)}).tools("add").stream().events()]
    last = events[-1]
    assert isinstance(last, ChatResponse)
    assert (len(model.prompts), last.rounds, last.usage) == (2, 2, paused.usage)
