"""Callers who run the tool calls themselves."""

from tests.chat.scripted import ADD, add, calls, client_of, receipt, says, told
from toolchat.messages import Message, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager

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


async def test_a_stream_gives_the_calls_to_the_caller_too() -> None:
    client, _ = client_of(calls(ADD))
    events = [event async for event in client.prompt("?").tools("add").options(BY_HAND).stream().events()]
    assert isinstance(events[-1], ChatResponse)
    assert [call.name for call in events[-1].message.tool_calls] == ["add"]
    assert not [event for event in events if isinstance(event, ToolCallStarted | ToolCallFinished)]


async def test_execute_tool_calls_reports_direct_results() -> None:
    manager, tools = (
        ToolCallingManager(),
        [FunctionToolCallback.from_function(receipt), FunctionToolCallback.from_function(add)],
    )
    direct = await manager.execute_tool_calls([], calls(("receipt", '{"number":1}')), tools)
    mixed = await manager.execute_tool_calls([], calls(("receipt", '{"number":1}'), ADD), tools)
    assert (direct.return_direct, mixed.return_direct) == (True, False)
