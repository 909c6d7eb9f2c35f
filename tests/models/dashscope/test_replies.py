"""DashScope's answers, whole and streamed, and its tool calls."""

import json
from typing import Any

import pytest

import toolchat.models.dashscope.model as dashscope
from tests.models.dashscope.playing import DONE, WEATHER, asking, fragment, played
from tests.models.responding import events_of, response_of, streamed_text
from tests.players.dashscope_player import event, json_answer, saying, sensible_model, sse_answer, stream_of, whole
from toolchat.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatResponse, Progress, TextDelta
from toolchat.models.resilience import KEEPALIVE
from toolchat.tool_calling.definition import ToolDefinition

USAGE_ONLY = event({"output": None, "usage": {"input_tokens": 1, "output_tokens": 2}})
NO_MESSAGE = event({"output": {"choices": [{"finish_reason": "null"}]}})
EMPTY_ROLE = event({"output": {"choices": [{"message": {"role": ""}}]}})
NO_CHOICES = event({"output": {"choices": []}, "usage": {"input_tokens": 3, "output_tokens": 4}})


async def test_a_whole_answer_gives_text_usage_and_reason() -> None:
    async with played(json_answer(whole({"content": "十九度"}))) as (model, _):
        answer = await response_of(model, asking())
    assert answer == ChatResponse(AssistantMessage("十九度"), "stop", Usage(22, 17), "qwen-plus")


async def test_a_streamed_answer_gives_its_text_in_pieces_and_the_last_usage() -> None:
    pieces = stream_of({"content": "杭州"}, {"content": "今天"}, {"content": "十九度"}, {})
    async with played(sse_answer(*pieces)) as (model, _):
        events = await events_of(model, asking(stream=True))
    answer = events[-1]
    assert isinstance(answer, ChatResponse)
    assert streamed_text(events) == answer.message.text == "杭州今天十九度"
    assert len([event for event in events if isinstance(event, TextDelta)]) > 1
    assert answer.usage == Usage(114, 8)
    assert answer.finish_reason == "stop"


async def test_text_that_was_held_back_comes_before_the_end() -> None:
    async with played(sse_answer(*stream_of({"content": "哈"}, {"content": "哈哈"}))) as (model, _):
        events = await events_of(model, asking(stream=True))
    assert isinstance(events[-1], ChatResponse)
    assert streamed_text(events) == events[-1].message.text == "哈哈哈"


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_the_bytes_of_a_stream_may_be_cut_anywhere(size: int) -> None:
    data = b": heartbeat\n\n" + b"".join(stream_of({"content": "杭州\u2028今天"}, {"content": "data: [DONE]"}, {}))
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    async with played(sse_answer(*pieces)) as (model, _):
        answer = await response_of(model, asking(stream=True))
    assert answer.message.text == "杭州\u2028今天data: [DONE]"


@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_never_enters_the_text_and_is_kept_for_replay(stream: bool) -> None:
    thought = {"reasoning_content": "用户想知道天气。"}
    streamed = stream_of(thought, {"reasoning_content": "查。"}, {"content": "十九度"}, {"reasoning_content": None})
    answers = sse_answer(*streamed) if stream else json_answer(whole({"content": "十九度", **thought}))
    async with played(answers) as (model, _):
        *before, answer = await events_of(model, asking(stream=stream))
    assert isinstance(answer, ChatResponse)
    assert answer.message.text == "十九度"
    reasoning = "用户想知道天气。" + ("查。" if stream else "")
    assert answer.message.extra == {"reasoning_content": reasoning, "by": "127.0.0.1/qwen-plus"}
    assert [each for each in before if each != KEEPALIVE][:1] == ([Progress("用户想知道天气。")] if stream else [])


