"""An answer that is one JSON document."""

import gzip
import json
from typing import Any

import pytest

from tests.models.openai.playing import AT_ONCE, CITY, ONE_CALL, STREAMED, calls_of, play, turn
from tests.players.openai_player import Answer, body, delta, finish, message, sse, whole
from toolchat.models.base import Prompt


@pytest.mark.parametrize(
    ("value", "text", "calls", "reason"),
    [
        pytest.param(message(content="晴"), "晴", [], "stop", id="text"),
        pytest.param(message("length", content="晴"), "晴", [], "length", id="cut by the token limit"),
        pytest.param(message("content_filter", content="晴"), "晴", [], "content_filter", id="filtered in the middle"),
        pytest.param(message(None, content="晴"), "晴", [], "stop", id="no finish reason"),
        pytest.param(message("tool_calls", content="晴"), "晴", [], "stop", id="tool_calls without calls"),
        pytest.param(
            message("stop", tool_calls=[{"id": "a", "function": {"name": "get_weather", "arguments": CITY}}]),
            "",
            ONE_CALL,
            "tool_calls",
            id="traps 2, 4, 11: a call without index and content, stop",
        ),
        pytest.param(
            message("length", content=None, tool_calls=[{"id": "a", "function": {"name": "w", "arguments": '{"c'}}]),
            "",
            [("a", "w", '{"c')],
            "length",
            id="trap 10: broken arguments",
        ),
        pytest.param(
            message("content_filter", content=None, tool_calls=[{"id": "a", "function": {"name": "w"}}]),
            "",
            [("a", "w", "")],
            "content_filter",
            id="filtered in the middle of a call",
        ),
        pytest.param(
            message(content="<think>hm</think>晴", reasoning_content="hm"), "晴", [], "stop", id="trap 13: reasoning"
        ),
    ],
)
@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["asked at once", "asked for a stream"])
async def test_a_complete_response_to_a_stream_request_is_accepted(
    value: Any, text: str, calls: list[Any], reason: str, prompt: Prompt
) -> None:
    response = await turn(whole(value), prompt)
    assert (response.message.text, calls_of(response), response.finish_reason) == (text, calls, reason)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(whole(message(content="晴")), id="a JSON document"),
        pytest.param(sse(delta(content="晴"), finish("stop")), id="a stream"),
    ],
)
async def test_without_streaming_the_response_is_the_only_event(answer: Answer) -> None:
    assert len(await play([answer], AT_ONCE)) == 1


@pytest.mark.parametrize("start", [b"\n\n\n  \r\n", b"\xef\xbb\xbf"], ids=["blank lines", "byte order mark"])
async def test_blanks_or_a_byte_order_mark_before_json_are_skipped(start: bytes) -> None:
    answer = body(start + json.dumps(message(content="晴")).encode(), Content_Type="application/json; charset=utf-8")
    assert (await turn(answer, AT_ONCE)).message.text == "晴"


@pytest.mark.parametrize(
    ("named", "model"), [("qwen-max-1", "qwen-max-1"), ("", "asked"), (3, "asked"), ("a\nb", "asked")]
)
async def test_the_model_name_is_the_providers_or_the_requested_one(named: Any, model: str) -> None:
    answer = whole(message(content="晴") | {"model": named})
    assert (await turn(answer, AT_ONCE)).model == model


async def test_a_gzipped_answer_is_read() -> None:
    content = gzip.compress(json.dumps(message(content="晴")).encode())
    answer = body(content, Content_Type="application/json", Content_Encoding="gzip")
    assert (await turn(answer, AT_ONCE)).message.text == "晴"
