"""Streams of real servers: their events, their text, and where they end."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.models.openai.playing import STREAMED, play, played, tool_delta, turn
from tests.models.responding import begun
from tests.players.openai_player import bytewise, chunk, delta, event, finish, message, sse
from toolchat.errors import UpstreamError, UpstreamInvalid
from toolchat.messages import Usage
from toolchat.models.base import Progress, TextDelta
from toolchat.models.openai import sse as sse_module
from toolchat.models.openai.sse import ServerSentEvent, SseDecoder
from toolchat.models.resilience import KEEPALIVE

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
LINE_END = st.sampled_from(["\n", "\r", "\r\n"])


def decode(*chunks: bytes) -> list[ServerSentEvent]:
    decoder = SseDecoder("the test")
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: a\n\n", [(b"message", b"a")], id="one space after the colon is dropped"),
        pytest.param(b"data:a\n\n", [(b"message", b"a")], id="no space is needed"),
        pytest.param(b"data:  a\n\n", [(b"message", b" a")], id="the second space belongs to the data"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\r", [(b"message", b"a"), (b"message", b"b")], id="CRLF and CR"),
        pytest.param(b"data: a\ndata: b\n\n", [(b"message", b"a\nb")], id="data of several lines"),
        pytest.param(b"data: a\r\ndata: b\r\n\r\n", [(b"message", b"a\nb")], id="lines with CRLF, not cut in two"),
        pytest.param(b"data\n\n", [(b"message", b"")], id="data without a value"),
        pytest.param(b": keep-alive\n\n:HTTP_STATUS/200\ndata:a\n\n", [(b"message", b"a")], id="comments"),
        pytest.param(b": \xff\ndata:a\n\n", [(b"message", b"a")], id="a comment need not be UTF-8"),
        pytest.param(b"id:1\nevent:error\ndata:a\n\n", [(b"error", b"a")], id="event name, id"),
        pytest.param(b"event: x\n\ndata: a\n\n", [(b"message", b"a")], id="a name without data is forgotten"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [(b"message", b"a")], id="byte order mark"),
        pytest.param(
            "data: 1\u20282\u00853\n\n".encode(), [(b"message", "1\u20282\u00853".encode())], id="not line ends"
        ),
        pytest.param(b"data: a", [(b"message", b"a")], id="the end of the stream ends the event"),
        pytest.param(b"database: a\n\n", [], id="an unknown field"),
        pytest.param(b"\n\n\n", [], id="blank lines"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_the_bytes_mean_the_same_events_whole_and_byte_by_byte(stream: bytes, events: list[ServerSentEvent]) -> None:
    assert decode(stream) == events
    assert decode(*(stream[at : at + 1] for at in range(len(stream)))) == events


@pytest.mark.parametrize(
    ("before", "events"),
    [
        pytest.param(b"data: x\n\n", [(b"message", b"x"), (b"message", b"a")], id="after an event"),
        pytest.param(b"data: x\n", [(b"message", b"x\na")], id="after a line of data"),
        pytest.param(b"data\n", [(b"message", b"\na")], id="after a line of data without a value"),
        pytest.param(b"event: x\n", [(b"x", b"a")], id="after a name"),
        pytest.param(b": x\n: x", [], id="within a second comment"),
    ],
)
def test_a_chunk_with_a_whole_event_continues_what_has_begun(before: bytes, events: list[ServerSentEvent]) -> None:
    assert decode(before, b"data: a\n\n") == events


def test_only_the_first_chunk_may_have_a_byte_order_mark() -> None:
    assert decode(b"data: a\n\n", b"\xef\xbb\xbfdata: b\n\n") == [(b"message", b"a")]


@given(st.data(), st.lists(st.lists(TEXT, min_size=1, max_size=3), max_size=4), LINE_END)
def test_any_text_comes_through_any_cutting_and_line_end(
    data: st.DataObject, texts: list[list[str]], line_end: str
) -> None:
    stream = "".join("".join(f"data: {line}{line_end}" for line in lines) + line_end for lines in texts).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*chunks) == [(b"message", "\n".join(lines).encode()) for lines in texts]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_no_bytes_whatever_raise_anything_but_upstream_invalid(chunks: list[bytes]) -> None:
    try:
        whole = decode(b"".join(chunks))
    except UpstreamInvalid:
        with pytest.raises(UpstreamInvalid):
            decode(*chunks)
    else:
        assert decode(*chunks) == whole


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"data: " + b"x" * 100, id="one endless line"),
        pytest.param(b": " + b"x" * 100, id="an endless comment"),
        pytest.param(b"data: x\n" * 60, id="endless lines"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_longer_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, stream: bytes, size: int) -> None:
    monkeypatch.setattr(sse_module, "MAX_EVENT_BYTES", 100)
    decoder = SseDecoder("the test")
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    with pytest.raises(UpstreamInvalid, match="more than 100 bytes"):
        [decoder.feed(chunk) for chunk in chunks]


def test_the_limit_is_for_one_event_not_for_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_module, "MAX_EVENT_BYTES", 100)
    decoder = SseDecoder("the test")
    assert sum(len(decoder.feed(b"data: " + b"x" * 50 + b"\n\n")) for _ in range(20)) == 20


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        pytest.param([delta(content="杭州"), delta(content="：晴"), finish("stop")], "杭州：晴", id="OpenAI"),
        pytest.param(
            [delta(content=None), delta(content=""), delta(), delta(content=[{"text": "晴"}]), finish("stop")],
            "晴",
            id="trap 11: content null, empty, absent, a list",
        ),
        pytest.param([delta(role="", content="晴"), finish("stop")], "晴", id="trap 12: an empty role (MiniMax)"),
        pytest.param(
            [delta(content="<think>hm"), delta(content="</think>\n晴"), finish("stop")], "晴", id="trap 13: <think>"
        ),
        pytest.param(
            [delta(reasoning_content="hm", content=""), delta(content="晴"), finish("stop")],
            "晴",
            id="trap 13: reasoning_content (DeepSeek)",
        ),
        pytest.param(
            [delta(reasoning="hm"), delta(content="晴"), finish("stop")], "晴", id="trap 13: reasoning (vLLM)"
        ),
        pytest.param(
            [delta(reasoning_details=[{"type": "t", "text": "hm"}]), delta(content="晴"), finish("stop")],
            "晴",
            id="trap 13: reasoning_details (MiniMax)",
        ),
        pytest.param(
            [delta(content="杭州今天"), delta(content="杭州今天晴"), delta(content="杭州今天晴。"), finish("stop")],
            "杭州今天晴。",
            id="trap 16: snapshots",
        ),
        pytest.param(
            [delta(content="杭州"), finish("stop"), message(content="杭州", usage={"prompt_tokens": 1})],
            "杭州",
            id="trap 16: the whole message at the end (MiniMax)",
        ),
        pytest.param([delta(content="哈"), delta(content="哈哈"), finish("stop")], "哈哈哈", id="not a snapshot"),
        pytest.param([message(content="杭州")], "杭州", id="a whole message for a stream"),
        pytest.param(
            [chunk(prompt_filter_results=[{}]), delta(content="晴"), finish("stop"), chunk(usage={})],
            "晴",
            id="trap 17: chunks without a choice (Azure)",
        ),
        pytest.param(
            [
                b": keep-alive\n\n",
                b":HTTP_STATUS/200\ndata:" + event(delta(content="晴"))[6:],
                b"data: \n\n",
                finish("stop"),
            ],
            "晴",
            id="trap 19: comments, no blank after data:, empty data (DeepSeek, DashScope)",
        ),
        pytest.param([delta(content="晴"), finish("stop"), delta(content="。")], "晴。", id="a chunk after the finish"),
        pytest.param([chunk({"index": 0, "delta": None}), delta(content="晴"), finish("stop")], "晴", id="delta null"),
        pytest.param([delta(content="晴", new_field={"a": [1]}), finish("stop")], "晴", id="unknown fields"),
        pytest.param([delta(refusal="不"), delta(refusal="行"), finish("stop")], "不行", id="a refusal is an answer"),
        pytest.param(
            [delta("stop", content="data: x\n\n[DONE]\r\u2028")], "data: x\n\n[DONE]\r\u2028", id="text like SSE"
        ),
        pytest.param(
            [chunk({"delta": {"content": "晴"}}), chunk({"finish_reason": "eos"})], "晴", id="odd finish reason"
        ),
        pytest.param([chunk("x"), chunk([]), {"choices": "x"}, delta("stop", content="晴")], "晴", id="odd choices"),
    ],
)
@pytest.mark.parametrize("cut", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_streamed_text_is_exact_from_every_dialect(chunks: list[Any], text: str, cut: Any) -> None:
    response = await turn(cut(sse(*chunks)))
    assert response.message.text == text
    assert response.finish_reason == "stop"


async def test_every_chunk_without_text_is_progress_and_a_comment_is_a_keepalive() -> None:
    chunks = [b": keep-alive\n\n", delta(role="assistant"), delta(reasoning="hm"), delta(content="晴"), finish("stop")]
    events = await play([sse(*chunks)])
    assert events[:-1] == [KEEPALIVE, Progress(), Progress("hm"), TextDelta("晴"), Progress()]


async def test_a_piece_of_text_is_handed_on_before_the_next_one_comes() -> None:
    answer = sse(delta(content="晴"), done=False, ending="hang")
    async with played([answer]) as (model, _), begun(model, STREAMED) as first:
        assert first == TextDelta("晴")


TRUNCATED = [delta(content="杭州"), tool_delta(id="a", name="get_weather", arguments='{"ci')]


@pytest.mark.parametrize("ending", ["whole", "close", "cut", "reset"])
@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(TRUNCATED[:1], id="within the text"),
        pytest.param(TRUNCATED, id="within arguments"),
        pytest.param([*TRUNCATED, b'data: {"choices": [{"del'], id="within an event"),
        pytest.param([delta(role="assistant")], id="before the text"),
        pytest.param([], id="before everything"),
    ],
)
async def test_a_stream_that_was_cut_is_never_an_answer(ending: Any, chunks: list[Any]) -> None:
    with pytest.raises(UpstreamError) as caught:
        await play([sse(*chunks, done=False, ending=ending)])
    assert ending == "reset" or type(caught.value) is UpstreamInvalid  # a reset may overtake the headers


@pytest.mark.parametrize("ending", ["whole", "close", "cut"])
async def test_a_stream_may_end_without_done_after_the_finish_reason(ending: Any) -> None:
    answer = sse(delta(content="晴"), finish("stop"), done=False, ending=ending)
    assert (await turn(answer)).message.text == "晴"


async def test_a_cut_after_the_finish_reason_costs_the_usage_only() -> None:
    answer = sse(delta("stop", content="晴"), b'data: {"choices": [], "usa', done=False, ending="cut")
    response = await turn(answer)
    assert (response.message.text, response.usage) == ("晴", Usage())


async def test_done_ends_a_stream_that_the_server_does_not_end() -> None:
    response = await asyncio.wait_for(turn(sse(delta("stop", content="晴"), ending="hang")), 20)
    assert response.message.text == "晴"


async def test_done_without_a_finish_reason_and_without_a_line_end_is_an_end() -> None:
    answer = sse(delta(content="晴"), b"data: [DONE]", done=False)
    assert (await turn(answer)).message.text == "晴"