@pytest.mark.parametrize("stream", [False, True])
async def test_content_may_be_a_list_of_parts(stream: bool) -> None:
    parts: tuple[dict[str, Any], ...] = (
        {"content": []},
        {"content": [{"text": "十九"}]},
        {"content": [{"text": "度"}]},
        {"content": None},
    )
    whole_parts = whole({"content": [{"text": "十九"}, {"image": "x"}, {"text": "度"}]})
    async with played(sse_answer(*stream_of(*parts)) if stream else json_answer(whole_parts)) as (model, _):
        answer = await response_of(model, asking(stream=stream))
    assert answer.message.text == "十九度"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
    ],
)
async def test_finish_reasons_become_one_of_four_words(said: str, reason: str) -> None:
    async with played(sse_answer(*stream_of({"content": "x"}, {}, finish_reason=said))) as (model, _):
        assert (await response_of(model, asking(stream=True))).finish_reason == reason


@pytest.mark.parametrize(
    ("pieces", "usage"),
    [
        pytest.param((*stream_of({"content": "好"}, {}), DONE), Usage(114, 4), id="done marker at the end"),
        pytest.param((DONE, *stream_of({"content": "好"}, {})), Usage(114, 4), id="done marker at the start"),
        pytest.param((*stream_of({"content": "好"}, {}), USAGE_ONLY), Usage(1, 2), id="usage alone, no output"),
        pytest.param((NO_CHOICES, *stream_of({"content": "好"})), Usage(114, 2), id="no choices yet"),
        pytest.param((*stream_of({"content": "好"}), event("{broken")), Usage(114, 2), id="rubbish after the end"),
        pytest.param((*stream_of({"content": "好"}), event({"x": 1})), Usage(114, 2), id="unknown event after the end"),
        pytest.param((NO_MESSAGE, *stream_of({"content": "好"})), Usage(114, 2), id="no message"),
        pytest.param((EMPTY_ROLE, *stream_of({"content": "好"})), Usage(114, 2), id="empty role"),
        pytest.param((event({"output": {"text": "好", "finish_reason": "stop"}}),), Usage(), id="text form, no usage"),
    ],
)  # fmt: skip
async def test_oddities_of_a_stream_are_tolerated(pieces: tuple[bytes, ...], usage: Usage) -> None:
    async with played(sse_answer(*pieces)) as (model, _):
        answer = await response_of(model, asking(stream=True))
    assert (answer.message.text, answer.finish_reason, answer.usage) == ("好", "stop", usage)


async def test_a_json_body_that_answers_a_streamed_request_is_taken() -> None:
    async with played(json_answer(whole({"content": "十九度"}))) as (model, _):
        events = await events_of(model, asking(stream=True))
    assert streamed_text(events) == "十九度"


async def test_a_server_sent_line_longer_than_half_a_mebibyte_is_read() -> None:
    text = "好" * 250_000
    async with played(sse_answer(*stream_of({"content": text}))) as (model, _):
        assert (await response_of(model, asking(stream=True))).message.text == text


@pytest.mark.parametrize("stream", [False, True])
async def test_half_a_surrogate_pair_never_reaches_the_text(stream: bool) -> None:
    reply = json.dumps(whole({"content": "a\ud800b"})).encode()
    async with played(sse_answer(event(reply)) if stream else json_answer(reply)) as (model, _):
        assert (await response_of(model, asking(stream=stream))).message.text == "a\ufffdb"


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


BEAT = b": heartbeat\n\n"


async def test_comments_show_that_the_stream_is_alive() -> None:
    async with played(sse_answer(BEAT, BEAT, *stream_of({"content": "晴"}, {}))) as (model, _):
        events = await events_of(model, asking(stream=True))
    assert events[:4] == [KEEPALIVE] * 4
    assert events.index(TextDelta("晴")) > 4


@pytest.mark.parametrize("rest", [(), (BEAT, BEAT), (USAGE_ONLY,), (b"data:{",)])
async def test_silence_after_the_finish_reason_ends_the_answer(  # claude-code-router#1271, bifrost#6784
    rest: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashscope, "FINISH_TIMEOUT", 0.05)
    answer = sse_answer(*stream_of({"content": "晴"}, {}), *rest, ending="hang")
    async with played(answer) as (model, _):
        assert (await response_of(model, asking(stream=True))).message.text == "晴"
