"""An answer that is one JSON document, and what comes beside it: tokens and reasoning."""

import gzip
import json
from typing import Any

import pytest
from pydantic_core import from_json

from tests.models.openai.playing import AT_ONCE, CITY, ONE_CALL, QUESTION, STREAMED, calls_of, play, turn
from tests.players.openai_player import Answer, body, chunk, delta, finish, message, sse, whole
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import Prompt
from toolchat.models.openai.mapping import map_message, write_messages
from toolchat.models.profiles import Profile
from toolchat.models.resilience import KEEPALIVE


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
async def test_without_streaming_the_response_is_the_only_event_but_for_signs_of_life(answer: Answer) -> None:
    assert len([each for each in await play([answer], AT_ONCE) if each != KEEPALIVE]) == 1


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


@pytest.mark.parametrize(
    ("usages", "usage"),
    [
        pytest.param([None, None, {"prompt_tokens": 7, "completion_tokens": 2}], Usage(7, 2), id="at the end"),
        pytest.param([{"prompt_tokens": 7, "completion_tokens": n} for n in (1, 2, 3)], Usage(7, 3), id="cumulative"),
        pytest.param(
            [{"prompt_tokens": 7, "completion_tokens": 2}, {"prompt_tokens": 0, "completion_tokens": 0}],
            Usage(7, 2),
            id="zero later",
        ),
        pytest.param([{"prompt_tokens": "7"}, 3, []], Usage(), id="nonsense"),
        pytest.param([], Usage(), id="none at all"),
    ],
)
async def test_usage_is_the_last_reported_one(usages: list[Any], usage: Usage) -> None:
    chunks = [delta("stop", content="晴"), *(chunk(usage=one) for one in usages)]
    assert (await turn(sse(*chunks))).usage == usage


async def test_usage_within_the_choice_is_read_too() -> None:
    last = chunk({"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert (await turn(sse(delta(content="晴"), last))).usage == Usage(7, 2)


async def test_reasoning_is_stored_as_the_provider_sent_it() -> None:
    detail = {"type": "reasoning.text", "index": 0, "format": "x"}
    chunks = [
        delta(reasoning_content="今天", reasoning="a", reasoning_details=[detail | {"text": "1"}, 3]),
        delta(reasoning_content="下雨", reasoning="b", reasoning_details=[detail | {"text": "2"}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "zz", "id": None}], extra_content={"s": 1}),
        delta("tool_calls", tool_calls=[{"index": 0, "id": "a", "function": {"name": "w"}, "extra_content": {"t": 2}}]),
    ]
    reply = (await turn(sse(*chunks))).message
    assert reply.extra == {
        "reasoning_content": "今天下雨",
        "reasoning": "ab",
        "reasoning_details": [detail | {"text": "12"}, {"type": "reasoning.encrypted", "data": "zz", "id": None}],
        "extra_content": {"s": 1},
        "by": "127.0.0.1/asked",
    }
    assert reply.tool_calls[0].extra == {"extra_content": {"t": 2}}
    [sent] = map_message(reply, profile=Profile(by="127.0.0.1/asked"))
    assert sent.keys() - {"role", "content", "tool_calls"} == reply.extra.keys() - {"by"}


def test_reasoning_is_sent_back_within_its_own_turn_only() -> None:
    earlier = AssistantMessage("晴", extra={"reasoning_content": "old"})
    running = AssistantMessage("", (ToolCall("a", "now", "{}"),), {"reasoning_content": "new"})
    mapped = from_json(write_messages([QUESTION, earlier, QUESTION, running]))
    assert [one.get("reasoning_content") for one in mapped] == [None, None, None, "new"]


# https://docs.litellm.ai/docs/reasoning_content
BLOCK = {
    "type": "thinking",
    "thinking": "The capital of France is Paris.",
    "signature": "EqoBCkgIARABGAIiQL2UoU0b1OHYi+",
}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([[BLOCK, REDACTED, BLOCK]], id="at once"),
        pytest.param(
            [
                [{"type": "thinking", "thinking": "The capital of ", "signature": None}],
                [{"type": "thinking", "thinking": "France is Paris."}],
                [{"type": "thinking", "thinking": "", "signature": BLOCK["signature"]}],
                [REDACTED],
                [BLOCK],
            ],
            id="in pieces",
        ),
    ],
)
async def test_thinking_blocks_are_kept_as_they_were_signed(pieces: list[list[dict[str, Any]]]) -> None:
    reply = (await turn(sse(*(delta(thinking_blocks=each) for each in pieces), delta("stop", content="Paris")))).message
    assert reply.extra["thinking_blocks"] == [BLOCK, REDACTED, BLOCK]


@pytest.mark.parametrize("text", ["", None])
async def test_reasoning_that_is_empty_is_kept_and_what_is_missing_is_not(text: str | None) -> None:
    called = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "now", "arguments": "{}"}}]}
    first = delta(role="assistant", content=None, reasoning_content=text)
    for answer in (
        sse(first, delta("tool_calls", **called)),
        whole(message("tool_calls", reasoning_content=text, **called)),
    ):
        extra = (await turn(answer)).message.extra
        assert extra == ({} if text is None else {"reasoning_content": "", "by": "127.0.0.1/asked"})
