"""The tool loop of a question: which tools run, which wait for approval or for the caller, and how it ends."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from tests.chat.played import asks as plays, says as plays_text
from tests.chat.scripted import ADD, Turn, WatchedModel, add, calls, client_of, offered, receipt, says, told
from tests.models.openai.playing import played
from tests.models.test_refused_tools import names_in, refusal, resilient_of
from tests.players.openai_player import Answer, PlayedRequest, message, whole
from tests.waiting import PATIENCE
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED, ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.request import Approval, ChatEvent, ChatRequest
from toolchat.errors import ToolLoop, UpstreamUnavailable
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse, Prompt, TextDelta
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, tool
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager


def may_call(prompt: Prompt) -> bool:
    return prompt.options.tool_choice != "none"


async def test_the_same_call_for_ever_is_run_three_times_and_then_ends() -> None:
    client, model = client_of(lambda prompt: calls(ADD) if may_call(prompt) else says("3 it is"), max_rounds=50)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "3 it is"
    assert [each.error_kind for each in response.executions] == [None, None, None, "repeated-call"]
    assert len(model.prompts) == 5


async def test_a_tool_marked_return_direct_is_the_answer() -> None:
    client, model = client_of(calls(("receipt", '{"number":7}'), ("receipt", '{"number":8}')))
    response = await client.prompt("?").tools("receipt").call().response()
    assert response.message.text == "receipt 7\n\nreceipt 8"
    assert response.finish_reason == "return_direct"
    assert len(model.prompts) == 1


async def test_a_direct_answer_is_whole_however_long_and_a_mixed_one_is_shortened() -> None:
    @tool(return_direct=True)
    async def report() -> str:
        return "long " * 100

    for model_calls, last in ((calls(("report", "")), "long " * 100), (calls(("report", ""), ADD), "done")):
        client, model = client_of(model_calls, says("done"), max_result_chars=100)
        told: list[str] = []

        async def emit(event: ChatEvent, told: list[str] = told) -> None:
            told.extend([event.text] if isinstance(event, TextDelta) else [])

        response = await client.prompt("?").tools(report, "add").stream().response(emit)
        assert (response.message.text, "".join(told)) == (last, last)
        assert len(response.executions[0].result) < 200, "the trace is the model's"
    (results,) = [each for each in model.prompts[-1].messages if isinstance(each, ToolResponseMessage)]
    assert len(results.responses[0].text) < 200


@pytest.mark.parametrize(("limit", "executed"), [(2, ["3"]), (9, ["3", "3"])])
async def test_an_eligibility_of_ones_own_decides_about_every_response(limit: int, executed: list[str]) -> None:
    seen: list[bool] = []

    def first_few(request: ChatRequest, response: ChatResponse) -> bool:
        seen.append(response.has_tool_calls)
        return len(seen) < limit

    client, _ = client_of(calls(ADD), calls(ADD), says("3"), eligibility=first_few)
    response = await client.prompt("?").tools("add").call().response()
    assert [each.result for each in response.executions] == executed
    assert response.has_tool_calls == (limit == 2)
    assert seen == [True, True]


@pytest.mark.parametrize("reason", ["length", "content_filter", "incomplete"])
@pytest.mark.parametrize("guarded", [False, True])
async def test_calls_of_a_message_that_was_cut_do_not_run(reason: str, guarded: bool) -> None:
    paid: list[int] = []

    async def pay(amount: int = 100) -> str:
        paid.append(amount)
        return "paid"

    cut = ChatResponse(calls(("pay", ""), ADD), reason, Usage(), "scripted-1")
    client, _ = client_of(cut, calls(("pay", '{"amount":1}')), says("done"))
    tool = FunctionToolCallback.from_function(pay, requires_approval=guarded)
    response = await client.prompt("?").tools(tool, "add").call().response()
    assert paid == ([] if guarded else [1])
    assert [each.error_kind for each in response.executions] == ["not-run"] * 2 + ([] if guarded else [None])
    assert response.finish_reason == ("approval_required" if guarded else "stop")


ROLL = ClientToolCallback(ToolDefinition("roll", "Roll a die", {"type": "object", "properties": {}}))
ROLLED = ("roll", "{}")


async def asked(*turns: Any, options: ChatOptions | None = None, tools: tuple[Any, ...] = (), **limits: Any) -> Any:
    client, model = client_of(*turns, **limits)
    question = client.prompt("?").tools("add", ROLL, *tools).options(options or ChatOptions())
    return await question.call().response(), model, client


async def test_a_call_of_the_callers_tool_ends_the_question_and_comes_back_to_the_caller() -> None:
    response, model, _ = await asked(calls(ROLLED), says("never asked"))
    assert [call.name for call in response.message.tool_calls] == ["roll"]
    assert (response.finish_reason, response.executions, len(model.prompts)) == ("tool_calls", (), 1)
    assert offered(model) == [["add", "roll"]]


async def test_the_other_calls_of_the_message_are_run_first_and_stand_in_the_history() -> None:
    response, model, _ = await asked(calls(ROLLED, ADD, text="Both."), says("never asked"))
    assert [(each.call.name, each.result) for each in response.executions] == [("add", "3")]
    assert response.history[-2:] == (response.message, ToolResponseMessage((ToolResponse("call_1", "add", "3"),)))
    assert len(model.prompts) == 1


async def test_a_stream_reports_only_the_services_calls_and_no_text_twice() -> None:
    client, _ = client_of(calls(ROLLED, ADD, text="Both."))
    *events, last = [event async for event in client.prompt("?").tools("add", ROLL).stream().events()]
    assert isinstance(last, ChatResponse)
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Both."
    ran = [each.call.name for each in events if isinstance(each, ToolCallStarted | ToolCallFinished)]
    assert ran == ["add", "add"]


async def test_a_direct_result_beside_the_callers_call_is_no_answer() -> None:
    response, _, _ = await asked(
        calls(ROLLED, ("receipt", '{"number":1}')), tools=(FunctionToolCallback.from_function(receipt),)
    )
    assert response.finish_reason == "tool_calls"
    assert response.message.text == ""


@pytest.mark.parametrize("others", [(), (ADD,)], ids=["alone", "beside another"])
async def test_a_message_that_was_cut_ends_the_question_as_cut_if_the_caller_is_asked_for_a_call(
    others: tuple[tuple[str, str], ...],
) -> None:
    cut = ChatResponse(calls(ROLLED, *others), "length", Usage(), "scripted-1")
    response, model, _ = await asked(cut, says("never asked"))
    assert (response.finish_reason, len(model.prompts)) == ("length", 1)
    assert [each.error_kind for each in response.executions] == ["not-run"] * len(others)


@tool(requires_approval=True)
async def ship(number: int) -> str:
    raise AssertionError("not without consent")


async def test_a_call_that_needs_consent_is_not_run_beside_the_callers() -> None:
    response, _, _ = await asked(
        calls(ROLLED, ("ship", '{"number":1}')), tools=(FunctionToolCallback.from_function(ship),)
    )
    assert response.finish_reason == "tool_calls"
    assert [each.error_kind for each in response.executions] == ["not-run"]


async def test_client_tools_stay_when_the_services_tools_are_withdrawn() -> None:
    response, model, _ = await asked(calls(ADD), calls(ROLLED), max_rounds=1)
    assert [call.name for call in response.message.tool_calls] == ["roll"]
    assert offered(model) == [["add", "roll"], ["roll"]]
    with pytest.raises(ToolLoop):
        await asked(calls(ADD), calls(ADD, ROLLED), max_rounds=1)


@pytest.mark.parametrize(
    ("choice", "tools", "later"),
    [("add", (ROLL,), None), ("required", (), None), ("required", (ROLL,), "required"), (None, (ROLL,), None)],
)
async def test_a_forced_tool_is_forced_once_unless_the_caller_waits_for_a_call(
    choice: str | None, tools: tuple[Any, ...], later: str | None
) -> None:
    client, model = client_of(calls(ADD), says("3"))
    await (
        client.prompt("?")
        .tools(FunctionToolCallback.from_function(add), *tools)
        .options(ChatOptions(tool_choice=choice))
        .call()
        .response()
    )
    assert [prompt.options.tool_choice for prompt in model.prompts] == [choice, later]


BY_HAND = ChatOptions(internal_tool_execution_enabled=False)


async def test_a_caller_may_run_the_calls_himself_round_by_round() -> None:
    client, model = client_of(calls(ADD), calls(("add", '{"a":3,"b":3}')), says("6"))
    tools, messages = [FunctionToolCallback.from_function(add)], (UserMessage("1+2+3?"),)
    conversation: tuple[Message, ...] = messages
    response = await client.prompt().messages(conversation).tools(*tools).options(BY_HAND).call().response()
    rounds = 1
    while response.has_tool_calls:
        assert response.executions == ()
        executed = await ToolCallingManager().execute_tool_calls(response.history, response.message, tools)
        conversation = executed.conversation_history
        response = await client.prompt().messages(conversation).tools(*tools).options(BY_HAND).call().response()
        rounds += 1
    assert (response.message.text, rounds) == ("6", 3)
    assert told(model.prompts[1]) == ["3"]
    assert told(model.prompts[2]) == ["6"]
    assert model.prompts[2].messages[0] == UserMessage("1+2+3?")


ADDING = calls(("add", '{"a":1,"b":2}'))
HISTORY: tuple[Message, ...] = (
    UserMessage("1+2?"),
    AssistantMessage("", (ToolCall("call_0", "gone", "{}"),)),
    ToolResponseMessage((ToolResponse("call_0", "gone", "3"),)),
    AssistantMessage("3"),
    UserMessage("Thanks"),
)


@pytest.mark.parametrize("forbidden", [ADDING, says("")], ids=["calls one", "gives nothing"])
async def test_withdrawn_tools_stay_defined_until_a_model_does_not_answer_and_no_call_runs(forbidden: Any) -> None:
    client, model = client_of(ADDING, forbidden, says("3"), max_rounds=1)
    response = await client.prompt("?").tools("add").call().response()
    assert (response.message.text, len(response.executions), response.rounds) == ("3", 1, 3)
    assert offered(model) == [["add"], ["add"], []]
    assert [each.options.tool_choice for each in model.prompts[:2]] == [None, "none"]
    assert model.prompts[2].messages == model.prompts[1].messages


async def test_a_model_that_calls_even_without_tools_is_an_error_that_counts_the_rounds_that_ran() -> None:
    client, model = client_of(ADDING, max_rounds=1)
    with pytest.raises(ToolLoop, match="after 1 rounds of calls"):
        await client.prompt("?").tools("add").call().content()
    assert len(model.prompts) == 3


async def test_a_question_that_forbids_calls_runs_none() -> None:
    client, model = client_of(ADDING, says("three"))
    response = await client.prompt("?").tools("add").options(ChatOptions(tool_choice="none")).call().response()
    assert (response.message.text, response.executions) == ("three", ())
    assert offered(model) == [["add"], []]


@pytest.mark.parametrize("called", ["add", "roll"])
async def test_a_call_that_is_forbidden_neither_runs_nor_reaches_the_caller(called: str) -> None:
    client, model = client_of(calls((called, '{"a":1,"b":2}')))
    question = client.prompt("?").tools("add", ROLL).options(ChatOptions(tool_choice="none"))
    with pytest.raises(ToolLoop, match="after 0 rounds of calls"):
        await question.call().response()
    assert offered(model) == [["add", "roll"], []]


@pytest.mark.parametrize(("history", "names", "choice"), [(HISTORY, ["no_tool"], "none"), (HISTORY[3:], [], None)])
async def test_earlier_calls_have_a_definition_in_a_question_without_tools(
    history: tuple[Message, ...], names: list[str], choice: str | None
) -> None:
    client, model = client_of(says("You are welcome"))
    assert await client.prompt().messages(history).call().content() == "You are welcome"
    assert offered(model) == [names]
    assert model.prompts[0].options.tool_choice == choice


@pytest.mark.parametrize("guarded", [False, True])
async def test_a_call_of_a_tool_that_was_left_out_does_not_run(guarded: bool) -> None:
    ran: list[str] = []

    @tool(requires_approval=guarded)
    def bad() -> str:
        ran.append("bad")
        return "done"

    def good() -> str:
        ran.append("good")
        return "done"

    def answer(request: PlayedRequest) -> Answer:
        if "bad" in names_in(request):
            return refusal("Invalid schema for function 'bad'")
        has_result = request.body["messages"][-1]["role"] == "tool"
        return whole(message(**(plays_text("晴") if has_result else plays(("bad", {}), ("good", {})))))

    async with played(answer) as (model, player):
        response = await ChatClient(resilient_of(model)).prompt("?").tools(bad, good).call().response()
    assert (response.message.text, ran) == ("晴", ["good"])
    assert [each.error_kind for each in response.executions] == ["unknown-tool", None]
    assert "available: good" in player.requests[-1].body["messages"][-2]["content"]


def costing(message: AssistantMessage, tokens: int) -> ChatResponse:
    return ChatResponse(message, "tool_calls" if message.tool_calls else "stop", Usage(tokens, 0), "m")


def asking_tool(inner: ChatClient) -> FunctionToolCallback:
    """A tool that asks a client twice, and does not mind if it fails."""

    async def ask() -> str:
        """Ask."""
        texts = []
        for _ in range(2):
            try:
                texts.append(await inner.prompt("inner").call().content())
            except UpstreamUnavailable:
                texts.append("failed")
        return " ".join(texts)

    return FunctionToolCallback.from_function(ask)


@pytest.mark.parametrize(("is_shared", "tokens"), [(True, 2 + 100 + 100), (False, 2)])
async def test_what_a_tool_asks_counts_if_the_loop_is_the_same(is_shared: bool, tokens: int) -> None:
    inner_model = WatchedModel([costing(AssistantMessage("one"), 100), costing(AssistantMessage("two"), 100)])
    outer_model = WatchedModel([costing(calls(("ask", "{}")), 1), costing(AssistantMessage("done"), 1)])
    loop = ToolCallingAdvisor(limits=ToolCallLimits(in_total=2 if is_shared else 1))
    inner = ChatClient(inner_model, advisors=(loop if is_shared else ToolCallingAdvisor(),))
    answer = await ChatClient(outer_model, advisors=(loop,)).prompt("outer").tools(asking_tool(inner)).call().response()
    assert [each.result for each in answer.executions] == ["one two"]
    assert answer.usage.total_tokens == tokens


async def test_a_question_after_another_is_not_part_of_it() -> None:
    model = WatchedModel([costing(calls(("ask", "{}")), 1), costing(AssistantMessage("done"), 1)])
    loop = ToolCallingAdvisor(limits=ToolCallLimits(in_total=2))
    client = ChatClient(model, advisors=(loop,))
    inner = ChatClient(WatchedModel([costing(AssistantMessage("x"), 100)]), advisors=(loop,))
    await client.prompt("first").tools(asking_tool(inner)).call().response()
    for _ in range(3):
        assert (await inner.prompt("later").call().response()).usage.total_tokens == 100


async def test_the_usage_of_a_request_that_fails_counts_up_to_its_failure() -> None:
    inner = WatchedModel([costing(calls(("nothing", "{}")), 100), UpstreamUnavailable("gone")])
    outer = WatchedModel([costing(calls(("ask", "{}")), 1), costing(AssistantMessage("done"), 1)])
    loop = ToolCallingAdvisor()
    asking = asking_tool(ChatClient(inner, advisors=(loop,)))
    answer = await ChatClient(outer, advisors=(loop,)).prompt("outer").tools(asking).call().response()
    assert answer.usage.total_tokens == 102


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


def refused(reason: str = "the user rejected this call") -> str:
    return f'{{"error":{{"kind":"rejected","message":"{reason}"}}}}'


@pytest.mark.parametrize(
    ("approvals", "shipped", "results"),
    [
        ({"call_0": Approval(True), "call_1": Approval(True)}, [1, 2], ["shipped 1", "shipped 2"]),
        ({"call_0": Approval(True), "call_1": Approval(False, "too early")}, [1], ["shipped 1", refused("too early")]),
        ({"call_1": Approval(True)}, [2], [refused(), "shipped 2"]),
        ({"call_0": Approval(True, arguments=SHIP_7), "call_1": Approval(True)}, [7, 2], ["shipped 7", "shipped 2"]),
        ({"other": Approval(True)}, [], [refused()] * 2),
        ({}, [], [refused()] * 2),
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
