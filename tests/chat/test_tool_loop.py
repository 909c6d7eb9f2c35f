"""The tool loop of a question: which tools it runs, and how it comes to an end."""

import pytest

from tests.chat.scripted import ADD, calls, client_of, says
from toolchat.chat.request import ChatEvent, ChatRequest
from toolchat.errors import ToolLoop
from toolchat.messages import AssistantMessage, ToolResponseMessage, Usage
from toolchat.models.base import ChatResponse, Prompt, TextDelta
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition, tool
from toolchat.tool_calling.function_callback import FunctionToolCallback


def may_call(prompt: Prompt) -> bool:
    return prompt.options.tool_choice != "none"


async def test_a_model_at_the_round_limit_is_called_once_more_and_may_call_no_tool() -> None:
    def turn(prompt: Prompt) -> AssistantMessage:
        return calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')) if may_call(prompt) else says("enough")

    client, model = client_of(turn)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "enough"
    assert len(model.prompts) == 4
    assert len(response.executions) == 3


async def test_a_model_that_cannot_stop_even_then_is_an_error() -> None:
    client, model = client_of(lambda prompt: calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')))
    with pytest.raises(ToolLoop):
        await client.prompt("?").tools("add").call().content()
    assert len(model.prompts) == 5


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


@pytest.mark.parametrize("reason", ["length", "content_filter", "incomplete"])
async def test_a_cut_message_with_a_call_of_the_clients_tool_ends_the_turn_with_its_reason(reason: str) -> None:
    roll = ClientToolCallback(ToolDefinition("roll", "Roll a die", {"type": "object"}))
    cut = ChatResponse(calls(ADD, ("roll", '{"sid')), reason, Usage(), "scripted-1")
    client, model = client_of(cut, says("done"))
    response = await client.prompt("?").tools("add", roll).call().response()
    assert (response.finish_reason, len(model.prompts)) == (reason, 1)
    assert [each.error_kind for each in response.executions] == ["not-run"]
