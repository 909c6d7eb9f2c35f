"""Tools that the provider refuses are not offered. A call of one is answered as a call of an unknown tool."""

import pytest

from tests.chat.played import asks, says
from tests.models.openai.playing import played
from tests.models.test_refused_tools import names_in, refusal, resilient_of
from tests.players.openai_player import Answer, PlayedRequest, message, whole
from toolchat.chat.client import ChatClient
from toolchat.tool_calling.definition import tool


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
        return whole(message(**(says("晴") if has_result else asks(("bad", {}), ("good", {})))))

    async with played(answer) as (model, player):
        response = await ChatClient(resilient_of(model)).prompt("?").tools(bad, good).call().response()
    assert (response.message.text, ran) == ("晴", ["good"])
    assert [each.error_kind for each in response.executions] == ["unknown-tool", None]
    assert "available: good" in player.requests[-1].body["messages"][-2]["content"]
