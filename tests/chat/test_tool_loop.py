"""The tool loop of a question: which tools it runs, and how it comes to an end."""

from collections.abc import Mapping

import pytest

from tests.chat.scripted import ADD, add, calls, client_of, says
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED, LoopState, decide, is_eligible
from toolchat.chat.request import Approval, ChatEvent, ChatRequest, Resume
from toolchat.errors import ToolLoop
from toolchat.messages import AssistantMessage, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatResponse, Prompt, TextDelta
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.function_callback import FunctionToolCallback, tool
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits


async def test_only_offered_tools_can_run_even_when_others_exist() -> None:
    client, _ = client_of(calls(ADD), says("sorry"))
    response = await client.prompt("?").tools("receipt").call().response()
    assert response.executions[0].error_kind == "unknown-tool"
    assert response.message.text == "sorry"


async def test_a_model_at_the_round_limit_is_called_once_more_without_tools() -> None:
    def turn(prompt: Prompt) -> AssistantMessage:
        return calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')) if prompt.tools else says("enough")

    client, model = client_of(turn)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "enough"
    assert len(model.prompts) == 4
    assert len(response.executions) == 3


async def test_a_model_that_cannot_stop_even_then_is_an_error() -> None:
    client, model = client_of(lambda prompt: calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')))
    with pytest.raises(ToolLoop):
        await client.prompt("?").tools("add").call().content()
    assert len(model.prompts) == 4


async def test_the_same_call_for_ever_is_run_three_times_and_then_ends() -> None:
    client, model = client_of(lambda prompt: calls(ADD) if prompt.tools else says("3 it is"), max_rounds=50)
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


async def test_a_batch_that_mixes_direct_and_other_tools_goes_back_to_the_model() -> None:
    client, _ = client_of(calls(("receipt", '{"number":7}'), ADD), says("both"))
    assert await client.prompt("?").tools("receipt", "add").call().content() == "both"


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


@pytest.mark.parametrize("reason", ["length", "content_filter"])
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


async def test_a_direct_result_is_a_piece_of_the_stream_once() -> None:
    client, _ = client_of(calls(("receipt", '{"number": 7}')))
    pieces = [piece async for piece in client.prompt("?").tools("receipt").stream().content()]
    assert pieces == ["receipt 7"]


SHIP = FunctionToolCallback.from_function(add, name="ship", requires_approval=True)
OPEN = ClientToolCallback(ToolDefinition("open", "Open a page.", {"type": "object"}))
TOOLS = (FunctionToolCallback.from_function(add), SHIP, OPEN)


APPROVED, REJECTED = {"call_0": Approval(True)}, {"call_1": Approval(False)}


@pytest.mark.parametrize(
    ("message", "withdrawn", "approvals", "expected"),
    [
        (says("ok"), False, None, None),
        (says("ok"), True, None, None),
        (calls(ADD, ADD), False, None, (["add", "add"], [], None)),
        (calls(ADD), True, None, ToolLoop),
        (calls(ADD, ("ship", "{}")), False, None, (["add"], [], APPROVAL_REQUIRED)),
        (calls(ADD, ("ship", "{}")), False, REJECTED, (["add", "ship"], ["ship"], None)),
        (calls(("ship", "{}")), False, APPROVED, (["ship"], [], None)),
        (calls(("ship", "{}")), False, {}, (["ship"], ["ship"], None)),
        (calls(("open", "{}")), False, None, None),
        (calls(("open", "{}")), True, None, None),
        (calls(ADD, ("open", "{}")), True, None, ToolLoop),
        (calls(ADD, ("open", "{}")), False, None, (["add"], [], "stop")),
        (calls(ADD, ("open", "{}"), ("ship", "{}")), False, None, (["add", "ship"], ["ship"], "stop")),
    ],
)
def test_the_loop_decides_by_the_response_the_tools_on_offer_and_the_approvals(
    message: AssistantMessage, withdrawn: bool, approvals: Mapping[str, Approval] | None, expected: object
) -> None:
    resume = None if approvals is None else Resume(message, approvals)
    request = ChatRequest((UserMessage("?"),), TOOLS, resume=resume)
    state = LoopState(request, CallCounter(ToolCallLimits()), request.tool_set, tools_withdrawn=withdrawn)
    guarded = {call.id for call in message.tool_calls if call.name == "ship"}
    response = ChatResponse(message, "stop", Usage(), "")
    if expected is ToolLoop:
        with pytest.raises(ToolLoop):
            decide(response, state, is_eligible, guarded)
        return
    run = decide(response, state, is_eligible, guarded)
    refused = [call.name for call in run.calls if call.id in run.rejected] if run else []
    assert (run and ([call.name for call in run.calls], refused, run.ends_turn)) == expected
