"""Streams that are silent, chatty without saying anything, or not labelled as streams."""

import asyncio
import json
from typing import Any

import pytest

import toolchat.models.openai.model as openai
from tests.models.openai.playing import AT_ONCE, CITY, STREAMED, calls_of, play, played, tool_delta, turn
from tests.models.responding import events_of, response_of, streamed_text
from tests.players.openai_player import Answer, OpenAIPlayer, chunk, delta, event, finish, message, sse, whole
from toolchat.models.base import ChatResponse, Progress, Prompt, TextDelta
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.resilience import KEEPALIVE

FINISHED = [delta(content="晴"), finish("stop")]
CALLED = [tool_delta(id="a", name="get_weather", arguments=CITY), finish("tool_calls")]


def model_at(base_url: str) -> OpenAICompatibleChatModel:
    return OpenAICompatibleChatModel(base_url=base_url, api="responses")


@pytest.mark.parametrize(
    "beat",
    [
        pytest.param(b": keep-alive\n\n", id="DeepSeek's queue"),
        pytest.param(b": OPENROUTER PROCESSING\n\n", id="openai-go#227"),
        pytest.param(b":\n", id="half of a comment"),
        pytest.param(b"data: \n\n", id="an event without data"),
        pytest.param(b"event: ping\n\n", id="an event without anything"),
    ],
)
async def test_whatever_arrives_shows_that_the_stream_is_alive(beat: bytes) -> None:
    events = await play([sse(beat, beat, b"\n\n", delta(reasoning="hm"), *FINISHED)])
    assert events[:3] == [KEEPALIVE] * 3
    assert events[3:-1] == [Progress("hm"), TextDelta("晴"), Progress()]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            Answer([*[b"\n"] * 3, *whole(message(content="晴")).pieces], 200, {"Content-Type": "application/json"}),
            id="empty lines before a whole answer: DeepSeek",
        ),
        pytest.param(sse(delta(content="晴"), delta(content=""), delta(content=""), finish("stop")), id="a stream"),
    ],
)
async def test_whatever_arrives_of_a_whole_answer_shows_that_the_model_is_alive(answer: Answer) -> None:
    *events, last = await play([answer], AT_ONCE)
    assert isinstance(last, ChatResponse)
    assert last.message.text == "晴"
    assert events.count(KEEPALIVE) >= 4
    assert set(events) == {KEEPALIVE}


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(FINISHED, id="text: claude-code-router#1271, bifrost#6784"),
        pytest.param(CALLED, id="calls: pi#7954"),
        pytest.param([*FINISHED, chunk(usage={"prompt_tokens": 1})], id="usage, then silence"),
        pytest.param([*FINISHED, b'data: {"choices'], id="half of an event, then silence"),
        pytest.param([*FINISHED, *[b": keep-alive\n\n"] * 3], id="comments, then silence"),
    ],
)
async def test_silence_after_the_finish_reason_ends_the_answer(
    chunks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "FINISH_TIMEOUT", 0.05)
    response = await turn(sse(*chunks, done=False, ending="hang"))
    assert (response.message.text, calls_of(response)) in [("晴", []), ("", [("a", "get_weather", CITY)])]


async def test_the_last_event_of_a_response_ends_it_without_waiting() -> None:
    text = {"type": "response.output_text.delta", "delta": "晴"}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    answer = sse(text, end, done=False, ending="hang")
    async with asyncio.timeout(60), OpenAIPlayer([answer]) as player, model_at(player.base_url) as model:
        assert (await response_of(model, STREAMED)).message.text == "晴"


async def test_what_follows_the_finish_reason_in_time_belongs_to_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "FINISH_TIMEOUT", 60)
    gate = asyncio.Event()
    usage = event(chunk(usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}))
    pieces = [*map(event, FINISHED), usage]
    answer = Answer(pieces, headers={"Content-Type": "text/event-stream"}, gate=gate, ending="close")
    async with played([answer]) as (model, _):
        asked = asyncio.create_task(events_of(model, STREAMED))
        asyncio.get_running_loop().call_later(0.05, gate.set)
        *_, response = await asked
    assert isinstance(response, ChatResponse)
    assert response.usage.total_tokens == 7


def stamped(content: dict[str, Any]) -> bytes:
    return event({"choices": [{"index": 0, "delta": content, "finish_reason": "stop"}]})


async def test_a_finish_reason_on_each_piece_does_not_end_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "FINISH_TIMEOUT", 0.01)
    gate = asyncio.Event()
    pieces = [stamped({"content": "The total is 10"}), stamped({"content": "0 euros."})]
    answer = Answer(pieces, headers={"Content-Type": "text/event-stream"}, gate=gate, ending="close")
    async with played([answer]) as (model, _):
        asked = asyncio.create_task(response_of(model, STREAMED))
        asyncio.get_running_loop().call_later(0.1, gate.set)
        assert (await asked).message.text == "The total is 100 euros."


STREAM = b"".join(map(event, FINISHED)) + b"data: [DONE]\n\n"
TYPES = [None, "text/plain", "application/octet-stream", "application/json", "application/json; charset=utf-8"]


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["asked at once", "asked for a stream"])
@pytest.mark.parametrize("begun", [b"", b"\xef\xbb\xbf", b": OPENROUTER PROCESSING\n\n", b"event: x\n", b"id: 1\n"])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("media_type", TYPES)
async def test_a_stream_is_read_whatever_its_type_says(  # ktor#5836
    media_type: str | None, size: int, begun: bytes, prompt: Prompt
) -> None:
    content = begun + STREAM
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    async with played([Answer(pieces, headers={"Content-Type": media_type} if media_type else {})]) as (model, _):
        *events, response = await events_of(model, prompt)
    assert isinstance(response, ChatResponse)
    assert response.message.text == "晴"
    assert streamed_text(events) == ("晴" if prompt.stream else "")


@pytest.mark.parametrize("size", [1, 1000])
async def test_json_is_still_read_as_json_without_a_type(size: int) -> None:
    content = json.dumps(message(content="x")).encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert (await turn(Answer(pieces))).message.text == "x"
