"""Tool calls from DashScope, and how they are sent back with their results."""

import json
from typing import Any

import pytest

from tests.models.dashscope.playing import WEATHER, asking, fragment, played
from tests.models.responding import response_of
from tests.players.dashscope_player import json_answer, saying, sensible_model, sse_answer, stream_of, whole
from toolchat.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.tool_calling.definition import ToolDefinition

HANGZHOU = '{"location": "杭州"}'
FRAGMENTS: dict[str, tuple[tuple[dict[str, Any], ...], list[tuple[str, str]]]] = {
    "as in the official sample": (
        (fragment("call_1", "f", '{"location": "杭州'), fragment("", None, '"}')),
        [("f", HANGZHOU)],
    ),
    "with an index": (
        (fragment("call_1", "f", "", 0), fragment("", "", '{"location": ', 0), fragment("", "", '"杭州"}', 0)),
        [("f", HANGZHOU)],
    ),
    "null arguments first": ((fragment("call_1", "f", None), fragment("", None, HANGZHOU)), [("f", HANGZHOU)]),
    "no arguments at all": ((fragment("call_1", "f", None),), [("f", "")]),
    "no id at all": ((fragment(None, "f", HANGZHOU),), [("f", HANGZHOU)]),
    "arguments as an object": ((fragment("call_1", "f", {"location": "杭州"}),), [("f", '{"location":"杭州"}')]),
    "two calls side by side": (
        (
            fragment("call_1", "f", '{"a"', 0),
            fragment("call_2", "g", '{"b"', 1),
            fragment("", None, ": 1}", 0),
            fragment("", None, ": 2}", 1),
        ),
        [("f", '{"a": 1}'), ("g", '{"b": 2}')],
    ),
}


@pytest.mark.parametrize("reason", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("case", FRAGMENTS)
async def test_fragments_of_calls_are_merged_for_any_finish_reason(case: str, reason: str) -> None:
    fragments, expected = FRAGMENTS[case]
    deltas = [{"tool_calls": [it], "reasoning_content": ""} for it in fragments]
    async with played(sse_answer(*stream_of(*deltas, finish_reason=reason))) as (model, _):
        answer = await response_of(model, asking(stream=True, tools=(WEATHER,)))
    assert [(call.name, call.arguments) for call in answer.message.tool_calls] == expected
    assert all(call.id for call in answer.message.tool_calls)
    assert answer.finish_reason == ("length" if reason == "length" else "tool_calls")
    assert answer.message.text == ""


async def test_text_before_a_call_is_kept() -> None:
    message = {"content": "我查一下。", "tool_calls": [fragment("call_1", "f", "{}")]}
    async with played(json_answer(whole(message, "tool_calls"))) as (model, _):
        answer = await response_of(model, asking(tools=(WEATHER,)))
    assert answer.message == AssistantMessage("我查一下。", (ToolCall("call_1", "f", "{}"),))


async def test_a_tool_round_is_replayed_with_its_calls_and_one_tool_message_per_result() -> None:
    calls = (
        ToolCall("call_1", "get_weather", '{"city": "杭州"}', {"function": {"strict": True}}),
        ToolCall("call_2", "get_weather", '{"city": "南', {"index": 1}),
        ToolCall("call_3", "get_weather", '["not", "an", "object"]'),
    )
    results = ToolResponseMessage((ToolResponse("call_1", "get_weather", "19 度"), ToolResponse("call_2", "x", "坏")))
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(UserMessage("?"), AssistantMessage(tool_calls=calls), results))
    _, assistant, *tools = player.requests[0].messages
    assert assistant["role"] == "assistant"
    assert assistant["content"] == ""
    assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == ['{"city": "杭州"}', "{}", "{}"]
    function = {"strict": True, "name": "get_weather", "arguments": '{"city": "杭州"}'}
    assert assistant["tool_calls"][0] == {"id": "call_1", "type": "function", "function": function}
    assert tools == [
        {"role": "tool", "content": "19 度", "tool_call_id": "call_1"},
        {"role": "tool", "content": "坏", "tool_call_id": "call_2"},
    ]


async def test_reasoning_is_sent_back_in_the_running_turn_and_not_in_later_ones() -> None:
    def said(text: str) -> AssistantMessage:
        return AssistantMessage(text, extra={"reasoning_content": f"about {text}"})

    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(UserMessage("1"), said("old"), UserMessage("2"), said("new")))
    old, new = (message for message in player.requests[0].messages if message["role"] == "assistant")
    assert old == {"role": "assistant", "content": "old"}
    assert new == {"role": "assistant", "content": "new", "reasoning_content": "about new"}


async def test_a_tool_named_search_is_sent_under_its_name() -> None:
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(tools=(ToolDefinition("search", "Look it up", {"type": "object"}),)))
    assert player.requests[0].parameters["tools"][0]["function"]["name"] == "search"


@pytest.mark.parametrize("stream", [False, True])
async def test_the_sensible_player_goes_through_a_whole_tool_round(stream: bool) -> None:
    async with played(sensible_model({"city": "杭州"})) as (model, player):
        question = UserMessage("杭州天气怎么样")
        first = await response_of(model, asking(question, stream=stream, tools=(WEATHER,)))
        (call,) = first.message.tool_calls
        result = ToolResponseMessage((ToolResponse(call.id, call.name, "19 度"),))
        prompt = asking(question, first.message, result, stream=stream, tools=(WEATHER,))
        second = await response_of(model, prompt)
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "杭州"})
    assert "19 度" in second.message.text
    assert player.requests[1].messages[2]["tool_call_id"] == call.id
