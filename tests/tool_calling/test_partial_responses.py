"""Messages some of whose calls have been answered already, and messages without calls."""

from collections.abc import Sequence

import pytest

from tests.tool_calling.calls import call
from toolchat.messages import AssistantMessage, Message, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager, ToolExecutionResult

QUESTION = UserMessage("?")
ASKING = AssistantMessage(tool_calls=tuple(call("note", f'{{"text": "{name}"}}', name) for name in ("a", "b", "c")))


def answered(*names: str) -> ToolResponseMessage:
    return ToolResponseMessage(tuple(ToolResponse(name, "note", f"earlier {name}") for name in names))


async def noted(
    messages: Sequence[Message], message: AssistantMessage = ASKING
) -> tuple[list[str], ToolExecutionResult]:
    """What ran, and what came of it."""
    ran: list[str] = []
    seen: list[tuple[Message, ...]] = []

    @tool(return_direct=True)
    async def note(text: str, context: ToolContext) -> str:
        ran.append(text)
        seen.append(context.history)
        return f"now {text}"

    result = await ToolCallingManager().execute_tool_calls(
        messages, message, [FunctionToolCallback.from_function(note)]
    )
    assert all(each == (QUESTION, message) for each in seen)
    return ran, result


@pytest.mark.parametrize(
    "earlier", [[answered("a", "c")], [answered("c"), answered("a")]], ids=["one message", "two messages"]
)
async def test_only_the_calls_without_a_response_run_and_all_are_answered_in_their_order(
    earlier: list[Message],
) -> None:
    ran, result = await noted([QUESTION, ASKING, *earlier])
    assert ran == ["b"]
    assert [each.call.id for each in result.executions] == ["b"]
    *before, responses = result.conversation_history
    assert before == [QUESTION, ASKING]
    assert isinstance(responses, ToolResponseMessage)
    assert [each.text for each in responses.responses] == ["earlier a", "now b", "earlier c"]
    assert not result.return_direct, "of the earlier responses nobody knows whether they are answers"


async def test_a_message_that_the_history_ends_with_is_not_repeated() -> None:
    ran, result = await noted([QUESTION, ASKING])
    assert sorted(ran) == ["a", "b", "c"]
    assert result.conversation_history[:-1] == (QUESTION, ASKING)
    assert result.return_direct


async def test_a_repeated_message_gets_new_results() -> None:
    earlier = (QUESTION, ASKING, answered("a", "b", "c"))
    ran: list[str] = []

    async def note(text: str) -> str:
        ran.append(text)
        return f"now {text}"

    result = await ToolCallingManager().execute_tool_calls(earlier, ASKING, [FunctionToolCallback.from_function(note)])
    assert sorted(ran) == ["a", "b", "c"]
    assert result.conversation_history[:-1] == (*earlier, ASKING)


async def test_responses_to_another_message_do_not_count() -> None:
    other = AssistantMessage(tool_calls=(call("note", '{"text": "other"}', "a"),))
    ran: list[str] = []

    async def note(text: str) -> None:
        ran.append(text)

    await ToolCallingManager().execute_tool_calls(
        [QUESTION, other, answered("a")], ASKING, [FunctionToolCallback.from_function(note)]
    )
    assert sorted(ran) == ["a", "b", "c"]


async def test_a_message_without_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="the message has no tool calls"):
        await ToolCallingManager().execute_tool_calls([QUESTION], AssistantMessage("Hello."), [])
