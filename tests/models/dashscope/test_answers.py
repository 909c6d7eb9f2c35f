"""What is read from DashScope's answers, whole and streamed."""

from typing import Any

import pytest

from tests.models.dashscope.playing import DONE, asking, played
from tests.models.responding import events_of, response_of, streamed_text
from tests.players.dashscope_player import event, json_answer, sse_answer, stream_of, whole
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatResponse, Progress, TextDelta

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
    assert answer.message.extra == {"reasoning_content": "用户想知道天气。" + ("查。" if stream else "")}
    assert before[:1] == ([Progress("用户想知道天气。")] if stream else [])


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


async def test_half_a_surrogate_pair_never_reaches_the_text() -> None:
    data = rb'{"output":{"choices":[{"message":{"content":"a\ud800b"},"finish_reason":"stop"}]}}'
    async with played(sse_answer(event(data))) as (model, _):
        assert (await response_of(model, asking(stream=True))).message.text == "a\ufffdb"
