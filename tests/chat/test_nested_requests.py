"""Tools that ask a model: by the loop that runs them, or by a client of their own."""

import pytest

from tests.chat.scripted import WatchedModel, calls
from toolchat import ChatClient, FunctionToolCallback
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.errors import UpstreamUnavailable
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.limits import ToolCallLimits


def costing(message: AssistantMessage, tokens: int) -> ChatResponse:
    return ChatResponse(message, "tool_calls" if message.tool_calls else "stop", Usage(tokens, 0), "m")


def asked(inner: ChatClient) -> FunctionToolCallback:
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
    answer = await ChatClient(outer_model, advisors=(loop,)).prompt("outer").tools(asked(inner)).call().response()
    assert [each.result for each in answer.executions] == ["one two"]
    assert answer.usage.total_tokens == tokens


async def test_a_question_after_another_is_not_part_of_it() -> None:
    model = WatchedModel([costing(calls(("ask", "{}")), 1), costing(AssistantMessage("done"), 1)])
    loop = ToolCallingAdvisor(limits=ToolCallLimits(in_total=2))
    client = ChatClient(model, advisors=(loop,))
    inner = ChatClient(WatchedModel([costing(AssistantMessage("x"), 100)]), advisors=(loop,))
    await client.prompt("first").tools(asked(inner)).call().response()
    for _ in range(3):
        assert (await inner.prompt("later").call().response()).usage.total_tokens == 100


async def test_the_usage_of_a_request_that_fails_counts_up_to_its_failure() -> None:
    inner = WatchedModel([costing(calls(("nothing", "{}")), 100), UpstreamUnavailable("gone")])
    outer = WatchedModel([costing(calls(("ask", "{}")), 1), costing(AssistantMessage("done"), 1)])
    loop = ToolCallingAdvisor()
    asking = asked(ChatClient(inner, advisors=(loop,)))
    answer = await ChatClient(outer, advisors=(loop,)).prompt("outer").tools(asking).call().response()
    assert answer.usage.total_tokens == 102
