"""Tools that are defined although the model may call none, and a model that calls one nevertheless."""

import pytest

from tests.chat.scripted import calls, client_of, offered, says
from tests.chat.test_client_tools import ROLL
from toolchat.errors import ToolLoop
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.models.base import ChatOptions

ADD = calls(("add", '{"a":1,"b":2}'))
HISTORY: tuple[Message, ...] = (
    UserMessage("1+2?"),
    AssistantMessage("", (ToolCall("call_0", "gone", "{}"),)),
    ToolResponseMessage((ToolResponse("call_0", "gone", "3"),)),
    AssistantMessage("3"),
    UserMessage("Thanks"),
)


async def test_withdrawn_tools_stay_defined_and_may_not_be_called() -> None:
    client, model = client_of(ADD, says("3"), max_rounds=1)
    assert await client.prompt("?").tools("add").call().content() == "3"
    assert offered(model) == [["add"], ["add"]]
    assert [each.options.tool_choice for each in model.prompts] == [None, "none"]


async def test_a_model_that_calls_a_withdrawn_tool_is_asked_again_without_any_and_no_call_runs() -> None:
    client, model = client_of(ADD, ADD, says("3"), max_rounds=1)
    response = await client.prompt("?").tools("add").call().response()
    assert (response.message.text, len(response.executions), response.rounds) == ("3", 1, 3)
    assert offered(model) == [["add"], ["add"], []]
    assert model.prompts[2].messages == model.prompts[1].messages


async def test_a_model_that_calls_even_without_tools_is_an_error_that_counts_the_rounds_that_ran() -> None:
    client, model = client_of(ADD, max_rounds=1)
    with pytest.raises(ToolLoop, match="after 1 rounds of calls"):
        await client.prompt("?").tools("add").call().content()
    assert len(model.prompts) == 3


async def test_a_question_that_forbids_calls_runs_none() -> None:
    client, model = client_of(ADD, says("three"))
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
