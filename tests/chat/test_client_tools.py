"""Tools that the caller runs: the model is told of them, and the question ends where it calls one."""

from typing import Any

import pytest

from tests.chat.scripted import ADD, add, calls, client_of, offered, receipt, says, told
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.request import Approval
from toolchat.errors import ToolLoop
from toolchat.messages import AssistantMessage, ToolResponse, ToolResponseMessage
from toolchat.models.base import ChatOptions, ChatResponse, TextDelta
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition, tool
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted
from toolchat.tool_calling.function_callback import FunctionToolCallback

ROLL = ClientToolCallback(ToolDefinition("roll", "Roll a die", {"type": "object", "properties": {}}))
ROLLED = ("roll", "{}")
REQUIRED = ChatOptions(tool_choice="required")


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


async def test_the_caller_continues_with_the_history_and_its_results() -> None:
    response, model, client = await asked(calls(ROLLED, ADD), says("9"))
    rolled = ToolResponse("call_0", "roll", "6")
    *before, ours = response.history
    whole = ToolResponseMessage((rolled, *ours.responses))
    answer = await client.prompt().messages((*before, whole)).tools("add", ROLL).call().content()
    assert (answer, told(model.prompts[1])) == ("9", ["6", "3"])


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


@tool(requires_approval=True)
async def ship(number: int) -> str:
    raise AssertionError("not without consent")


async def test_a_call_that_needs_consent_is_not_run_beside_the_callers() -> None:
    response, _, _ = await asked(
        calls(ROLLED, ("ship", '{"number":1}')), tools=(FunctionToolCallback.from_function(ship),)
    )
    assert response.finish_reason == "tool_calls"
    assert [each.error_kind for each in response.executions] == ["not-run"]


async def test_a_call_that_needs_approval_pauses_if_it_is_alone() -> None:
    response, _, client = await asked(
        calls(("ship", '{"number":1}')), says("It was not shipped."), tools=(FunctionToolCallback.from_function(ship),)
    )
    assert response.finish_reason == APPROVAL_REQUIRED
    resumed = client.resume(response, {"call_0": Approval(False)}).tools(FunctionToolCallback.from_function(ship))
    assert await resumed.call().content() == "It was not shipped."


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


async def test_a_message_without_calls_ends_the_request() -> None:
    response, _, _ = await asked(says("hello"), options=REQUIRED)
    assert response.message == AssistantMessage("hello")
