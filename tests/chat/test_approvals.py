"""Tool calls that wait for the user's approval."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from tests.chat.scripted import ADD, Turn, WatchedModel, calls, client_of, says, told
from tests.waiting import PATIENCE
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient
from toolchat.chat.request import Approval
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback

SHIP_1, SHIP_2 = ("ship", '{"number":1}'), ("ship", '{"number":2}')


@dataclass
class Dock:
    """A tool that needs consent, and what it has done."""

    shipped: list[int]

    @tool(requires_approval=True)
    async def ship(self, number: int) -> str:
        """Ship an order."""
        self.shipped.append(number)
        return f"shipped {number}"


async def paused_at(*turns: Turn, dock: Dock) -> tuple[ChatClient, WatchedModel, ChatResponse]:
    client, model = client_of(*turns)
    response = await client.prompt("Ship").tools(dock, "add").call().response()
    assert response.finish_reason == APPROVAL_REQUIRED
    return client, model, response


async def test_a_call_that_needs_approval_pauses_the_turn_after_the_other_calls() -> None:
    dock = Dock([])
    client, model, paused = await paused_at(calls(SHIP_1, ADD, SHIP_2), says("done"), dock=dock)
    assert dock.shipped == []
    assert [each.result for each in paused.executions] == ["3"]
    assert [call.arguments for call in paused.waiting_calls] == [SHIP_1[1], SHIP_2[1]]
    assert len(model.prompts) == 1
    approved = {"call_0": Approval(True), "call_2": Approval(True)}
    response = await client.resume(paused, approved).tools(dock, "add").call().response()
    assert told(model.prompts[1]) == ["shipped 1", "3", "shipped 2"]
    assert [each.call.name for each in response.whole_turn().executions] == ["add", "ship", "ship"]


@pytest.mark.parametrize("limit", [None, 100, "no number"])
async def test_a_rule_decides_for_each_call_whether_it_waits(limit: float | str | None) -> None:
    paid: list[int] = []

    async def is_large(arguments: Mapping[str, int], context: ToolContext) -> bool:
        return arguments["amount"] > int(context.get("limit"))

    @tool(requires_approval=is_large)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return "paid"

    client, model = client_of(calls(("pay", '{"amount":"99"}'), ("pay", '{"amount":101}'), ("pay", "{}")), says("done"))
    limits = {} if limit is None else {"limit": limit}
    paused = await client.prompt("?").tools(pay).tool_context(limits).call().response()
    # A rule that fails allows nothing. A call that cannot run asks nobody.
    assert paid == ([99] if limit == 100 else [])
    assert [call.id for call in paused.waiting_calls] == ["call_1"] if limit == 100 else ["call_0", "call_1"]
    await client.resume(paused, {"call_1": Approval(True)}).tools(pay).call().response()
    assert paid[-1] == 101
    assert '"invalid-arguments"' in told(model.prompts[1])[2]


@pytest.mark.parametrize(
    ("rule", "approver", "expected"),
    [
        (True, "manager", "manager"),
        (lambda _, __: "lead", "manager", "lead"),
        (lambda _, __: True, "manager", "manager"),
        (lambda _, __: 1 / 0, "manager", "manager"),
        (lambda _, __: True, "", ""),
    ],
    ids=["always", "a role of the rule's own", "by the rule", "a rule that fails", "who asked"],
)
async def test_the_role_of_who_approves_is_told_with_the_call(rule: Any, approver: str, expected: str) -> None:
    @tool(requires_approval=rule, approver=approver)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return "paid"

    client, _ = client_of(calls(("pay", '{"amount":1}')), says("done"))
    paused = await client.prompt("?").tools(pay).call().response()
    assert paused.approvers == ({"call_0": expected} if expected else {})
    response = await client.resume(paused, {"call_0": Approval(True, by="lead")}).tools(pay).call().response()
    assert response.executions[0].to_dict()["approved_by"] == "lead"


async def test_a_call_whose_rule_names_nobody_runs() -> None:
    @tool(requires_approval=lambda _, __: "", approver="manager")
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return "paid"

    client, _ = client_of(calls(("pay", '{"amount":1}')), says("done"))
    response = await client.prompt("?").tools(pay).call().response()
    assert [each.result for each in response.executions] == ["paid"]


async def test_a_rule_that_blocks_does_not_stop_the_event_loop() -> None:
    answered = Event()

    def is_denied(arguments: Mapping[str, int], context: ToolContext) -> bool:
        return not answered.wait(PATIENCE) or context.caller is not current_caller.get()

    @tool(requires_approval=is_denied)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    client, _ = client_of(calls(("pay", '{"amount":1}')), says("done"))
    asyncio.get_running_loop().call_later(0.01, answered.set)
    response = await client.prompt("?").tools(pay).call().response()
    assert [each.result for each in response.executions] == ["paid 1"]


SHIP_7 = '{"number":7}'


def refusal(reason: str = "the user rejected this call") -> str:
    return f'{{"error":{{"kind":"rejected","message":"{reason}"}}}}'


@pytest.mark.parametrize(
    ("approvals", "shipped", "results"),
    [
        ({"call_0": Approval(True), "call_1": Approval(True)}, [1, 2], ["shipped 1", "shipped 2"]),
        ({"call_0": Approval(True), "call_1": Approval(False, "too early")}, [1], ["shipped 1", refusal("too early")]),
        ({"call_1": Approval(True)}, [2], [refusal(), "shipped 2"]),
        ({"call_0": Approval(True, arguments=SHIP_7), "call_1": Approval(True)}, [7, 2], ["shipped 7", "shipped 2"]),
        ({"other": Approval(True)}, [], [refusal()] * 2),
        ({}, [], [refusal()] * 2),
    ],
    ids=["approved", "rejected with a reason", "one decision missing", "changed", "another id", "none"],
)
async def test_approved_calls_run_and_rejected_calls_are_reported_to_the_model(
    approvals: Mapping[str, Approval], shipped: list[int], results: list[str]
) -> None:
    dock = Dock([])
    client, model, paused = await paused_at(calls(SHIP_1, SHIP_2), says("done"), dock=dock)
    response = await client.resume(paused, approvals).tools(dock, "add").call().response()
    assert sorted(dock.shipped) == sorted(shipped)
    assert told(model.prompts[1]) == results
    assert (response.message.text, response.finish_reason) == ("done", "stop")


async def test_a_paused_turn_resumes_with_its_context_and_options() -> None:
    @tool(requires_approval=True)
    async def ship(number: int, context: ToolContext) -> str:
        return f"shipped {number} for {context.get('tenant')}"

    client, model = client_of(calls(ADD), calls(SHIP_1), says("done"))
    options = ChatOptions(temperature=0.5, max_tokens=7)
    asking = client.prompt("Ship").tools(FunctionToolCallback.from_function(ship), "add").options(options)
    paused = await asking.tool_context({"tenant": "acme"}).call().response()
    going_on = client.resume(paused, {"call_0": Approval(True)}).tools(FunctionToolCallback.from_function(ship))
    response = await going_on.tool_context({"more": 1}).call().response()
    assert response.executions[0].result == "shipped 1 for acme"
    assert [each.options for each in model.prompts] == [options] * 3
    assert response.context.values == {"tenant": "acme", "more": 1}


async def test_changed_arguments_stand_in_the_conversation_and_are_checked() -> None:
    dock = Dock([])
    client, model, paused = await paused_at(calls(SHIP_1), says("done"), dock=dock)
    changed = {"call_0": Approval(True, arguments='{"number":"none"}')}
    response = await client.resume(paused, changed).tools(dock).call().response()
    assert response.executions[0].error_kind == "invalid-arguments"
    assert dock.shipped == []
    assert model.prompts[1].messages[-2] == calls(("ship", '{"number":"none"}'))


async def test_an_id_that_comes_again_is_not_approved_by_the_decision_before() -> None:
    dock = Dock([])
    client, _, paused = await paused_at(calls(SHIP_1), calls(SHIP_2), says("done"), dock=dock)
    again = await client.resume(paused, {"call_0": Approval(True)}).tools(dock).call().response()
    assert again.finish_reason == APPROVAL_REQUIRED
    assert [call.arguments for call in again.message.tool_calls] == ['{"number":2}']
    assert dock.shipped == [1]
    done = await client.resume(again, {"call_0": Approval(False)}).tools(dock).call().response()
    assert (done.message.text, dock.shipped) == ("done", [1])
